"""The processor: its name, the cores that this process may use, its clocks."""

from __future__ import annotations

import os
import platform
from pathlib import Path

from ptedge.machine.kernel_files import ROOT, first_line, most, whole_text

CPUFREQ = "sys/devices/system/cpu/cpufreq/policy*"


def usable_cores() -> int:
    """Cores that this process may use, in a container or under ``taskset`` fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def cpu_model(root: Path = ROOT) -> str:
    """The processor's name.

    Args:
        root: of the file system.
    """
    lines = whole_text(root / "proc/cpuinfo").splitlines()
    named = [line.partition(":")[2].strip() for line in lines if line.lower().startswith(("model name", "hardware"))]
    board = first_line(root / "proc/device-tree/model")
    return (named or [board])[0] or platform.processor() or platform.machine()


def cpu_quota(root: Path = ROOT) -> float | None:
    """Cores that a container may use on average; ``None`` without a limit.

    Args:
        root: of the file system.
    """
    words = first_line(root / "sys/fs/cgroup/cpu.max").split()
    if len(words) == 2 and words[0].isdigit() and words[1].isdigit() and int(words[1]) > 0:
        return round(int(words[0]) / int(words[1]), 2)
    return None


def cpu_governor(root: Path = ROOT) -> str | None:
    """How the kernel chooses clocks, for example ``schedutil``; several where cores differ, ``None`` where unknown.

    Args:
        root: of the file system.
    """
    names = {first_line(path) for path in root.glob(f"{CPUFREQ}/scaling_governor")}
    return ", ".join(sorted(name for name in names if name)) or None


def cpu_mhz(root: Path = ROOT) -> int | None:
    """Clock of the fastest core now, in MHz; ``None`` where unknown.

    Args:
        root: of the file system.
    """
    return _mhz(most(root, f"{CPUFREQ}/scaling_cur_freq"))


def cpu_mhz_max(root: Path = ROOT) -> int | None:
    """The highest clock that the fastest core is allowed, in MHz; ``None`` where unknown.

    Args:
        root: of the file system.
    """
    return _mhz(most(root, f"{CPUFREQ}/scaling_max_freq"))


def load() -> float | None:
    """Processes that wanted to run, on average over the last minute; ``None`` where the system does not tell."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None


def _mhz(kilohertz: float | None) -> int | None:
    return None if kilohertz is None else round(kilohertz / 1e3)
