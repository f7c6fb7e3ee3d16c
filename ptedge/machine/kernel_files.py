"""The small files in which the kernel tells of itself (``/proc``, ``/sys``); one that is not there says nothing."""

from __future__ import annotations

from pathlib import Path

ROOT = Path("/")  # of the file system; tests make trees of their own


def whole_text(path: Path) -> str:
    """What a file says, without zero bytes and newlines at its ends; empty where it cannot be read."""
    try:
        return path.read_text("utf-8", "replace").strip("\0\n ")
    except OSError:
        return ""


def first_line(path: Path) -> str:
    """The first line of a file; empty where it cannot be read."""
    return whole_text(path).partition("\n")[0].strip("\0 ")


def number(path: Path) -> float | None:
    """The number that a file holds; ``None`` where it cannot be read or holds another text."""
    try:
        return float(first_line(path))
    except ValueError:
        return None


def most(root: Path, pattern: str) -> float | None:
    """The largest number in files of one kind; ``None`` where there is none.

    Args:
        root: folder to look in.
        pattern: of paths below it.
    """
    return max((value for path in root.glob(pattern) if (value := number(path)) is not None), default=None)
