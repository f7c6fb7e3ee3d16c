"""Single frames out of the shards of a store, over and over as training does it, without a copy of the store."""

from __future__ import annotations

import hashlib
import os
import threading
from collections import OrderedDict
from dataclasses import dataclass

from ptedge.errors import InputError
from ptedge.shards.index import Entry, indexed_shards
from ptedge.stores.opening import open_store
from ptedge.stores.store import Store

KEPT_BYTES = 256 << 20  # of encoded frames that a process keeps, those read last


@dataclass(frozen=True)
class StoredFrame:
    """A frame in a store. It can go to another process, which opens the store for itself.

    Attributes:
        address: of the store.
        shard: key of its shard.
        entry: where it lies in it.
    """

    address: str
    shard: str
    entry: Entry

    @property
    def name(self) -> str:
        """The image's name where it was collected, below its shard."""
        return f"{self.shard}/{self.entry.file or self.entry.key + '.jpg'}"

    def read(self) -> bytes:
        """The image as JPEG, held to its hash.

        Raises:
            StoreError: the store refuses, or the shard is not there any more.
            InputError: it is not the image that its key says.
        """
        return _MEMORY.read(self)


def stored_frames(address: str) -> list[StoredFrame]:
    """All frames of a site, the shards that came first first; each once, however often it was pushed.

    Args:
        address: of the store.

    Raises:
        StoreError: the store refuses, or an index is broken.
        InputError: there is no frame.
    """
    store = open_store(address)
    found: dict[str, StoredFrame] = {}
    for shard in indexed_shards(store):
        for entry in shard.entries:
            found.setdefault(entry.key, StoredFrame(address, shard.key, entry))
    if not found:
        raise InputError(f"{store.address} holds no frames. ptedge field push puts them there")
    return list(found.values())


class _Memory:
    """Stores that this process opened, and the frames it read last."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._stores: dict[str, Store] = {}
        self._kept: OrderedDict[str, bytes] = OrderedDict()
        self._size = 0

    def read(self, frame: StoredFrame) -> bytes:
        key = frame.entry.key
        if self._process != os.getpid():  # a worker that was forked: connections and locks are its parent's
            self.__init__()  # type: ignore[misc]
        with self._lock:
            if (image := self._kept.get(key)) is not None:
                self._kept.move_to_end(key)
                return image
            if (store := self._stores.get(frame.address)) is None:
                store = self._stores[frame.address] = open_store(frame.address)
        image = b"".join(store.get(frame.shard, frame.entry.offset, frame.entry.size))
        if hashlib.sha256(image).hexdigest() != key:
            raise InputError(f"{frame.name} in {store.address} is damaged: it is not what was pushed")
        with self._lock:
            if key not in self._kept:
                self._kept[key] = image
                self._size += len(image)
            while self._size > KEPT_BYTES:
                self._size -= len(self._kept.popitem(last=False)[1])
        return image


_MEMORY = _Memory()
