"""The computer itself: cores, memory, disk, whether it is a Jetson or a container."""

from __future__ import annotations

import shutil
from pathlib import Path

from ptedge.machine.cpu import usable_cores
from ptedge.machine.finding import Finding
from ptedge.machine.kernel_files import ROOT, whole_text
from ptedge.machine.memory import main_memory


def check_host(folder: Path = Path()) -> Finding:
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
        return Finding("machine", "machine", "problem", ", ".join(parts) + ": make room before anything is written")
    return Finding("machine", "machine", "info", ", ".join(parts))


def check_jetson(model: str, release: str) -> Finding | None:
    """The Jetson model and its release; ``None`` on any other machine.

    Args:
        model: name of the board, :func:`ptedge.machine.jetson.board_model`.
        release: of Jetson Linux, :func:`ptedge.machine.jetson.jetson_release`.
    """
    if not release and "Jetson" not in model:
        return None
    return Finding("jetson", "Jetson", "info", ", ".join(filter(None, [model, release])))


def in_container(root: Path = ROOT) -> bool:
    """Whether this is inside a container.

    Args:
        root: of the file system.
    """
    if (root / ".dockerenv").exists() or (root / "run/.containerenv").exists():
        return True
    groups = whole_text(root / "proc/1/cgroup")
    return any(word in groups for word in ("docker", "containerd", "kubepods"))
