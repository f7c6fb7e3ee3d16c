"""A disk that loses power: stops at the k-th change of a folder, and shows what may be there afterwards.

A file's content is on disk when the file was put there (fsync), a name in a folder when the folder was. What was not
may be there all the same, or not: three cases are made of it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

# all reached the disk; only what was synced; all names did, contents only where synced
CASES = ("all", "synced", "names")
CHANGES = ("os.link", "os.rename", "os.mkdir", "os.rmdir", "os.remove", "os.truncate")


class PowerLossError(BaseException):
    """The machine is off: nothing that runs afterwards changes the disk."""


class Disk:
    """A folder that is watched.

    Attributes:
        root: the folder.
        changes: how many so far.
    """

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self.changes = 0
        self._stop_at = -1
        self._contents: dict[int, bytes] = {}
        self._names: dict[int, dict[str, int]] = {}
        self._open: list[int] = []  # keeps numbers of inodes from being given again
        for path in [self.root, *self.root.rglob("*")]:
            number = os.open(path, os.O_RDONLY)
            self._remember(number)
            os.close(number)

    def lose_power_at(self, change: int) -> None:
        """Stop at a change, counted from 0, and at every later one."""
        self._stop_at = change

    def left(self, case: str, target: Path) -> Path:
        """What is there after the loss, as another folder."""
        if case == "all":
            shutil.copytree(self.root, target)
        else:
            self._rebuild(self.root.stat().st_ino, self.root, case, target)
        return target

    def close(self) -> None:
        """Let go of all files."""
        for number in self._open:
            os.close(number)

    def happens(self, path: object) -> None:
        """Count a change of a path, if it is in the folder."""
        if isinstance(path, (str, bytes, os.PathLike)):
            text = os.path.abspath(os.fsdecode(path))
            if text == str(self.root) or text.startswith(f"{self.root}/"):
                self.changes += 1
                if 0 <= self._stop_at < self.changes:
                    raise PowerLossError

    def sync(self, number: int) -> None:
        """Stands for os.fsync: nothing reaches the real disk, which would take long."""
        path = os.readlink(f"/proc/self/fd/{number}")
        before = self.changes
        self.happens(path)
        if self.changes > before:
            self._remember(number)

    def _remember(self, number: int) -> None:
        about = os.fstat(number)
        self._open.append(os.dup(number))
        if stat.S_ISDIR(about.st_mode):
            with os.scandir(number) as entries:
                self._names[about.st_ino] = {entry.name: entry.inode() for entry in entries}
        else:
            self._contents[about.st_ino] = Path(f"/proc/self/fd/{number}").read_bytes()

    def _rebuild(self, inode: int, now: Path, case: str, target: Path) -> None:
        target.mkdir()
        there = {path.name: path.stat().st_ino for path in now.iterdir()} if now.is_dir() else {}
        for name, child in (there if case == "names" else self._names.get(inode, {})).items():
            if child in self._contents:
                (target / name).write_bytes(self._contents[child])
            elif child in self._names or (now / name).is_dir():
                self._rebuild(child, now / name, case, target / name)
            else:
                (target / name).write_bytes(b"")


_watched: list[Disk] = []
_hooked: list[bool] = []  # there is no way to take a hook out again; it does nothing without a disk


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    for disk in _watched:
        if event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            disk.happens(arguments[0])
        elif event in CHANGES:
            disk.happens(arguments[1] if event in ("os.link", "os.rename") else arguments[0])


@contextlib.contextmanager
def watched(root: Path) -> Iterator[Disk]:
    """Watch a folder until the block ends."""
    if not _hooked:
        sys.addaudithook(_hook)
        _hooked.append(True)
    disk = Disk(root)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", disk.sync)
        _watched.append(disk)
        try:
            yield disk
        finally:
            _watched.clear()
            disk.close()


def each_loss(make: Callable[[], Path], act: Callable[[Path], None]) -> Iterator[tuple[Disk, bool]]:
    """Do a thing again and again, power failing one change later each time, until it comes to its end.

    Args:
        make: a fresh folder.
        act: what is done to it.

    Yields:
        The disk after each, and whether power failed; the last time it did not.
    """
    for change in range(10_000):
        folder = make()
        with watched(folder) as disk:
            disk.lose_power_at(change)
            lost = False
            try:
                act(folder)
            except PowerLossError:
                lost = True
            _watched.clear()
            yield disk, lost
        if not lost:
            return
