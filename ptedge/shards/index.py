"""The index of a shard: which frames it holds and where in it they lie, so that one frame can be read alone.

``index/DIGEST.jsonl`` tells of ``shards/DIGEST.tar``: a line about the shard, then one a frame. It is put after its
shard, so what is indexed is there; and it follows from the shard, so whoever finds a shard without an index can put the
very same one.
"""

from __future__ import annotations

import io
import json
import re
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ptedge.errors import StoreError
from ptedge.files import parse_json
from ptedge.stores.opening import is_address
from ptedge.stores.store import Item, Store, read_whole

SCHEMA = 1
SHARDS, INDEX, ABOUT = "shards/", "index/", "about/"
MOST_INDEX = 256 << 20  # bytes of one index; a million frames have 300 MB
_DIGEST = re.compile(r"[0-9a-f]{64}")
_SHARD = re.compile(rf"{SHARDS}([0-9a-f]{{64}})\.tar")
_INDEX = re.compile(rf"{INDEX}([0-9a-f]{{64}})\.jsonl")


class DamagedError(StoreError):
    """An index or a shard is there and not what it should be; its text says which."""


@dataclass(frozen=True)
class Entry:
    """A frame in a shard.

    Attributes:
        key: sha256 of the image.
        offset: of the image in the shard, bytes.
        size: of the image, bytes.
        record_offset: of its record, which is JSON.
        record_size: of its record.
        width: of the image in pixels; 0 where the record does not say.
        height: see ``width``.
        file: name of the image where it was collected.
    """

    key: str
    offset: int
    size: int
    record_offset: int
    record_size: int
    width: int = 0
    height: int = 0
    file: str = ""


@dataclass(frozen=True)
class Shard:
    """A shard, as its index tells.

    Attributes:
        digest: sha256 of it.
        size: bytes.
        about: digest of the object that tells what its frames have in common.
        entries: its frames in order.
    """

    digest: str
    size: int
    about: str
    entries: tuple[Entry, ...]

    @property
    def key(self) -> str:
        """Of the shard in the store."""
        return f"{SHARDS}{self.digest}.tar"

    @property
    def index_key(self) -> str:
        """Of its index."""
        return f"{INDEX}{self.digest}.jsonl"


def shard_of(digest: str, content: bytes) -> Shard:
    """What a shard holds, from the shard itself.

    Args:
        digest: sha256 of it.
        content: the tar file.

    Raises:
        DamagedError: it is no shard of ours.
    """
    entries, about = [], ""
    try:
        with tarfile.open(fileobj=io.BytesIO(content)) as tar:
            members = iter(tar)
            for image, record in zip(members, members, strict=True):
                key = image.name.removesuffix(".jpg")
                if not _DIGEST.fullmatch(key) or record.name != f"{key}.json":
                    raise ValueError(f"{image.name} and {record.name} are no frame")
                start = record.offset_data
                values = parse_json(content[start : start + record.size])
                about = str(values["about"])
                width, height = (int(values.get(side) or 0) for side in ("width", "height"))
                file, where = str(values.get("file", "")), image.offset_data
                entries.append(Entry(key, where, image.size, start, record.size, width, height, file))
    except (tarfile.TarError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DamagedError(f"{SHARDS}{digest}.tar is no shard that ptedge wrote ({error})") from None
    return Shard(digest, len(content), about, tuple(entries))


def index_lines(shard: Shard) -> bytes:
    """The content of a shard's index.

    Args:
        shard: to tell of.
    """
    head = {"schema": SCHEMA, "shard": shard.digest, "bytes": shard.size, "about": shard.about}
    lines: list[Any] = [{**head, "frames": len(shard.entries)}]
    lines += [
        [e.key, e.offset, e.size, e.record_offset, e.record_size, e.width, e.height, e.file] for e in shard.entries
    ]
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines).encode()


def parse_index(content: bytes, where: str) -> Shard:
    """Read an index, which anybody may have written.

    Args:
        content: as :func:`index_lines` makes it.
        where: what to call it in errors.

    Raises:
        DamagedError: it is none.
        StoreError: it is a newer one.
    """
    try:
        lines = content.decode("utf-8").rstrip("\n").split("\n")
        head = parse_json(lines[0])
        if isinstance(head, dict) and isinstance(head.get("schema"), int) and head["schema"] > SCHEMA:
            raise StoreError(f"{where} has schema {head['schema']}, this ptedge reads up to {SCHEMA}. Update ptedge")
        entries = tuple(Entry(*parse_json(line)) for line in lines[1:])
        shard = Shard(head["shard"], head["bytes"], head["about"], entries)
        good = head["frames"] == len(entries) and all(_DIGEST.fullmatch(text) for text in (shard.digest, shard.about))
        if not good or not all(_is_inside(entry, shard.size) for entry in entries):
            raise ValueError("its numbers are not those of a shard")
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise DamagedError(f"{where} is broken ({error}). Remove it: the next push writes it anew") from None
    return shard


def _is_inside(entry: Entry, size: int) -> bool:
    numbers = (entry.offset, entry.size, entry.record_offset, entry.record_size, entry.width, entry.height)
    return (
        all(isinstance(number, int) and number >= 0 for number in numbers)
        and max(entry.offset + entry.size, entry.record_offset + entry.record_size) <= size
        and isinstance(entry.file, str)
        and _DIGEST.fullmatch(entry.key) is not None
    )


def listed(store: Store) -> tuple[dict[str, Item], dict[str, Item]]:
    """Digests of the shards that are there, and of those that are indexed.

    Args:
        store: of a site.

    Returns:
        Digest -> shard, and digest -> index; what has other names is passed over.
    """
    shards = {found[1]: item for item in store.list(SHARDS) if (found := _SHARD.fullmatch(item.key))}
    index = {found[1]: item for item in store.list(INDEX) if (found := _INDEX.fullmatch(item.key))}
    return shards, index


def read_index(store: Store, digest: str) -> Shard:
    """The index of one shard.

    Args:
        store: of a site.
        digest: of the shard.

    Raises:
        StoreError: it is not there; DamagedError: it is broken.
    """
    key = f"{INDEX}{digest}.jsonl"
    shard = parse_index(read_whole(store, key, MOST_INDEX), f"{key} in {store.address}")
    if shard.digest != digest:
        raise DamagedError(f"{key} in {store.address} tells of another shard. Remove it: the next push writes it anew")
    return shard


def indexed_shards(store: Store) -> Iterator[Shard]:
    """All shards that are there and indexed, the oldest first.

    Args:
        store: of a site.

    Raises:
        StoreError: the store refuses, or an index is broken.
    """
    shards, index = listed(store)
    for digest in sorted(index, key=lambda digest: (index[digest].modified, digest)):
        if digest in shards:
            yield read_index(store, digest)


def is_site(spec: str) -> bool:
    """Whether a text names frames in a store: its address, or a folder that holds shards and their index.

    Args:
        spec: as the user typed it.
    """
    if is_address(spec):
        return True
    folder = Path(spec)
    try:
        return (folder / SHARDS).is_dir() and (folder / INDEX).is_dir() and not (folder / "field.json").exists()
    except OSError:  # longer than a name may be
        return False
