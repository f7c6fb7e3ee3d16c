"""Whether TensorRT's bindings and pycuda are installed and load; and the exact next step if not."""

from __future__ import annotations

import re
import shutil
import sys
from functools import partial
from pathlib import Path

from ptedge.machine.driver import Driver
from ptedge.machine.finding import Finding
from ptedge.machine.kernel_files import ROOT
from ptedge.machine.packages import rtx_version, tensorrt_version, try_import, version_of

JETPACK_OF = {32: 4, 35: 5, 36: 6, 38: 7, 39: 7}  # Jetson Linux release R.. -> JetPack
_tensorrt = partial(Finding, "tensorrt", "TensorRT")
_pycuda = partial(Finding, "pycuda", "pycuda")


def jetpack(release: str) -> int | None:
    """JetPack's major version from Jetson Linux's release line.

    Args:
        release: for example ``R36 (release), REVISION: 4.0``; empty on other machines.
    """
    found = re.search(r"R(\d+)", release)
    return JETPACK_OF.get(int(found.group(1))) if found else None


def system_bindings(root: Path = ROOT) -> list[tuple[int, int]]:
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


def check_tensorrt(driver: Driver, release: str = "", root: Path = ROOT) -> list[Finding]:
    """Whether TensorRT's bindings are there and load, and pycuda beside them.

    Args:
        driver: a GPU is needed for TensorRT to be of use.
        release: of Jetson Linux; empty on other machines.
        root: of the file system.
    """
    version = tensorrt_version()
    if version is None:
        return [_absent(driver, release, system_bindings(root))]
    if not driver.gpus:
        return [_tensorrt("info", f"{version}; without a GPU that answers it is of no use")]
    problem = try_import("tensorrt")
    if problem:
        return [_tensorrt("problem", f"{version} cannot be loaded: {problem}", _repair_library(problem, release))]
    return [_tensorrt("ok", version), check_pycuda(release, root)]


def check_rtx(driver: Driver) -> list[Finding]:
    """Whether TensorRT-RTX is there; nothing to say where it is not, as few need it.

    Args:
        driver: a GPU runs what it builds.
    """
    version = rtx_version()
    if version is None:
        return []
    name = "TensorRT-RTX"
    if not driver.gpus:
        return [Finding("tensorrt", name, "info", f"{version}; builds engines here, and a GPU that answers runs them")]
    without_pycuda = [] if tensorrt_version() is not None else [check_pycuda()]
    return [Finding("tensorrt", name, "ok", version), *without_pycuda]


def _absent(driver: Driver, release: str, system: list[tuple[int, int]]) -> Finding:
    mine = sys.version_info[:2]
    if not driver.gpus and not release:
        return _tensorrt("info", "not installed and not needed: without an NVIDIA GPU models run on ONNX Runtime")
    if system and mine in system:
        detail = "the system has it, but this virtual environment does not see it: make it with --system-site-packages"
        fix = "python3 -m venv --system-site-packages venv && venv/bin/pip install ptedge pycuda"
        return _tensorrt("problem", detail, fix)
    if system:
        there = f"{system[-1][0]}.{system[-1][1]}"
        detail = f"the system has it for Python {there}, and this is Python {mine[0]}.{mine[1]}"
        fix = f"python{there} -m venv --system-site-packages venv && venv/bin/pip install ptedge pycuda"
        return _tensorrt("problem", detail, fix)
    if release:
        number = jetpack(release)
        detail = f"not installed; it belongs to JetPack{f' {number}' if number else ''}, do not take it from pip"
        return _tensorrt("missing", detail, "sudo apt-get install nvidia-jetpack")
    assert driver.cuda is not None
    major = 13 if driver.cuda[0] >= 13 else 12
    return _tensorrt("missing", "not installed", f"pip install tensorrt-cu{major} pycuda")


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


def check_pycuda(release: str = "", root: Path = ROOT) -> Finding:
    """Whether pycuda is there; it is built from source, which needs CUDA's compiler.

    Args:
        release: of Jetson Linux; empty on other machines.
        root: of the file system.
    """
    version = version_of("pycuda")
    if version is not None:
        problem = try_import("pycuda.driver")
        if not problem:
            return _pycuda("ok", version)
        fix = "pip install --force-reinstall --no-binary :all: --no-cache-dir pycuda"
        return _pycuda("problem", f"{version} cannot be loaded: {problem}", fix)
    nvcc = shutil.which("nvcc") or next((str(path) for path in root.glob("usr/local/cuda*/bin/nvcc")), None)
    if nvcc:
        fix = f"PATH={Path(nvcc).parent}:$PATH pip install pycuda"
        return _pycuda("missing", "not installed; TensorRT engines are run with it", fix)
    packages = "nvidia-jetpack python3-dev g++" if release else "nvidia-cuda-toolkit python3-dev g++"
    detail = (
        "not installed; TensorRT engines are run with it. It is compiled when installed, and CUDA's nvcc is missing"
    )
    return _pycuda("missing", detail, f"sudo apt-get install {packages} && pip install pycuda")
