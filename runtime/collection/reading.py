"""Readers of a field folder's images: while one is at work, no image is removed under it."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from ..field import IMAGES_NAME


@contextlib.contextmanager
def reading(folder: Path) -> Iterator[None]:
    """Keep images from being removed until the block ends; the system lets go when the process ends, however it does.

    Nothing is kept where the system has no locks: what is gone then is told by the reader.

    Args:
        folder: field folder.
    """
    descriptor = _opened(folder)
    try:
        if descriptor is not None and sys.platform != "win32":
            import fcntl

            with contextlib.suppress(OSError):
                fcntl.flock(descriptor, fcntl.LOCK_SH)
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


@contextlib.contextmanager
def removing(folder: Path) -> Iterator[bool]:
    """Keep readers out while images are removed.

    Args:
        folder: field folder.

    Yields:
        Whether images may be removed; not while a reader is at work.
    """
    descriptor = _opened(folder)
    free = True
    try:
        if descriptor is not None and sys.platform != "win32":
            import fcntl

            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                free = False
            except OSError:  # a file system without locks
                pass
        yield free
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _opened(folder: Path) -> int | None:
    """The folder of images, held open to be locked: a lock on it leaves no file behind, and needs no right to write."""
    if sys.platform == "win32":
        return None
    try:
        return os.open(folder / IMAGES_NAME, os.O_RDONLY)
    except OSError:
        return None
