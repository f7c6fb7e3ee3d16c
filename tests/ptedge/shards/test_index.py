"""The index of a shard: made from it, read back, and refused where it is not what it should be."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from ptedge.errors import StoreError
from ptedge.shards.index import (
    DamagedError,
    Shard,
    index_lines,
    indexed_shards,
    is_site,
    listed,
    parse_index,
    read_index,
    shard_of,
)
from ptedge.shards.tar import ShardWriter
from ptedge.stores.folder import FolderStore

ABOUT = "a" * 64


def made(*images: bytes) -> tuple[Shard, bytes]:
    writer = ShardWriter()
    for number, image in enumerate(images):
        record = {"file": f"{number}.jpg", "width": 8 + number, "height": 6, "about": ABOUT}
        writer.add(hashlib.sha256(image).hexdigest(), image, record)
    digest, content = writer.finish()
    return shard_of(digest, content), content


def test_shard_of__tells_where_each_frame_lies() -> None:
    images = [b"first", bytes(1000), b"third"]
    shard, content = made(*images)
    assert (shard.size, shard.about) == (len(content), ABOUT)
    assert [content[e.offset : e.offset + e.size] for e in shard.entries] == images
    records = [json.loads(content[e.record_offset : e.record_offset + e.record_size]) for e in shard.entries]
    assert [record["file"] for record in records] == [e.file for e in shard.entries] == ["0.jpg", "1.jpg", "2.jpg"]
    assert [(e.width, e.height) for e in shard.entries] == [(8, 6), (9, 6), (10, 6)]


@pytest.mark.parametrize("content", [b"", b"no tar at all", bytes(2000)], ids=["empty", "text", "zeros"])
def test_shard_of__refuses_what_is_no_shard(content: bytes) -> None:
    if content == bytes(2000):
        assert shard_of("d" * 64, content).entries == ()
        return
    with pytest.raises(DamagedError, match="no shard that ptedge wrote"):
        shard_of("d" * 64, content)


def test_shard_of__refuses_other_files_in_a_tar() -> None:
    writer = ShardWriter()
    writer.add("letter", b"1", {"about": ABOUT})
    with pytest.raises(DamagedError, match=r"letter\.jpg and letter\.json are no frame"):
        shard_of(*writer.finish())


def test_parse_index__gives_back_what_was_written() -> None:
    shard, _ = made(b"first", b"second")
    assert parse_index(index_lines(shard), "here") == shard


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"{", b"["),
        (b'"frames": 2', b'"frames": 3'),
        (b'"bytes": ', b'"bytes": -'),
        (b"jpg", b'jpg", "more'),
        (b"0.jpg", b"\xff.jpg"),
        (b", 8, 6,", b', "8", 6,'),
        (b", 512, 5,", b", 512, 500000,"),
        (b", 512, 5,", b", -512, 5,"),
        (ABOUT.encode(), b"../../etc/passwd"),
    ],
)
def test_parse_index__refuses_what_is_broken(old: bytes, new: bytes) -> None:
    content = index_lines(made(b"first", b"second")[0])
    assert old in content
    with pytest.raises(DamagedError, match="here is broken"):
        parse_index(content.replace(old, new), "here")
    with pytest.raises(DamagedError):
        parse_index(content[: len(content) // 2], "here")


def test_parse_index__of_a_newer_ptedge_is_no_damage() -> None:
    content = index_lines(made(b"first")[0]).replace(b'"schema": 1', b'"schema": 2')
    with pytest.raises(StoreError, match="Update ptedge") as told:
        parse_index(content, "here")
    assert not isinstance(told.value, DamagedError)


def test_indexed_shards__those_that_are_there_the_oldest_first(tmp_path: Path) -> None:
    import os

    store = FolderStore(tmp_path)
    shards = [made(bytes([i])) for i in range(4)]
    for number, (shard, content) in enumerate(shards):
        store.put(shard.key, content)
        store.put(shard.index_key, index_lines(shard))
        os.utime(tmp_path / shard.index_key, (2e9 - number, 2e9 - number))
    store.delete(shards[1][0].key)
    store.put("index/other.txt", b"")
    store.put("shards/other.tar", b"")
    assert [shard for shard in indexed_shards(store)] == [shards[i][0] for i in (3, 2, 0)]
    assert [len(found) for found in listed(store)] == [3, 4]


def test_read_index__of_another_shard(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    store.put(f"index/{'b' * 64}.jsonl", index_lines(made(b"1")[0]))
    with pytest.raises(DamagedError, match="tells of another shard"):
        read_index(store, "b" * 64)


def test_is_site(tmp_path: Path) -> None:
    assert is_site("s3://bucket/site")
    assert not is_site(str(tmp_path)) and not is_site(str(tmp_path / "absent")) and not is_site("x" * 5000)
    (tmp_path / "shards").mkdir()
    (tmp_path / "index").mkdir()
    assert is_site(str(tmp_path))
    (tmp_path / "field.json").touch()
    assert not is_site(str(tmp_path))
