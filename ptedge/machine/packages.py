"""Which packages are installed. They are asked for by their metadata, so that nothing heavy is imported.

What must be imported to be known (a library that is missing) is imported in a process of its own, as it could take this
one down; and only when it is installed, so that a machine without it stays quick.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from importlib import metadata
from pathlib import Path

from ptedge.machine.finding import Finding

# distributions that bring TensorRT's bindings -> the major version of CUDA they bring, None where they bring none
TENSORRT_BINDINGS = {
    "tensorrt": None,
    "tensorrt-cu13": 13,
    "tensorrt-cu12": 12,
    "tensorrt-cu13-bindings": 13,
    "tensorrt-cu12-bindings": 12,
}
RTX_BINDINGS = ("tensorrt-rtx", "tensorrt-rtx-cu13-bindings", "tensorrt-rtx-cu12-bindings")
IMPORT_SECONDS = 30
_torch = partial(Finding, "torch", "torch")


def version_of(distribution: str) -> str | None:
    """Version of an installed distribution, without importing it.

    Args:
        distribution: name as pip knows it.
    """
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def tensorrt_version() -> str | None:
    """Version of TensorRT that this Python sees, without importing it."""
    return next((version for name in TENSORRT_BINDINGS if (version := version_of(name))), None)


def rtx_version() -> str | None:
    """Version of TensorRT-RTX that this Python sees, without importing it."""
    return next((version for name in RTX_BINDINGS if (version := version_of(name))), None)


def cuda_needs() -> dict[str, int]:
    """Installed packages that bring their own CUDA -> its major version."""
    needs = {name: major for name, major in TENSORRT_BINDINGS.items() if major is not None and version_of(name)}
    try:
        wanted = metadata.requires("onnxruntime-gpu") or []
    except metadata.PackageNotFoundError:
        wanted = []
    for line in wanted:  # nvidia-cuda-runtime-cu12 ...; from CUDA 13 on the name has no number, the version has
        if found := re.match(r"nvidia-cuda-runtime(?:-cu(\d\d)|\D+(\d\d))", line):
            needs["onnxruntime-gpu"] = int(found.group(1) or found.group(2))
    return needs


def try_import(module: str) -> str:
    """Import a module in a process of its own; the reason it fails, empty when it works.

    Args:
        module: dotted name.
    """
    command = [sys.executable, "-c", f"import {module}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=IMPORT_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"importing it does not end: {error}" if isinstance(error, subprocess.TimeoutExpired) else str(error)
    if done.returncode < 0:
        return f"importing it ends the process with signal {-done.returncode}"
    if done.returncode:
        return (done.stderr.strip().splitlines() or ["no reason given"])[-1]
    return ""


def check_package(kind: str, name: str, distribution: str, fix: str) -> Finding:
    """Whether a package ptedge cannot do without is installed.

    Args:
        kind: of the finding.
        name: what to call it.
        distribution: name as pip knows it.
        fix: command that installs it.
    """
    version = version_of(distribution)
    return Finding(kind, name, "ok", version) if version else Finding(kind, name, "problem", "not installed", fix)


def check_group(kind: str, name: str, distributions: Sequence[str], extra: str) -> Finding:
    """Whether the packages of an extra are installed.

    Args:
        kind: of the finding.
        name: what they are for.
        distributions: names as pip knows them.
        extra: of ptedge, brings them all.
    """
    found = {distribution: version_of(distribution) for distribution in distributions}
    absent = [distribution for distribution, version in found.items() if version is None]
    if absent:
        return Finding(kind, name, "missing", f"not installed: {', '.join(absent)}", f'pip install "ptedge[{extra}]"')
    return Finding(kind, name, "ok", ", ".join(f"{distribution} {version}" for distribution, version in found.items()))


def check_torch(gpus: int) -> list[Finding]:
    """Whether torch is built for the GPU that is here; nothing to say without torch.

    Args:
        gpus: how many answer.
    """
    version = version_of("torch")
    if version is None:
        return []
    cuda = _torch_cuda()
    if cuda:
        return [_torch("ok" if gpus else "info", f"{version}, built for CUDA {cuda}")]
    if gpus == 0:
        return [_torch("info", f"{version}, built for the CPU")]
    fix = "install the CUDA build of torch and torchvision that the PyTorch site names for this driver"
    return [_torch("problem", f"{version} is built for the CPU, but there is a GPU", fix)]


def _torch_cuda() -> str:
    """CUDA version torch was built for, from its text: importing torch takes seconds. Empty for none."""
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        return ""
    try:
        text = (Path(spec.origin).parent / "version.py").read_text("utf-8")
    except OSError:
        return ""
    found = re.search(r"^cuda\b[^=]*=\s*['\"]([^'\"]+)", text, re.MULTILINE)
    return found.group(1) if found else ""
