"""Memory of this machine and of processes, always in bytes: who shows a number divides it for the reader."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NamedTuple

import psutil

if TYPE_CHECKING:
    import resource


class Memory(NamedTuple):
    """Main memory of the machine in bytes: what a program could still get without swapping, and all there is."""

    available: int
    total: int


def main_memory() -> Memory:
    """Main memory now."""
    found = psutil.virtual_memory()
    return Memory(int(found.available), int(found.total))


def resident_memory() -> int:
    """Bytes of main memory that this process holds now."""
    return int(psutil.Process().memory_info().rss)


def peak_memory() -> int | None:
    """The most bytes that this process has held so far; ``None`` on Windows, which does not say it this way."""
    if sys.platform == "win32":
        return None
    import resource

    return peak_of(resource.getrusage(resource.RUSAGE_SELF))


def peak_of(usage: resource.struct_rusage) -> int:
    """The most bytes held by the process that ``usage`` is of.

    Args:
        usage: of :func:`resource.getrusage` or :func:`os.wait4`; ``ru_maxrss`` is in KiB, on macOS in bytes.
    """
    return int(usage.ru_maxrss) * (1 if sys.platform == "darwin" else 1024)
