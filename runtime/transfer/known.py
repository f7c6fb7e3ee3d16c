"""What a store holds already, so that no frame goes there twice.

The indexes of the store are the truth. Each is read once: copies lie in ``.pushed/`` of the field folder, and count
only while the store lists the index and its shard.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from ptedge.errors import OutputError, StoreError
from ptedge.files import atomic_write, read_bounded
from ptedge.shards.index import MOST_INDEX, DamagedError, Shard, index_lines, listed, parse_index, read_index, shard_of
from ptedge.stores.store import Item, Store, read_whole

PUSHED = ".pushed"
MOST_SHARD = 4 << 30  # bytes of a shard whose index has to be made anew


@dataclass
class Known:
    """Frames of a store.

    Attributes:
        keys: sha256 of their images.
        files: name and bytes of each where it was collected -> key.
        adopted: shards without an index, which they have now.
        broken: shards and indexes that are not what they should be; their frames are sent again.
    """

    keys: set[str] = field(default_factory=set)
    files: dict[tuple[str, int], str] = field(default_factory=dict)
    adopted: int = 0
    broken: int = 0

    def add(self, shard: Shard) -> None:
        """Note the frames of a shard."""
        for entry in shard.entries:
            self.keys.add(entry.key)
            self.files[entry.file, entry.size] = entry.key

    def has(self, file: str, size: int) -> bool:
        """Whether a frame is there, by its name, which has the first 12 digits of its hash in it.

        Args:
            file: name of the image, as ``00000001_d9e641dea29b.jpg``.
            size: of it in bytes.
        """
        key = self.files.get((file, size))
        return key is not None and Path(file).stem.rpartition("_")[2] == key[:12]


def known_frames(store: Store, address: str, folder: Path) -> Known:
    """Learn what a store holds, and put the index of each shard that has none: its writer was interrupted.

    Args:
        store: of the site.
        address: of the store, as the user named it; copies of two stores are kept apart by it.
        folder: the field folder.

    Raises:
        StoreError: the store refuses.
    """
    known = Known()
    copies = folder / PUSHED / hashlib.sha256(address.encode()).hexdigest()[:16]
    shards, index = listed(store)
    for digest in sorted(shards):
        if digest in index and (shard := _told(known, _indexed, store, copies, shards[digest])):
            known.add(shard)
        elif shard := _told(known, _found, store, digest):
            known.add(shard)
            if digest not in index:
                store.put(shard.index_key, index_lines(shard))
                known.adopted += 1
    _forget(copies, set(index))
    return known


def _told(known: Known, read: Callable[..., Shard], *words: Any) -> Shard | None:
    """A shard; ``None`` where it or its index is not what it should be, which is told and counted."""
    try:
        return read(*words)
    except DamagedError as error:  # any other is of the store, which may answer next time: nothing is sent till then
        known.broken += 1
        click.echo(str(error), err=True)
        return None


def _indexed(store: Store, copies: Path, item: Item) -> Shard:
    """What an index tells of a shard that is there."""
    digest = Path(item.key).stem
    shard = _copied(store, copies, digest)
    if shard.size != item.size:
        raise DamagedError(f"{shard.key} in {store.address} is not whole. Remove it, and push again")
    return shard


def _copied(store: Store, copies: Path, digest: str) -> Shard:
    copy = copies / f"{digest}.jsonl"
    with contextlib.suppress(OSError, StoreError):
        return parse_index(read_bounded(copy, MOST_INDEX), str(copy))
    shard = read_index(store, digest)
    with contextlib.suppress(OutputError), atomic_write(copy) as file:  # a full disk costs the copy alone
        file.write(index_lines(shard))
    return shard


def _found(store: Store, digest: str) -> Shard:
    """What a shard without an index holds."""
    content = read_whole(store, f"shards/{digest}.tar", MOST_SHARD)
    if hashlib.sha256(content).hexdigest() != digest:
        raise DamagedError(
            f"shards/{digest}.tar in {store.address} is damaged: its content is not what its name says. Remove it"
        )
    return shard_of(digest, content)


def _forget(copies: Path, index: set[str]) -> None:
    with contextlib.suppress(OSError):
        for copy in copies.iterdir():
            if copy.stem not in index:
                copy.unlink()
