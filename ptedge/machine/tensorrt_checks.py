"""Whether TensorRT can be used here: driver, bindings, pycuda, a bundle's engines; and the exact next step if not.

Packages are asked for by their metadata. What must be imported to be known (a library that is missing) is imported in
a process of its own, as it could take this one down; and only when it is installed, so that a machine without it stays
quick.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

from ptedge.machine.driver import Driver
from ptedge.machine.packages import Check, version_of

# the driver series with which each CUDA major version begins; a driver serves all CUDA versions up to its own
DRIVER_SERIES = {11: 450, 12: 525, 13: 580}
JETPACK_OF = {32: 4, 35: 5, 36: 6, 38: 7, 39: 7}  # Jetson Linux release R.. -> JetPack
BINDINGS = ("tensorrt", "tensorrt-cu13", "tensorrt-cu12", "tensorrt-cu13-bindings", "tensorrt-cu12-bindings")
IMPORT_SECONDS = 30


def jetpack(release: str) -> int | None:
    """JetPack's major version from Jetson Linux's release line.

    Args:
        release: for example ``R36 (release), REVISION: 4.0``; empty on other machines.
    """
    found = re.search(r"R(\d+)", release)
    return JETPACK_OF.get(int(found.group(1))) if found else None


def tensorrt_version() -> str | None:
    """Version of TensorRT that this Python sees, without importing it."""
    return next((version for name in BINDINGS if (version := version_of(name))), None)


def system_bindings(root: Path = Path("/")) -> list[tuple[int, int]]:
    """Python versions for which the system's packages brought TensorRT's bindings (JetPack, NVIDIA's apt packages).

    Args:
        root: of the file system.
    """
    found = set()
    for folder in root.glob("usr/lib/python3*/dist-packages/tensorrt"):
        if name := re.fullmatch(r"python3\.(\d+)", folder.parent.parent.name):
            found.add((3, int(name.group(1))))
        elif library := next(iter(folder.glob("*cpython-3*.so")), None):  # Debian puts all versions in one folder
            found.add((3, int(re.findall(r"cpython-3(\d+)", library.name)[0])))
        elif folder.parent.parent.name == "python3":
            found.add(sys.version_info[:2])
    return sorted(found)


def check_driver(driver: Driver, on_jetson: bool) -> list[Check]:
    """Whether the driver is new enough for the CUDA packages that are installed; nothing to say without a GPU.

    Args:
        driver: what it says of itself.
        on_jetson: there the driver comes with JetPack.
    """
    if driver.cuda is None or not driver.gpus:
        return []
    name, here = "CUDA driver", f"supports CUDA {driver.cuda[0]}.{driver.cuda[1]}"
    needs = {what: major for what, major in cuda_needs().items() if major > driver.cuda[0]}
    if not needs:
        return [Check(name, "ok", here)]
    what, major = max(needs.items(), key=lambda item: item[1])
    detail = f"{here}, but {what} needs CUDA {major}"
    series = DRIVER_SERIES.get(major)
    if on_jetson:
        return [Check(name, "problem", f"{detail}: it is not made for this JetPack", f"pip uninstall -y {what}")]
    fix = f"sudo apt-get install nvidia-driver-{series} && sudo reboot" if series else "install a newer NVIDIA driver"
    return [Check(name, "problem", f"{detail} (driver {series or 'of that time'} or newer)", fix)]


def cuda_needs() -> dict[str, int]:
    """Installed packages that bring their own CUDA -> its major version."""
    needs = {}
    for name in BINDINGS:
        if (found := re.search(r"cu(\d\d)", name)) and version_of(name):
            needs[name] = int(found.group(1))
    try:
        wanted = metadata.requires("onnxruntime-gpu") or []
    except metadata.PackageNotFoundError:
        wanted = []
    for line in wanted:  # nvidia-cuda-runtime-cu12 ...; from CUDA 13 on the name has no number, the version has
        if found := re.match(r"nvidia-cuda-runtime(?:-cu(\d\d)|\D+(\d\d))", line):
            needs["onnxruntime-gpu"] = int(found.group(1) or found.group(2))
    return needs


def check_tensorrt(driver: Driver, release: str = "", root: Path = Path("/")) -> list[Check]:
    """Whether TensorRT's bindings are there and load, and pycuda beside them.

    Args:
        driver: a GPU is needed for TensorRT to be of use.
        release: of Jetson Linux; empty on other machines.
        root: of the file system.
    """
    name, version = "TensorRT", tensorrt_version()
    if version is None:
        return [_absent(driver, release, system_bindings(root))]
    if not driver.gpus:
        return [Check(name, "info", f"{version}; without a GPU that answers it is of no use")]
    problem = try_import("tensorrt")
    if problem:
        return [Check(name, "problem", f"{version} cannot be loaded: {problem}", _repair_library(problem, release))]
    return [Check(name, "ok", version), check_pycuda(release, root)]


def _absent(driver: Driver, release: str, system: list[tuple[int, int]]) -> Check:
    name, mine = "TensorRT", sys.version_info[:2]
    if not driver.gpus and not release:
        return Check(name, "info", "not installed and not needed: without an NVIDIA GPU models run on ONNX Runtime")
    if system and mine in system:
        detail = "the system has it, but this virtual environment does not see it: make it with --system-site-packages"
        fix = "python3 -m venv --system-site-packages venv && venv/bin/pip install ptedge pycuda"
        return Check(name, "problem", detail, fix)
    if system:
        there = f"{system[-1][0]}.{system[-1][1]}"
        detail = f"the system has it for Python {there}, and this is Python {mine[0]}.{mine[1]}"
        fix = f"python{there} -m venv --system-site-packages venv && venv/bin/pip install ptedge pycuda"
        return Check(name, "problem", detail, fix)
    if release:
        number = jetpack(release)
        detail = f"not installed; it belongs to JetPack{f' {number}' if number else ''}, do not take it from pip"
        return Check(name, "missing", detail, "sudo apt-get install nvidia-jetpack")
    assert driver.cuda is not None
    return Check(
        name, "missing", "not installed", f"pip install tensorrt-cu{13 if driver.cuda[0] >= 13 else 12} pycuda"
    )


def _repair_library(problem: str, release: str) -> str:
    if release:
        return "sudo apt-get install --reinstall nvidia-jetpack"
    if "libnv" in problem:  # the bindings without the libraries they belong to
        package = next((n for n in ("tensorrt-cu13", "tensorrt-cu12", "tensorrt") if version_of(n)), "tensorrt")
        version = version_of(package) or tensorrt_version()
        libraries = f" {package}-libs=={version}" if package != "tensorrt" else ""
        return f"pip install --force-reinstall {package}=={version}{libraries}"
    if "libcud" in problem or "libcublas" in problem:
        return "pip install nvidia-cudnn-cu11 nvidia-cublas-cu11 (the CUDA libraries of this TensorRT)"
    return f"pip install --force-reinstall tensorrt=={tensorrt_version()}"


def check_pycuda(release: str = "", root: Path = Path("/")) -> Check:
    """Whether pycuda is there; it is built from source, which needs CUDA's compiler.

    Args:
        release: of Jetson Linux; empty on other machines.
        root: of the file system.
    """
    version = version_of("pycuda")
    if version is not None:
        problem = try_import("pycuda.driver")
        if not problem:
            return Check("pycuda", "ok", version)
        fix = "pip install --force-reinstall --no-binary :all: --no-cache-dir pycuda"
        return Check("pycuda", "problem", f"{version} cannot be loaded: {problem}", fix)
    nvcc = shutil.which("nvcc") or next((str(path) for path in root.glob("usr/local/cuda*/bin/nvcc")), None)
    if nvcc:
        fix = f"PATH={Path(nvcc).parent}:$PATH pip install pycuda"
        return Check("pycuda", "missing", "not installed; TensorRT engines are run with it", fix)
    packages = "nvidia-jetpack python3-dev g++" if release else "nvidia-cuda-toolkit python3-dev g++"
    detail = (
        "not installed; TensorRT engines are run with it. It is compiled when installed, and CUDA's nvcc is missing"
    )
    return Check("pycuda", "missing", detail, f"sudo apt-get install {packages} && pip install pycuda")


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
