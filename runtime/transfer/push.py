"""Push: what a field folder has and a store has not, in shards of a few megabytes.

First what all frames have in common, then each shard, then its index. Whatever interrupts that, the next push finds
shards without an index, gives them theirs, and sends the frames that are in none: none is lost, and none goes twice.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ptedge.errors import StoreError
from ptedge.folders import hold_folder
from ptedge.progress import tracked
from ptedge.shards.index import ABOUT, Entry, Shard, index_lines
from ptedge.shards.tar import ShardWriter
from ptedge.stores.store import Store

from ..field import OF_THE_MOMENT, FieldFolder, open_field
from .known import PUSHED, Known, known_frames
from .uploads import Uploads

SHARD_BYTES = 32 << 20
AT_ONCE = 2  # uploads


@dataclass
class Pushed:
    """What a push came to.

    Attributes:
        frames: sent now.
        bytes: of the shards sent now.
        shards: sent now.
        there: frames that the store had.
        twice: frames whose image another frame of the folder has; one of them goes.
        gone: frames whose image is not in the folder any more.
        adopted: shards of an interrupted push that have their index now.
        broken: shards and indexes in the store that are not what they should be; told one by one.
    """

    frames: int = 0
    bytes: int = 0
    shards: int = 0
    there: int = 0
    twice: int = 0
    gone: int = 0
    adopted: int = 0
    broken: int = 0

    def to_json(self) -> dict[str, int]:
        """The counts by name."""
        return asdict(self)


def push(path: Path, store: Store, address: str, shard_bytes: int = SHARD_BYTES) -> Pushed:
    """Send the frames of a field folder that a store does not have.

    A device may collect meanwhile; what comes after the list was read goes with the next push.

    Args:
        path: field folder.
        store: where they go.
        address: of the store, as the user named it.
        shard_bytes: size at which a shard is full.

    Raises:
        ArtifactError: no field folder, or a broken one.
        OutputError: another push of this folder is at work.
        StoreError: the store refuses; what was sent is there, and the next push goes on.
    """
    folder = open_field(path)
    with hold_folder(path / PUSHED, "ptedge field push"):
        known = known_frames(store, address, path)
        pushed = Pushed(adopted=known.adopted, broken=known.broken)
        about = _put_about(folder, store)
        with Uploads(partial(_send, store), AT_ONCE) as uploads:
            for full in _shards(folder, known, about, shard_bytes, pushed):
                uploads.give(full)
        for shard in uploads.sent:
            pushed.shards += 1
            pushed.frames += len(shard.entries)
            pushed.bytes += shard.size
    return pushed


def _put_about(folder: FieldFolder, store: Store) -> str:
    """Put what all frames have in common; its digest."""
    values = {key: value for key, value in folder.about.items() if key not in OF_THE_MOMENT}
    content = json.dumps(values, ensure_ascii=False, sort_keys=True).encode()
    digest = hashlib.sha256(content).hexdigest()
    store.put(f"{ABOUT}{digest}.json", content)
    return digest


def _shards(
    folder: FieldFolder, known: Known, about: str, shard_bytes: int, pushed: Pushed
) -> Iterator[tuple[Shard, bytes]]:
    """Full shards of frames that are not there yet, and the rest."""
    writer, entries, own = ShardWriter(), list[Entry](), set[str]()
    for record in tracked(folder.records(), "pushing", total=folder.images):
        name = Path(record["file"]).name
        if known.has(name, int(record.get("bytes", -1))):
            pushed.there += 1
            continue
        try:
            image = (folder.path / record["file"]).read_bytes()
        except OSError:  # pruned since the list was read
            pushed.gone += 1
            continue
        key = hashlib.sha256(image).hexdigest()
        if key in own:
            pushed.twice += 1
        elif key in known.keys:
            pushed.there += 1
        else:
            own.add(key)
            writer.add(key, image, _travelling(record, name, about))
            width, height = (int(record.get(side) or 0) for side in ("width", "height"))
            entries.append(Entry(key, *writer.places[-2], *writer.places[-1], width, height, name))
            if writer.size >= shard_bytes:
                yield _finished(writer, entries, about)
    if entries:
        yield _finished(writer, entries, about)


def _travelling(record: dict[str, Any], name: str, about: str) -> dict[str, Any]:
    """A frame's record as it goes along: with the name alone, as the folder stays here."""
    return {**{key: value for key, value in record.items() if key != "bytes"}, "file": name, "about": about}


def _finished(writer: ShardWriter, entries: list[Entry], about: str) -> tuple[Shard, bytes]:
    """A full shard and what it holds, which :func:`ptedge.shards.index.shard_of` would find in it too."""
    digest, content = writer.finish()
    shard = Shard(digest, len(content), about, tuple(entries))
    entries.clear()
    return shard, content


def _send(store: Store, full: tuple[Shard, bytes]) -> Shard:
    """Put a shard, and when it is there, its index."""
    shard, content = full
    if not store.put(shard.key, content):
        there = store.head(shard.key)
        if there is not None and there.size != shard.size:  # its server was killed while it took it
            raise StoreError(f"{shard.key} in {store.address} is not whole. Remove it, and push again")
    store.put(shard.index_key, index_lines(shard))
    return shard
