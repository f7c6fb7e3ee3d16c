"""Shards are plain tar files, the same bytes for the same frames."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile

from ptedge.shards.tar import ShardWriter

FRAMES = {hashlib.sha256(image).hexdigest(): image for image in (b"\xff\xd8one", b"\xff\xd8" + bytes(700), b"")}


def made() -> tuple[str, bytes]:
    writer = ShardWriter()
    for number, (key, image) in enumerate(FRAMES.items()):
        writer.add(key, image, {"file": f"{number}.jpg", "about": "a" * 64})
    assert writer.frames == 3
    return writer.finish()


def test_shard__is_read_by_any_reader_of_tar() -> None:
    digest, content = made()
    assert digest == hashlib.sha256(content).hexdigest()
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        files = [(member.name, tar.extractfile(member)) for member in tar]
    names = [name for name, _ in files]
    assert names == [f"{key}.{suffix}" for key in FRAMES for suffix in ("jpg", "json")]
    read = {name: file.read() for name, file in files if file is not None}
    assert {key: read[f"{key}.jpg"] for key in FRAMES} == FRAMES
    assert [json.loads(read[f"{key}.json"])["file"] for key in FRAMES] == ["0.jpg", "1.jpg", "2.jpg"]


def test_shard__has_one_name_wherever_and_whenever_it_is_made() -> None:
    assert made() == made()


def test_shard__ends_as_a_tar_does() -> None:
    writer = ShardWriter()
    assert (writer.size, writer.finish()[1]) == (0, bytes(1024))
    key, image = next(iter(FRAMES.items()))
    writer.add(key, image, {})
    assert writer.size == 4 * 512  # two headers, two contents
    assert len(writer.finish()[1]) == 6 * 512
