"""What this machine has: packages, GPU, video support; and the command that installs what is missing.

Nothing heavy is imported: packages are asked for by their metadata, and only OpenCV and ONNX Runtime are loaded, since
only they know how they were built.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from ptedge.machine.cpu import usable_cores
from ptedge.machine.driver import MISMATCH, Driver, cuda_device_count, in_container
from ptedge.machine.jetson import board_model, jetson_release
from ptedge.machine.memory import main_memory
from ptedge.machine.nvidia_smi import gpu_list

DRIVER = "sudo ubuntu-drivers install"
HEADLESS = "pip install --force-reinstall opencv-python-headless"


@dataclass(frozen=True)
class Check:
    """One thing looked at.

    Attributes:
        name: what.
        status: ``ok``, ``missing`` (an option that is not installed), ``problem`` (ptedge cannot do what it should
            here) or ``info``.
        detail: what was found.
        fix: command that installs or repairs it; empty where there is nothing to do.
    """

    name: str
    status: str
    detail: str
    fix: str = ""


def version_of(distribution: str) -> str | None:
    """Version of an installed distribution, without importing it.

    Args:
        distribution: name as pip knows it.
    """
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def check_package(name: str, distribution: str, fix: str) -> Check:
    """Whether a package ptedge cannot do without is installed.

    Args:
        name: what to call it.
        distribution: name as pip knows it.
        fix: command that installs it.
    """
    version = version_of(distribution)
    return Check(name, "ok", version) if version else Check(name, "problem", "not installed", fix)


def check_group(name: str, distributions: Sequence[str], extra: str) -> Check:
    """Whether the packages of an extra are installed.

    Args:
        name: what they are for.
        distributions: names as pip knows them.
        extra: of ptedge, brings them all.
    """
    found = {distribution: version_of(distribution) for distribution in distributions}
    absent = [distribution for distribution, version in found.items() if version is None]
    if absent:
        return Check(name, "missing", f"not installed: {', '.join(absent)}", f'pip install "ptedge[{extra}]"')
    return Check(name, "ok", ", ".join(f"{distribution} {version}" for distribution, version in found.items()))


def check_machine(folder: Path = Path()) -> Check:
    """Cores, memory and disk.

    Args:
        folder: the disk it is on is looked at.
    """
    memory = main_memory()
    parts = [f"{usable_cores()} cores"]
    parts.append(f"{memory.available / 2**30:.1f} of {memory.total / 2**30:.1f} GiB memory free")
    free = shutil.disk_usage(folder).free
    parts.append(f"{free / 2**30:.1f} GiB disk free")
    if free < 2**30:
        return Check("machine", "problem", ", ".join(parts) + ": make room before anything is written")
    return Check("machine", "info", ", ".join(parts))


def check_jetson(root: Path = Path("/")) -> Check | None:
    """The Jetson model and its release; ``None`` on any other machine.

    Args:
        root: of the file system.
    """
    release, model = jetson_release(root), board_model(root)
    if not release and "Jetson" not in model:
        return None
    return Check("Jetson", "info", ", ".join(filter(None, [model, release])))


def check_gpu(driver: Driver, on_jetson: bool, root: Path = Path("/")) -> Check:
    """Whether an NVIDIA GPU answers, and the next step if one should.

    Args:
        driver: what the CUDA driver says.
        on_jetson: this is a Jetson.
        root: of the file system.
    """
    if driver.gpus:
        names = "; ".join(f"{gpu.name} (compute capability {gpu.compute_capability})" for gpu in driver.gpus)
        return Check("GPU", "ok", gpu_list() or names)
    return _silent_gpu(driver, on_jetson, root)


def _silent_gpu(driver: Driver, on_jetson: bool, root: Path) -> Check:
    """Why no GPU answers."""
    container = in_container(root)
    devices = any(root.glob("dev/nvidia[0-9]*")) or any(root.glob("dev/nvhost-gpu"))
    flag = "--runtime nvidia" if on_jetson else "--gpus all"
    again = f"docker run {flag} ... (the host needs the package nvidia-container-toolkit)"
    if driver.error in MISMATCH:
        detail = f"the CUDA library and the kernel's NVIDIA driver are of different versions (error {driver.error})"
        if container:
            return Check("GPU", "problem", f"{detail}: the image brings a CUDA library of its own", again)
        return Check("GPU", "problem", detail, "sudo reboot")
    if container and (devices or on_jetson):
        return Check("GPU", "problem", "there is a GPU, but the container was started without its driver", again)
    if devices or on_jetson:
        detail = "there is an NVIDIA GPU, but its CUDA driver does not answer"
        if driver.error:
            detail += f" (error {driver.error})"
        return Check("GPU", "problem", detail, "sudo apt-get install nvidia-l4t-cuda" if on_jetson else DRIVER)
    if container:
        detail = f"no NVIDIA GPU in this container; models run on the CPU. If the host has one: docker run {flag} ..."
        return Check("GPU", "info", detail)
    return Check("GPU", "info", "no NVIDIA GPU; models run on the CPU")


def check_opencv(on_jetson: bool) -> list[Check]:
    """OpenCV and what it can read video with.

    Args:
        on_jetson: this is a Jetson.
    """
    try:
        import cv2

        build = cv2.getBuildInformation()
    except (ImportError, OSError) as error:
        # the usual reason is libGL, which opencv-python needs for windows that ptedge never opens
        remove = "pip uninstall -y opencv-python && " if version_of("opencv-python") else ""
        return [Check("OpenCV", "problem", f"cannot be loaded: {error}", remove + HEADLESS)]
    checks = [Check("OpenCV", "ok", cv2.__version__)]
    if _has(build, "FFMPEG"):
        checks.append(Check("video files, rtsp://", "ok", "OpenCV with FFMPEG"))
    else:
        checks.append(Check("video files, rtsp://", "problem", "this OpenCV is built without FFMPEG", HEADLESS))
    if _has(build, "GStreamer"):
        checks.append(Check("csi://, GStreamer", "ok", "OpenCV with GStreamer"))
    else:
        detail = (
            "this OpenCV is built without GStreamer; the system's has it. Use a venv made with --system-site-packages, "
            "without opencv-python-headless in it"
        )
        fix = f"sudo apt-get install {'nvidia-opencv' if on_jetson else 'python3-opencv'}"
        checks.append(Check("csi://, GStreamer", "problem" if on_jetson else "missing", detail, fix))
    return checks


def check_torch() -> list[Check]:
    """Whether torch is built for the GPU that is here; nothing to say without torch."""
    version = version_of("torch")
    if version is None:
        return []
    cuda = _torch_cuda()
    if cuda:
        return [Check("torch", "ok" if cuda_device_count() else "info", f"{version}, built for CUDA {cuda}")]
    if cuda_device_count() == 0:
        return [Check("torch", "info", f"{version}, built for the CPU")]
    fix = "install the CUDA build of torch and torchvision that the PyTorch site names for this driver"
    return [Check("torch", "problem", f"{version} is built for the CPU, but there is a GPU", fix)]


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


def _has(build: str, feature: str) -> bool:
    line: Any = next((row for row in build.splitlines() if row.strip().startswith(feature + ":")), "")
    return "YES" in line
