"""A store that is far away, with copies of what was read from it in a folder.

Objects are never changed, so a copy is as good as the object. The copies are a store themselves, of the same keys: what
was read once can be read there while the other is away.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from ptedge.errors import StoreError
from ptedge.files import atomic_write
from ptedge.stores.folder import FolderStore
from ptedge.stores.store import Content, Item, Store, absent, check_key

_SAME_TIME = 1.0  # seconds by which two answers of a server about one object may differ


class CopiedStore:
    """Another store; what is read from its beginning is kept.

    Args:
        far: the store.
        copies: folder of the copies, for this store alone.
    """

    def __init__(self, far: Store, copies: FolderStore) -> None:
        self.far, self.copies = far, copies
        self._listed: dict[str, Item] = {}

    @property
    def address(self) -> str:
        """Of the store that is copied."""
        return self.far.address

    def put(self, key: str, content: Content) -> bool:
        """See :meth:`ptedge.stores.store.Store.put`; no copy is made."""
        return self.far.put(key, content)

    def get(self, key: str, start: int = 0, length: int | None = None) -> Iterator[bytes]:
        """See :meth:`ptedge.stores.store.Store.get`; from the copy, or for small objects, as it holds all in memory."""
        if self.copies.head(key) is not None:
            yield from self.copies.get(key, start, length)
            return
        content = b"".join(self.far.get(key, start, length))
        if start == 0 and (length is None or len(content) < length):
            with contextlib.suppress(StoreError, OSError):  # a full disk costs the copy alone
                self.copies.put(key, content)
                if (item := self._listed.get(key)) is not None:
                    self._date(item)
        yield content

    def head(self, key: str) -> Item | None:
        """See :meth:`ptedge.stores.store.Store.head`."""
        return self.far.head(key)

    def list(self, prefix: str = "") -> Iterator[Item]:
        """See :meth:`ptedge.stores.store.Store.list`; copies of what is not there any more are removed."""
        there = {item.key: item for item in self.far.list(prefix)}
        for copy in list(self.copies.list(prefix)):
            item = there.get(copy.key)
            # a store that was emptied and filled anew has other objects of the same keys
            if item is None or item.size != copy.size or abs(copy.modified - item.modified) > _SAME_TIME:
                self.copies.delete(copy.key)
        self._listed.update(there)
        yield from there.values()

    def delete(self, key: str) -> None:
        """See :meth:`ptedge.stores.store.Store.delete`; with its copy."""
        self.far.delete(key)
        self.copies.delete(key)

    def exclusive(self) -> bool:
        """See :meth:`ptedge.stores.store.Store.exclusive`."""
        return self.far.exclusive()

    def fetch(self, key: str) -> None:
        """Copy an object of any size, unless it is copied already.

        Args:
            key: of the object.

        Raises:
            StoreError: the store is away or refuses, or has no such object (AbsentError).
            OutputError: there is no room for it.
        """
        if self.copies.head(check_key(key)) is not None:
            return
        if (item := self.far.head(key)) is None:
            raise absent(self.far, key)
        with atomic_write(self.copies.path / key) as file:
            for piece in self.far.get(key):
                file.write(piece)
        self._date(item)

    def _date(self, item: Item) -> None:
        """A copy has the time of its object, by which another object of the same key is told from it."""
        os.utime(self.copies.path / item.key, (item.modified, item.modified))
