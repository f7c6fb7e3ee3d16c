"""What the numbers of a benchmark depend on besides the model: the machine, its settings, and how it fares meanwhile.

What a machine does not tell is left out. Nothing is changed and nothing needs root.
"""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path
from typing import Any

from ptedge import __version__
from ptedge.machine import cpu, jetson
from ptedge.machine.driver import ask_driver
from ptedge.machine.kernel_files import ROOT
from ptedge.machine.nvidia_smi import Ask, ask_nvidia_smi, gpu_facts, gpu_reading
from ptedge.machine.packages import version_of

PACKAGES = {
    "onnxruntime": ("onnxruntime-gpu", "onnxruntime"),
    "opencv": ("opencv-python-headless", "opencv-python", "opencv-contrib-python"),
    "numpy": ("numpy",),
    "tensorrt": ("tensorrt", "tensorrt-cu13", "tensorrt-cu12"),
    "tensorrt_rtx": ("tensorrt-rtx", "tensorrt-rtx-cu13-bindings", "tensorrt-rtx-cu12-bindings"),
    "pycuda": ("pycuda",),
}


def environment(threads: int | None, root: Path = ROOT, ask: Ask = ask_nvidia_smi) -> dict[str, Any]:
    """What stays the same during a run.

    Args:
        threads: CPU threads of the model that the user asked for.
        root: of the file system.
        ask: answers for nvidia-smi.

    Returns:
        As ``environment`` of the report; what is not known is ``None``.
    """
    return {
        "system": platform.platform(),
        "machine": jetson.board_model(root) or None,
        "cpu": cpu.cpu_model(root),
        "cores": os.cpu_count(),
        "cores_usable": cpu.usable_cores(),
        "cpu_quota": cpu.cpu_quota(root),
        "cpu_governor": cpu.cpu_governor(root),
        "cpu_mhz_max": cpu.cpu_mhz_max(root),
        "load": cpu.load(),
        "threads": threads,
        "gpu": gpu_facts(ask),
        "jetson_release": jetson.jetson_release(root).partition(", GCID")[0] or None,
        "power_mode": jetson.power_mode(root),
        "cuda": _cuda_version(),
        "versions": {"ptedge": __version__, "python": platform.python_version()}
        | {name: _version(name, names) for name, names in PACKAGES.items()},
    }


def reading(root: Path = ROOT, ask: Ask = ask_nvidia_smi) -> dict[str, Any]:
    """What changes during a run: load, clocks, temperatures, power of each rail, throttling.

    Args:
        root: of the file system.
        ask: answers for nvidia-smi.

    Returns:
        As one of the report's ``readings``: MHz, degrees Celsius, W; without what this machine does not tell.
    """
    found = {
        "load": cpu.load(),
        "cpu_mhz": cpu.cpu_mhz(root),
        "gpu_mhz": jetson.gpu_mhz(root),
        "temperature_c": jetson.temperatures(root) or None,
        "rail_w": jetson.rail_power(root) or None,
        "over_current_events": jetson.over_current_events(root) or None,
    }
    return {name: value for name, value in found.items() if value is not None} | gpu_reading(ask)


def _cuda_version() -> str | None:
    """Newest CUDA that the driver supports."""
    cuda = ask_driver().cuda
    return f"{cuda[0]}.{cuda[1]}" if cuda and cuda[0] else None


def _version(module: str, distributions: tuple[str, ...]) -> str | None:
    """Of the loaded module, as JetPack's have no metadata; else of what is installed."""
    loaded = getattr(sys.modules.get("cv2" if module == "opencv" else module), "__version__", None)
    if loaded is not None:
        return str(loaded)
    return next((version for name in distributions if (version := version_of(name)) is not None), None)
