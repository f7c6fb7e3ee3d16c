"""Pull: the frames of a store, or of another field folder, that a field folder has not, each held to its hash."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from ptedge.errors import ClassMismatchError, InputError, StoreError
from ptedge.files import parse_json
from ptedge.folders import hold_folder
from ptedge.progress import tracked
from ptedge.shards.index import ABOUT, Entry, Shard, indexed_shards
from ptedge.stores.store import Store, read_whole

from ..field import OF_THE_MOMENT, FieldFolder, create_field, open_field

MOST_ABOUT = 4 << 20
AT_ONCE = 16 << 20  # bytes of neighbouring frames that one request asks for


@dataclass
class Pulled:
    """What a pull came to.

    Attributes:
        frames: new in the folder.
        bytes: of their images.
        there: frames that the folder had.
        damaged: frames that are not what was pushed or collected; they are left out.
        gone: frames that were pruned from the other folder meanwhile.
    """

    frames: int = 0
    bytes: int = 0
    there: int = 0
    damaged: int = 0
    gone: int = 0

    def to_json(self) -> dict[str, int]:
        """The counts by name."""
        return asdict(self)


def pull(store: Store, out: Path, without: Sequence[Path] = ()) -> Pulled:
    """Fetch the frames that a folder does not have, the oldest shards first.

    Args:
        store: of a site.
        out: field folder, made where there is none; an interrupted pull is gone on with.
        without: other field folders; what they have is passed over, too.

    Raises:
        StoreError: the store refuses; what was fetched is there, and the next pull goes on.
        InputError: the store holds no frames.
        ClassMismatchError: they are of a model with other classes than those of the folder.
        OutputError: the folder is in use, holds something else or is not writable.
    """
    shards = list(indexed_shards(store))
    if not shards:
        raise InputError(f"{store.address} holds no frames. ptedge field push puts them there")
    common = {digest: _about(store, digest) for digest in {shard.about for shard in shards}}
    pulled = Pulled()
    with hold_folder(out, "ptedge field pull"):
        folder = create_field(out, common[shards[0].about])
        for shard in shards:
            _same_classes(store.address, common[shard.about], folder)
        have = _keys_of(folder, without)
        missing = sum(1 for shard in shards for entry in shard.entries if entry.key not in have)
        entries = _fetched(store, shards, have, pulled)
        for entry, content in tracked(entries, "pulling", total=missing):
            _keep(folder, entry, content, pulled)
        folder.save_about()
    return pulled


def copy_frames(source: Path, out: Path, without: Sequence[Path] = ()) -> Pulled:
    """As :func:`pull`, out of another field folder, which a device may add to and prune meanwhile.

    Args:
        source: field folder.
        out: see :func:`pull`.
        without: see :func:`pull`.

    Raises:
        ArtifactError: ``source`` is no field folder, or a broken one.
        ClassMismatchError, OutputError: see :func:`pull`.
    """
    origin, pulled = open_field(source), Pulled()
    about = {key: value for key, value in origin.about.items() if key not in OF_THE_MOMENT}
    with hold_folder(out, "ptedge field pull"):
        folder = create_field(out, about)
        _same_classes(str(source), about, folder)
        have = _keys_of(folder, without)
        known = {(key[:12], size) for key, size in have.items()}
        for record in tracked(origin.records(), "pulling", total=origin.images):
            head, size = Path(record["file"]).stem.rpartition("_")[2], int(record.pop("bytes", -1))
            if (head, size) in known:
                pulled.there += 1
                continue
            try:
                image = (source / record["file"]).read_bytes()
            except OSError:  # pruned since the list was read
                pulled.gone += 1
                continue
            key = hashlib.sha256(image).hexdigest()
            if key in have:
                pulled.there += 1
            elif len(image) != size or not key.startswith(head):
                pulled.damaged += 1
                click.echo(f"{source / record['file']} is damaged: it is not what was collected", err=True)
            else:
                have[key] = size
                _add(folder, key, image, record, pulled)
        folder.save_about()
    return pulled


def _keys_of(folder: FieldFolder, without: Sequence[Path]) -> dict[str, int]:
    """The sha256 and the bytes of each frame of field folders that were pulled."""
    folders = [folder, *map(open_field, without)]
    return {str(r.get("sha256")): int(r.get("bytes", 0)) for one in folders for r in one.records()}


def _about(store: Store, digest: str) -> dict[str, Any]:
    key = f"{ABOUT}{digest}.json"
    content = read_whole(store, key, MOST_ABOUT)
    try:
        values = parse_json(content)
    except ValueError:
        values = None
    if hashlib.sha256(content).hexdigest() != digest or not isinstance(values, dict):
        raise StoreError(f"{key} in {store.address} is damaged: its content is not what its name says")
    return values


def _same_classes(address: str, about: dict[str, Any], folder: FieldFolder) -> None:
    names = [str(name) for name in about.get("class_names", ())]
    if names != list(folder.class_names):
        raise ClassMismatchError(
            address, names, str(folder.path), folder.class_names, "Pull each into a folder of its own"
        )


def _fetched(
    store: Store, shards: Sequence[Shard], have: dict[str, int], pulled: Pulled
) -> Iterator[tuple[Entry, bytes]]:
    """Frames that are not there yet, each with the bytes of its image and its record, read a stretch at a time."""
    for shard in shards:
        missing = [entry for entry in shard.entries if entry.key not in have]
        pulled.there += len(shard.entries) - len(missing)
        have.update((entry.key, entry.size) for entry in missing)
        for stretch in _stretches(missing):
            start = stretch[0].offset
            end = max(_end(entry) for entry in stretch)
            content = b"".join(store.get(shard.key, start, end - start))
            for entry in stretch:
                yield entry, content[entry.offset - start : _end(entry) - start]


def _stretches(entries: Iterable[Entry]) -> Iterator[list[Entry]]:
    """Frames that lie close to one another, in order."""
    stretch: list[Entry] = []
    for entry in sorted(entries, key=lambda entry: entry.offset):
        if stretch and (entry.offset - _end(stretch[-1]) > entry.size or _end(entry) - stretch[0].offset > AT_ONCE):
            yield stretch
            stretch = []
        stretch.append(entry)
    if stretch:
        yield stretch


def _end(entry: Entry) -> int:
    return max(entry.offset + entry.size, entry.record_offset + entry.record_size)


def _keep(folder: FieldFolder, entry: Entry, content: bytes, pulled: Pulled) -> None:
    """Add a frame to the folder, if it is what was pushed."""
    image = content[: entry.size]
    start = entry.record_offset - entry.offset
    try:
        record = parse_json(content[start : start + entry.record_size])
        whole = isinstance(record, dict) and hashlib.sha256(image).hexdigest() == entry.key
    except ValueError:
        whole = False
    if not whole:
        pulled.damaged += 1
        click.echo(f"{entry.file or entry.key} in the store is damaged: it is not what was pushed", err=True)
        return
    record.pop("about", None)
    _add(folder, entry.key, image, record, pulled)


def _add(folder: FieldFolder, key: str, image: bytes, record: dict[str, Any], pulled: Pulled) -> None:
    """Add a frame under a number of this folder; its record keeps the name it was collected under."""
    kept = {name: value for name, value in record.items() if name != "file"}
    kept |= {"collected_as": Path(str(record.get("file", ""))).name, "sha256": key}
    folder.last_id += 1
    folder.add(f"{folder.last_id:08d}_{key[:12]}.jpg", image, kept)
    pulled.frames += 1
    pulled.bytes += len(image)
