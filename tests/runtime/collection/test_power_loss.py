"""A field folder that is full, collects triples of masked frames, and loses power at any moment."""

from __future__ import annotations

import hashlib
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from made_field import found, policy, scene
from power_loss import CASES, each_loss

from ptedge.frames.source import Frame
from ptedge.runtime.field import create_field
from ptedge.runtime.masks import Mask, Masks
from ptedge.runtime.sinks.collect import FieldSink
from ptedge.runtime.sinks.files import Result

FULL = policy({"random": 1.0}, quota={"images": 5}, triples=True)
MASKS = Masks([Mask(((0, 0), (0.5, 0), (0.5, 1), (0, 1)))])


def collect(folder: Path, first: int, count: int) -> FieldSink:
    sink = FieldSink(folder, FULL, ("car",), "hash", {})
    for i in range(first, first + count):
        image = scene(i)
        hidden = MASKS.of("a", image)
        assert hidden is not None
        sink.write(Result(Frame(hidden.hide(image), i, i / 10, "a", None), found(), ("car",), hidden=hidden))
    sink.close()
    return sink


def looked_at(folder: Path) -> list[dict[str, Any]]:
    """The lines after the next start, when all that must hold does."""
    for path in (folder / "images").iterdir():  # before anything is repaired, half files included
        picture = cv2.imdecode(np.frombuffer(path.read_bytes() or b"\0", np.uint8), cv2.IMREAD_COLOR)
        assert picture is None or picture[:, :32].max() < 12
    opened = create_field(folder, {"class_names": ["car"]})
    records = list(opened.records())
    assert {Path(record["file"]).name for record in records} == {path.name for path in (folder / "images").iterdir()}
    for record in records:
        data = (folder / record["file"]).read_bytes()
        assert hashlib.sha256(data).hexdigest()[:12] == Path(record["file"]).stem[9:]
        assert record["bytes"] == len(data)
    places = Counter((record["triple"], record["place"]) for record in records)
    assert all(count == 1 for count in places.values())
    assert all((record["triple"], 0) in places for record in records)  # no neighbour of nothing
    assert opened.images == len(records) <= 5
    numbers = [int(Path(record["file"]).name[:8]) for record in records]
    assert numbers == sorted(numbers) and opened.last_id >= max(numbers, default=0)
    return records


def test_collect__evicts_and_adds_triples_of_masked_frames_wherever_power_fails(tmp_path: Path) -> None:
    collect(tmp_path / "before", 0, 6)
    held = {record["file"]: record for record in looked_at(tmp_path / "before")}
    assert len(held) == 5
    made = iter(range(100_000))

    def make() -> Path:
        return Path(shutil.copytree(tmp_path / "before", tmp_path / f"disk{next(made)}"))

    evicted = losses = 0
    for disk, lost in each_loss(make, evicting):
        for case in CASES:
            left = tmp_path / f"left{next(made)}"
            records = looked_at(disk.left(case, left))
            same = [record for record in records if record["file"] in held]
            assert all(record == held[record["file"]] for record in same)
            # a triple went as a whole or is there as a whole
            gone = {record["triple"] for name, record in held.items() if name not in {r["file"] for r in same}}
            assert not gone & {record["triple"] for record in same}
            evicted += bool(gone)
            shutil.rmtree(left)
        losses += lost
        shutil.rmtree(disk.root)
    assert losses > 30 and evicted > 10


def evicting(folder: Path) -> None:
    assert collect(folder, 20, 4).counters["evicted"] > 0
