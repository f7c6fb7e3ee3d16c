"""What a Jetson tells beyond other machines: its release, power mode, clocks, supply rails; and thermal zones.

Everything is read from files of the kernel and from nvpmodel. Nothing is changed and nothing needs root.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from ptedge.machine.kernel_files import ROOT, first_line, number


def board_model(root: Path = ROOT) -> str:
    """Name of the board, of a Jetson and of any other with a device tree; empty elsewhere.

    Args:
        root: of the file system.
    """
    return first_line(root / "proc/device-tree/model")


def jetson_release(root: Path = ROOT) -> str:
    """Release of Jetson Linux, for example ``R36 (release), REVISION: 4.0``; empty on other machines.

    Args:
        root: of the file system.
    """
    return first_line(root / "etc/nv_tegra_release").lstrip("# ")


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
    digits = first_line(root / "var/lib/nvpmodel/status").removeprefix("pmode:")
    return str(int(digits)) if digits.isdigit() else None


def gpu_mhz(root: Path = ROOT) -> int | None:
    """Clock of a Jetson's GPU now, in MHz; ``None`` elsewhere.

    Args:
        root: of the file system.
    """
    for device in sorted(root.glob("sys/class/devfreq/*")):
        if re.search(r"gpu|g[apv]\d\db", device.name) and (hertz := number(device / "cur_freq")) is not None:
            return round(hertz / 1e6)
    return None


def temperatures(root: Path = ROOT) -> dict[str, float]:
    """Thermal zones by name, in degrees Celsius; the warmest of equal names, none that is switched off.

    Args:
        root: of the file system.
    """
    found: dict[str, float] = {}
    for zone in sorted(root.glob("sys/class/thermal/thermal_zone*")):
        value, name = number(zone / "temp"), first_line(zone / "type")
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
        if first_line(monitor / "name") != "ina3221":
            continue
        for label in sorted(monitor.glob("in*_label")):
            channel = label.name[2 : -len("_label")]
            volts, amperes = number(monitor / f"in{channel}_input"), number(monitor / f"curr{channel}_input")
            if volts is not None and amperes is not None:  # millivolts and milliamperes
                found[first_line(label)] = round(volts * amperes / 1e6, 3)
    for label in sorted(root.glob("sys/bus/i2c/drivers/ina3221x/*/iio:device*/rail_name_*")):  # JetPack 4
        value = number(label.parent / f"in_power{label.name.rpartition('_')[2]}_input")
        if value is not None:  # milliwatts
            found[first_line(label)] = round(value / 1000, 3)
    return found


def over_current_events(root: Path = ROOT) -> int:
    """How often a Jetson throttled for too much current since it was started.

    Args:
        root: of the file system.
    """
    return int(sum(number(path) or 0 for path in root.glob("sys/class/hwmon/hwmon*/oc*_event_cnt")))
