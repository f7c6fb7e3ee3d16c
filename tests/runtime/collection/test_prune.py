from __future__ import annotations

from pathlib import Path

import pytest
from made_field import collect, found, names, policy

from ptedge.errors import OutputError
from ptedge.runtime.collection.prune import prune
from ptedge.runtime.collection.reading import reading
from ptedge.runtime.field import open_field


def doubted(folder: Path) -> None:
    """Frames 20 to 24, kept for doubt that was 0.3, 0.1, 0.5, 0.2, 0.4 above all before."""
    values = [0.0] * 20 + [0.3, 0.1, 0.5, 0.2, 0.4]
    collect(folder, policy({"entropy": 1.0}), count=25, detections=lambda i: found(entropy=values[i]))


def test_prune__least_informative_first(tmp_path: Path) -> None:
    doubted(tmp_path / "f")
    assert prune(open_field(tmp_path / "f"), None, 2) == 3
    after = open_field(tmp_path / "f")
    assert [record["frame"] for record in after.records()] == [22, 24]
    assert len(list((tmp_path / "f" / "images").iterdir())) == 2 == after.about["images"]
    biggest = max(record["bytes"] for record in after.records())
    assert prune(after, biggest, None) == 1
    assert prune(open_field(tmp_path / "f"), 10**9, 100) == 0


def test_prune__exact_limits_keep_what_fits(tmp_path: Path) -> None:
    collect(tmp_path / "f", count=3)
    size = open_field(tmp_path / "f").size
    assert prune(open_field(tmp_path / "f"), size, 3) == 0
    assert prune(open_field(tmp_path / "f"), size, 2) == 1
    rest = open_field(tmp_path / "f").size
    assert prune(open_field(tmp_path / "f"), rest - 1, None) == 1
    assert prune(open_field(tmp_path / "f"), None, 0) == 1


def test_prune__keep_txt_and_exports_at_work(tmp_path: Path) -> None:
    collect(tmp_path / "f", count=3)
    (tmp_path / "f" / "keep.txt").write_text(names(tmp_path / "f")[1])
    with reading(tmp_path / "f"), pytest.raises(OutputError, match="being exported"):
        prune(open_field(tmp_path / "f"), None, 0)
    assert prune(open_field(tmp_path / "f"), None, 0) == 2
    assert [record["frame"] for record in open_field(tmp_path / "f").records()] == [1]


def test_prune__a_triple_goes_as_a_whole(tmp_path: Path) -> None:
    collect(tmp_path / "f", policy({"random": 1}, triples=True), count=9)
    folder = open_field(tmp_path / "f")
    assert folder.images == 8
    assert prune(folder, None, 7) in (2, 3)
    places = [record["place"] for record in open_field(tmp_path / "f").records()]
    assert places.count(0) == 2
