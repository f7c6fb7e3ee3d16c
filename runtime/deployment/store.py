"""Where a deployment is kept: five verbs, and a folder that has them.

What is there never changes: a key is put once. So whoever reads while another writes, or after a crash, finds a key
whole or not at all.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from ptedge.errors import ArtifactError
from ptedge.files import write_error

TEMPORARY = ".tmp"  # folder of files that are not whole yet, on the file system they will be on
NO_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})


class Store(Protocol):
    """Named contents. Keys are relative paths with ``/``."""

    def put(self, key: str, content: bytes) -> bool:
        """Store a content under a key that is not there yet, whole and durably.

        Returns:
            Whether it was stored; False where the key is there already, which then stays as it is.

        Raises:
            OutputError: not writable, or full.
        """
        ...

    def get(self, key: str) -> bytes:
        """The content of a key.

        Raises:
            ArtifactError: not there, or not readable.
        """
        ...

    def head(self, key: str) -> int | None:
        """Bytes of a key's content; ``None`` where it is not there."""
        ...

    def list(self, prefix: str) -> list[str]:
        """All keys that begin so, sorted."""
        ...

    def delete(self, key: str) -> None:
        """Remove a key; nothing where it is not there.

        Raises:
            OutputError: not writable.
        """
        ...


class FolderStore:
    """A folder as a :class:`Store`: a key is a file.

    A file is written under another name, put on disk, linked to its own name, and the folder put on disk: power may
    fail at any of these, and the key is whole or absent. A link, unlike a rename, does not replace what is there.

    Attributes:
        root: the folder.
    """

    def __init__(self, root: Path) -> None:
        """Take a folder; it is made when something is put.

        Args:
            root: of the keys.
        """
        self.root = root
        self._count = 0

    def put(self, key: str, content: bytes) -> bool:
        """See :meth:`Store.put`."""
        path = self.root / key
        try:
            _make_folder(path.parent)
            if path.exists():
                _sync(path.parent)  # who put it may not have come so far
                return False
            with self._temporary(content) as temporary:
                new = _link(temporary, path)
                _sync(path.parent)
            return new
        except OSError as error:
            raise write_error(path, error) from None

    def get(self, key: str) -> bytes:
        """See :meth:`Store.get`."""
        try:
            return (self.root / key).read_bytes()
        except OSError as error:
            raise ArtifactError(f"cannot read {self.root / key}: {error.strerror}") from None

    def head(self, key: str) -> int | None:
        """See :meth:`Store.head`."""
        try:
            return (self.root / key).stat().st_size
        except OSError:
            return None

    def list(self, prefix: str) -> list[str]:
        """See :meth:`Store.list`."""
        top = self.root / prefix.rpartition("/")[0]
        files = (path for path in top.rglob("*") if path.is_file())
        keys = (path.relative_to(self.root).as_posix() for path in files)
        return sorted(key for key in keys if key.startswith(prefix) and not key.startswith(TEMPORARY))

    def delete(self, key: str) -> None:
        """See :meth:`Store.delete`."""
        path = self.root / key
        try:
            path.unlink(missing_ok=True)
            if path.parent.is_dir():
                _sync(path.parent)
        except OSError as error:
            raise write_error(path, error) from None

    @contextlib.contextmanager
    def _temporary(self, content: bytes) -> Iterator[Path]:
        """A file of that content, on disk, until the block ends."""
        folder = self.root / TEMPORARY
        _make_folder(folder)
        _remove_left(folder)
        self._count += 1
        path = folder / f"{os.getpid()}-{self._count}"
        try:
            with open(path, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            yield path
        finally:
            path.unlink(missing_ok=True)


def _make_folder(path: Path) -> None:
    """Make a folder and those above it, each on disk before anything is put into it."""
    if path.is_dir():
        return
    _make_folder(path.parent)
    with contextlib.suppress(FileExistsError):
        path.mkdir()
    _sync(path.parent)


def _sync(folder: Path) -> None:
    """Have the names of a folder on disk, where the system lets a folder be opened."""
    if sys.platform == "win32":
        return
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _link(temporary: Path, path: Path) -> bool:
    """Give a file its name; False where another has it."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        # a file system without links, as of a memory card: two writers in the same instant are not kept apart here
        if path.exists():
            return False
        os.rename(temporary, path)
    return True


def _remove_left(folder: Path) -> None:
    """Remove what killed processes left; a process that is alive goes on with its own."""
    if sys.platform == "win32":  # where signal 0 is no question
        return
    for left in folder.iterdir():
        try:
            os.kill(int(left.name.partition("-")[0]), 0)
        except ProcessLookupError:
            left.unlink(missing_ok=True)
        except (ValueError, OSError):
            continue  # no name of ours, or alive and of another user
