"""Whether an NVIDIA GPU answers and its driver is new enough; and the next step if not."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from ptedge.machine.driver import MISMATCH, Driver
from ptedge.machine.finding import Finding
from ptedge.machine.host import in_container
from ptedge.machine.kernel_files import ROOT
from ptedge.machine.nvidia_smi import gpu_list
from ptedge.machine.packages import cuda_needs

INSTALL_DRIVER = "sudo ubuntu-drivers install"
# the driver series with which each CUDA major version begins; a driver serves all CUDA versions up to its own
DRIVER_SERIES = {11: 450, 12: 525, 13: 580}
_gpu = partial(Finding, "gpu", "GPU")
_driver = partial(Finding, "driver", "CUDA driver")


def check_gpu(driver: Driver, on_jetson: bool, root: Path = ROOT) -> Finding:
    """Whether an NVIDIA GPU answers, and the next step if one should.

    Args:
        driver: what the CUDA driver says.
        on_jetson: this is a Jetson.
        root: of the file system.
    """
    if driver.gpus:
        names = "; ".join(f"{gpu.name} (compute capability {gpu.compute_capability})" for gpu in driver.gpus)
        return _gpu("ok", gpu_list() or names)
    return _silent_gpu(driver, on_jetson, root)


def _silent_gpu(driver: Driver, on_jetson: bool, root: Path) -> Finding:
    """Why no GPU answers."""
    container = in_container(root)
    devices = any(root.glob("dev/nvidia[0-9]*")) or any(root.glob("dev/nvhost-gpu"))
    flag = "--runtime nvidia" if on_jetson else "--gpus all"
    again = f"docker run {flag} ... (the host needs the package nvidia-container-toolkit)"
    if driver.error in MISMATCH:
        detail = f"the CUDA library and the kernel's NVIDIA driver are of different versions (error {driver.error})"
        if container:
            return _gpu("problem", f"{detail}: the image brings a CUDA library of its own", again)
        return _gpu("problem", detail, "sudo reboot")
    if container and (devices or on_jetson):
        return _gpu("problem", "there is a GPU, but the container was started without its driver", again)
    if devices or on_jetson:
        detail = "there is an NVIDIA GPU, but its CUDA driver does not answer"
        if driver.error:
            detail += f" (error {driver.error})"
        return _gpu("problem", detail, "sudo apt-get install nvidia-l4t-cuda" if on_jetson else INSTALL_DRIVER)
    if container:
        detail = f"no NVIDIA GPU in this container; models run on the CPU. If the host has one: docker run {flag} ..."
        return _gpu("info", detail)
    return _gpu("info", "no NVIDIA GPU; models run on the CPU")


def check_driver(driver: Driver, on_jetson: bool) -> list[Finding]:
    """Whether the driver is new enough for the CUDA packages that are installed; nothing to say without a GPU.

    Args:
        driver: what it says of itself.
        on_jetson: there the driver comes with JetPack.
    """
    if driver.cuda is None or not driver.gpus:
        return []
    here = f"supports CUDA {driver.cuda[0]}.{driver.cuda[1]}"
    needs = {what: major for what, major in cuda_needs().items() if major > driver.cuda[0]}
    if not needs:
        return [_driver("ok", here)]
    what, major = max(needs.items(), key=lambda item: item[1])
    detail = f"{here}, but {what} needs CUDA {major}"
    series = DRIVER_SERIES.get(major)
    if on_jetson:
        return [_driver("problem", f"{detail}: it is not made for this JetPack", f"pip uninstall -y {what}")]
    fix = f"sudo apt-get install nvidia-driver-{series} && sudo reboot" if series else "install a newer NVIDIA driver"
    return [_driver("problem", f"{detail} (driver {series or 'of that time'} or newer)", fix)]
