"""Room on the disk: how much collecting leaves free, and what is said when no more is there."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from ptedge.files import shown_name

from .policy import Quota

LEAST_FREE, MOST_FREE = 128 << 10, 1 << 30  # bytes left free, whatever the share of the disk
USABLE = 0.8  # of the room for images; the rest is for the list and its copy while it is written anew


class Space:
    """The disk that a field folder is on.

    Attributes:
        quota: as given, with bytes that the disk has room for, and no less than is there already.
    """

    def __init__(self, path: Path, images: int, held: int, quota: Quota, tell: Callable[[str], None]) -> None:
        """Look at the disk; say so where it has less room than may be collected, or more is there.

        Args:
            path: field folder, which exists.
            images: in it.
            held: bytes of those images.
            quota: as given.
            tell: gets sentences for the user.
        """
        self._path, self._tell, self._told = path, tell, False
        self._share = quota.free_share
        disk = shutil.disk_usage(path)
        room = max(1, int(USABLE * (held + max(0, disk.free - self._floor(disk.total)))))
        self.quota = quota
        if images > quota.images or held > quota.bytes:
            # a folder that was collected with other limits, or pulled: what is there was wanted
            self.quota = replace(quota, images=max(images, quota.images), bytes=max(held, quota.bytes))
            tell(
                f"{shown_name(str(path))} holds {images} images, {in_words(held)}, more than the {quota.images} and "
                f"{in_words(quota.bytes)} that may be there. It grows no further; ptedge field prune makes it smaller"
            )
        elif room < quota.bytes:
            self.quota = replace(quota, bytes=max(held, room))
            tell(
                f"the disk of {shown_name(str(path))} has room for {in_words(room)} of the {in_words(quota.bytes)} "
                "that may be collected; beyond that the least informative frames make way for better ones"
            )

    def lacks(self, need: int) -> bool:
        """Whether so many bytes more would take what is to stay free; the first time this is told.

        Args:
            need: bytes.
        """
        disk = shutil.disk_usage(self._path)
        floor = self._floor(disk.total)
        if disk.free - need >= floor:
            return False
        if not self._told:
            self._told = True
            self._tell(
                f"collecting into {shown_name(str(self._path))} pauses: {in_words(disk.free)} of the disk's "
                f"{in_words(disk.total)} are free, and {in_words(floor)} of them stay free (free_share "
                f"{self._share:g}). Remove files there; it goes on by itself"
            )
        return True

    def _floor(self, total: int) -> int:
        return min(max(int(self._share * total), LEAST_FREE), MOST_FREE)


def in_words(size: int) -> str:
    """A number of bytes for a sentence."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6)):
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return f"{size / 1e3:.0f} kB"
