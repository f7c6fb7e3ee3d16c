"""A folder as a store: a key is a path below it. For disks, sticks and network drives.

An object is written under a name of its own in ``.incoming/`` and synced, then linked to its key: the link fails where
the key is taken, so of two writers one is first, and a reader finds all of an object or none. A power loss leaves at
most a file in ``.incoming/``, which a later writer removes.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

from ptedge.errors import StoreError
from ptedge.files import open_regular, sync_folder, take_name
from ptedge.stores.store import Content, Item, absent, check_key

INCOMING = ".incoming"
PIECE = 1 << 20
ABANDONED = 86400.0  # seconds after which a file that nobody finished is removed


class FolderStore:
    """Objects as files below a folder.

    Args:
        path: the folder; made by the first :meth:`put`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._swept = False

    @property
    def address(self) -> str:
        """The folder."""
        return str(self.path)

    def put(self, key: str, content: Content) -> bool:
        """See :meth:`ptedge.stores.store.Store.put`."""
        target = self._file(key)
        if os.path.lexists(target):
            sync_folder(target.parent)  # its writer may have been killed before that
            return False
        incoming = self.path / INCOMING
        temporary = incoming / uuid.uuid4().hex
        try:
            incoming.mkdir(parents=True, exist_ok=True)
            self._sweep(incoming)
            with open(temporary, "xb") as file:
                if isinstance(content, Path):
                    with open_regular(content) as source:
                        shutil.copyfileobj(source, file, PIECE)
                else:
                    file.write(content)
                file.flush()
                os.fsync(file.fileno())
            self._make_folder(target.parent)
            new = take_name(temporary, target)
            sync_folder(target.parent)
        except OSError as error:
            raise self._refused("put", key, error) from None
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
        return new

    def get(self, key: str, start: int = 0, length: int | None = None) -> Iterator[bytes]:
        """See :meth:`ptedge.stores.store.Store.get`."""
        left = length
        try:
            with open_regular(self._file(key)) as file:
                file.seek(start)
                while left is None or left > 0:
                    piece = file.read(PIECE if left is None else min(PIECE, left))
                    if not piece:
                        return
                    left = None if left is None else left - len(piece)
                    yield piece
        except (FileNotFoundError, NotADirectoryError):
            raise absent(self, key) from None
        except OSError as error:
            raise self._refused("read", key, error) from None

    def head(self, key: str) -> Item | None:
        """See :meth:`ptedge.stores.store.Store.head`."""
        try:
            with open_regular(self._file(key)) as file:
                status = os.fstat(file.fileno())
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return None
        except OSError as error:
            raise self._refused("read", key, error) from None
        return Item(key, status.st_size, status.st_mtime)

    def list(self, prefix: str = "") -> Iterator[Item]:
        """See :meth:`ptedge.stores.store.Store.list`."""
        folder = prefix.rpartition("/")[0]
        if folder:
            check_key(folder)
        found: list[str] = []
        try:
            if not self.path.is_dir():
                if self.path.exists():
                    raise StoreError(f"{self.path} is a file, not a folder that could be a store")
                return
            for parent, folders, names in os.walk(self.path / folder, onerror=self._unlistable):
                folders[:] = [name for name in folders if not name.startswith(".")]
                below = Path(parent).relative_to(self.path).as_posix()
                found += [name if below == "." else f"{below}/{name}" for name in names if not name.startswith(".")]
        except OSError as error:
            raise self._refused("list", prefix, error) from None
        for key in sorted((key for key in found if key.startswith(prefix)), key=os.fsencode):
            with contextlib.suppress(StoreError):  # of a name that is no key: not of our making
                if (item := self.head(key)) is not None:
                    yield item

    def delete(self, key: str) -> None:
        """See :meth:`ptedge.stores.store.Store.delete`."""
        try:
            self._file(key).unlink(missing_ok=True)
        except NotADirectoryError:
            return
        except OSError as error:
            raise self._refused("remove", key, error) from None

    def exclusive(self) -> bool:
        """See :meth:`ptedge.stores.store.Store.exclusive`; a link is there once."""
        return True

    def _file(self, key: str) -> Path:
        return self.path / check_key(key)

    def _make_folder(self, folder: Path) -> None:
        """Make a folder below the store so that a power loss does not take it away again."""
        missing = []
        while not folder.is_dir():
            missing.append(folder)
            folder = folder.parent
        for path in reversed(missing):
            path.mkdir(exist_ok=True)
            sync_folder(path.parent)

    def _sweep(self, incoming: Path) -> None:
        """Once: remove what writers left who did not come to their end."""
        if self._swept:
            return
        self._swept = True
        for left in os.scandir(incoming):
            with contextlib.suppress(OSError):
                if time.time() - left.stat(follow_symlinks=False).st_mtime > ABANDONED:
                    os.unlink(left.path)

    def _unlistable(self, error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            raise error

    def _refused(self, verb: str, key: str, error: OSError) -> StoreError:
        return StoreError(
            f"cannot {verb} {key or 'it'} in {self.path}: {error.strerror or error}. "
            f"Check that the folder is there, writable and not full"
        )
