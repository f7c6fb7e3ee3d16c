"""A store whose requests fail when they are told to, and what must be true of a site after whatever happened."""

from __future__ import annotations

import hashlib
import io
import tarfile
import threading
from collections import Counter
from collections.abc import Iterator

from ptedge.errors import StoreError
from ptedge.shards.index import indexed_shards, listed
from ptedge.stores.store import Content, Item, Store, read_whole


class FaultyStore:
    """Another store, one request of which fails.

    Args:
        store: that does the work.
        number: of the request that fails, from 0; ``None`` for none.
        after: it fails after it was carried out, as when the answer is lost.
    """

    def __init__(self, store: Store, number: int | None = None, after: bool = False) -> None:
        self.store, self.number, self.after = store, number, after
        self.requests = 0
        self._lock = threading.Lock()

    @property
    def address(self) -> str:
        return self.store.address

    def put(self, key: str, content: Content) -> bool:
        fails = self._fails()
        if fails and not self.after:
            raise StoreError(f"put of {key} failed")
        new = self.store.put(key, content)
        if fails:
            raise StoreError(f"the answer to put of {key} was lost")
        return new

    def get(self, key: str, start: int = 0, length: int | None = None) -> Iterator[bytes]:
        if self._fails():
            raise StoreError(f"get of {key} failed")
        return self.store.get(key, start, length)

    def head(self, key: str) -> Item | None:
        if self._fails():
            raise StoreError(f"head of {key} failed")
        return self.store.head(key)

    def list(self, prefix: str = "") -> Iterator[Item]:
        if self._fails():
            raise StoreError(f"list of {prefix} failed")
        return self.store.list(prefix)

    def delete(self, key: str) -> None:
        if self._fails():
            raise StoreError(f"delete of {key} failed")
        self.store.delete(key)

    def exclusive(self) -> bool:
        return self.store.exclusive()

    def _fails(self) -> bool:
        with self._lock:
            self.requests += 1
            return self.number is not None and self.requests == self.number + 1


def troubles(store: Store) -> list[str]:
    """What is wrong with a site: shards that are not whole, frames twice, indexes of what is not there."""
    found: list[str] = []
    shards, index = listed(store)
    found += [f"{digest} is indexed and not there" for digest in index if digest not in shards]
    images: Counter[str] = Counter()
    for digest, item in shards.items():
        content = read_whole(store, item.key, 1 << 30)
        if hashlib.sha256(content).hexdigest() != digest:
            found.append(f"{item.key} is not whole")
            continue
        images.update(keys_in(content))
    found += [f"frame {key} is there {count} times" for key, count in images.items() if count > 1]
    indexed = [entry.key for shard in indexed_shards(store) for entry in shard.entries]
    if len(index) == len(shards) and sorted(indexed) != sorted(images):
        found.append("the indexes do not tell what the shards hold")
    return found


def keys_in(shard: bytes) -> list[str]:
    """Frames of a shard by the content of their images, read as any tar."""
    with tarfile.open(fileobj=io.BytesIO(shard)) as tar:
        files = [tar.extractfile(member) for member in tar if member.name.endswith(".jpg")]
        return [hashlib.sha256(file.read()).hexdigest() for file in files if file is not None]


def frames_in(store: Store) -> set[str]:
    """All indexed frames."""
    return {entry.key for shard in indexed_shards(store) for entry in shard.entries}
