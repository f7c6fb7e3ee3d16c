"""What the numbers of a benchmark depend on besides the model: the machine, its settings, and how it fares meanwhile.

Everything is read from files of the kernel and from nvidia-smi and nvpmodel where those exist; what a machine does not
tell is left out. Nothing is changed and nothing needs root.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from ptedge import __version__

from .gpu import Ask, ask_nvidia_smi, gpu_facts, gpu_reading

ROOT = Path("/")
CPUFREQ = "sys/devices/system/cpu/cpufreq/policy*"
PACKAGES = {
    "onnxruntime": ("onnxruntime-gpu", "onnxruntime"),
    "opencv": ("opencv-python-headless", "opencv-python", "opencv-contrib-python"),
    "numpy": ("numpy",),
    "tensorrt": ("tensorrt", "tensorrt-cu13", "tensorrt-cu12"),
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
        "machine": _text(root / "proc/device-tree/model") or None,
        "cpu": cpu_model(root),
        "cores": os.cpu_count(),
        "cores_usable": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "cpu_quota": cpu_quota(root),
        "cpu_governor": _only([_text(path) for path in root.glob(f"{CPUFREQ}/scaling_governor")]),
        "cpu_mhz_max": _most(root, f"{CPUFREQ}/scaling_max_freq", 1e3),
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "threads": threads,
        "gpu": gpu_facts(ask),
        "jetson_release": _text(root / "etc/nv_tegra_release").lstrip("# ").split(", GCID")[0] or None,
        "power_mode": power_mode(root),
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
    found: dict[str, Any] = {}
    if hasattr(os, "getloadavg"):
        found["load"] = round(os.getloadavg()[0], 2)
    if (clock := _most(root, f"{CPUFREQ}/scaling_cur_freq", 1e3)) is not None:
        found["cpu_mhz"] = clock
    if (clock := _jetson_gpu_mhz(root)) is not None:
        found["gpu_mhz"] = clock
    if zones := temperatures(root):
        found["temperature_c"] = zones
    if rails := rail_power(root):
        found["rail_w"] = rails
    if events := over_current_events(root):
        found["over_current_events"] = events
    return found | gpu_reading(ask)


def temperatures(root: Path = ROOT) -> dict[str, float]:
    """Thermal zones by name, in degrees Celsius; the warmest of equal names, none that is switched off.

    Args:
        root: of the file system.
    """
    found: dict[str, float] = {}
    for zone in sorted(root.glob("sys/class/thermal/thermal_zone*")):
        value, name = _number(zone / "temp"), _text(zone / "type")
        if name and value is not None and value > 0:  # a zone that is off reads 0 or -256000
            found[name] = max(found.get(name, 0.0), round(value / 1000, 1))
    return found


def rail_power(root: Path = ROOT) -> dict[str, float]:
    """Power of each supply rail that an INA3221 measures (Jetson), in W.

    Args:
        root: of the file system.
    """
    found: dict[str, float] = {}
    for monitor in sorted(root.glob("sys/class/hwmon/hwmon*")):
        if _text(monitor / "name") != "ina3221":
            continue
        for label in sorted(monitor.glob("in*_label")):
            channel = label.name[2 : -len("_label")]
            volts, amperes = _number(monitor / f"in{channel}_input"), _number(monitor / f"curr{channel}_input")
            if volts is not None and amperes is not None:  # millivolts and milliamperes
                found[_text(label)] = round(volts * amperes / 1e6, 3)
    for label in sorted(root.glob("sys/bus/i2c/drivers/ina3221x/*/iio:device*/rail_name_*")):  # JetPack 4
        value = _number(label.parent / f"in_power{label.name.rpartition('_')[2]}_input")
        if value is not None:  # milliwatts
            found[_text(label)] = round(value / 1000, 3)
    return found


def over_current_events(root: Path = ROOT) -> int:
    """How often a Jetson throttled for too much current since it was started.

    Args:
        root: of the file system.
    """
    return int(sum(_number(path) or 0 for path in root.glob("sys/class/hwmon/hwmon*/oc*_event_cnt")))


def power_mode(root: Path = ROOT) -> str | None:
    """Name or number of a Jetson's power mode, ``None`` elsewhere.

    Args:
        root: of the file system.
    """
    program = shutil.which("nvpmodel") if root == ROOT else None
    if program is not None:
        try:
            done = subprocess.run([program, "-q"], capture_output=True, text=True, timeout=5, check=True)
        except (OSError, subprocess.SubprocessError):
            done = None
        if done is not None and (named := re.search(r"NV Power Mode:\s*(\S+)", done.stdout)):
            return named.group(1)
    number = _text(root / "var/lib/nvpmodel/status").removeprefix("pmode:")
    return str(int(number)) if number.isdigit() else None


def cpu_quota(root: Path = ROOT) -> float | None:
    """Cores that a container may use on average; ``None`` without a limit.

    Args:
        root: of the file system.
    """
    words = _text(root / "sys/fs/cgroup/cpu.max").split()
    if len(words) == 2 and words[0].isdigit() and words[1].isdigit() and int(words[1]) > 0:
        return round(int(words[0]) / int(words[1]), 2)
    return None


def cpu_model(root: Path = ROOT) -> str:
    """The processor's name.

    Args:
        root: of the file system.
    """
    lines = _text(root / "proc/cpuinfo", whole=True).splitlines()
    named = [line.partition(":")[2].strip() for line in lines if line.lower().startswith(("model name", "hardware"))]
    return (named or [_text(root / "proc/device-tree/model")])[0] or platform.processor() or platform.machine()


def _jetson_gpu_mhz(root: Path) -> float | None:
    for device in sorted(root.glob("sys/class/devfreq/*")):
        if re.search(r"gpu|g[apv]\d\db", device.name) and (value := _number(device / "cur_freq")) is not None:
            return round(value / 1e6)
    return None


def _cuda_version() -> str | None:
    """Newest CUDA that the driver supports."""
    import ctypes

    version = ctypes.c_int(0)
    try:
        if ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(version)) != 0:
            return None
    except (OSError, AttributeError):
        return None
    return f"{version.value // 1000}.{version.value % 1000 // 10}" if version.value else None


def _version(module: str, distributions: tuple[str, ...]) -> str | None:
    """Of the loaded module, as JetPack's have no metadata; else of what is installed."""
    loaded = getattr(sys.modules.get("cv2" if module == "opencv" else module), "__version__", None)
    if loaded is not None:
        return str(loaded)
    for name in distributions:
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return None


def _only(values: list[str]) -> str | None:
    """One text for values that are mostly all the same."""
    return ", ".join(sorted({value for value in values if value})) or None


def _most(root: Path, pattern: str, unit: float) -> float | None:
    values = [value for path in root.glob(pattern) if (value := _number(path)) is not None]
    return round(max(values) / unit) if values else None


def _number(path: Path) -> float | None:
    try:
        return float(_text(path))
    except ValueError:
        return None


def _text(path: Path, whole: bool = False) -> str:
    try:
        text = path.read_text("utf-8", "replace").strip("\0\n ")
    except OSError:
        return ""
    return text if whole else text.partition("\n")[0]
