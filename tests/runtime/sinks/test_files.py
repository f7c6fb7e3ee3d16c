from __future__ import annotations

import csv
import errno
import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_results import FOUND, NAMES, result

from ptedge.detections import Detections
from ptedge.errors import OutputError
from ptedge.frames.images import read_image
from ptedge.runtime.sinks.files import CocoSink, CsvSink, ImagesSink, JsonlSink, Result, encode_jpeg, image_name


def test_jsonl__each_line_is_on_disk_at_once(tmp_path: Path) -> None:
    sink = JsonlSink(tmp_path / "d.jsonl")
    sink.write(result(3, file="a.jpg", time=0.5))
    line = json.loads((tmp_path / "d.jsonl").read_text("utf-8"))  # before close
    assert line == {
        "frame": 3,
        "time": 0.5,
        "file": "a.jpg",
        "width": 120,
        "height": 80,
        "detections": FOUND.to_json(NAMES),
    }
    assert list(line["detections"][0]) == ["label", "class", "score", "box", "sigma", "entropy"]
    sink.write(result(4, Detections.empty()))
    sink.close()
    assert len((tmp_path / "d.jsonl").read_text("utf-8").splitlines()) == 2


def test_csv__a_row_a_detection(tmp_path: Path) -> None:
    sink = CsvSink(tmp_path / "d.csv")
    sink.write(result(7))
    sink.write(result(8, Detections.empty()))
    sink.close()
    with open(tmp_path / "d.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(r["frame"], r["class"], r["x2"], r["sigma_y2"], r["entropy"]) for r in rows] == [
        ("7", "car", "40.0", "4.0", "0.25"),
        ("7", "Fußgänger", "3.0", "0.5", "0.75"),
    ]


def test_coco__reads_back(tmp_path: Path) -> None:
    sink = CocoSink(tmp_path / "coco.json", NAMES, "rtsp://me:secret@camera/1")
    sink.write(result(0, file="a.jpg"))
    sink.write(result(1, Detections.empty()))
    assert not (tmp_path / "coco.json").exists()
    sink.close()
    text = (tmp_path / "coco.json").read_text("utf-8")
    document = json.loads(text)
    assert "secret" not in text
    assert document["info"] and document["licenses"][0]["id"] == document["images"][0]["license"]
    assert [c["id"] for c in document["categories"]] == [1, 2]
    assert [i["file_name"] for i in document["images"]] == ["a.jpg", "000001.jpg"]
    first = document["annotations"][0]
    assert first["bbox"] == [10, 20, 30, 40] and first["area"] == 1200 and first["sigma"] == [1, 2, 3, 4]
    assert [(a["id"], a["image_id"], a["category_id"]) for a in document["annotations"]] == [(1, 1, 1), (2, 1, 2)]


def test_coco__no_frames(tmp_path: Path) -> None:
    CocoSink(tmp_path / "coco.json", NAMES, "x").close()
    assert json.loads((tmp_path / "coco.json").read_text())["images"] == []


def test_images__named_by_number_and_file(tmp_path: Path) -> None:
    sink = ImagesSink(tmp_path / "images")
    sink.write(result(0, file="x/1.png"))
    sink.write(result(1, file="y/1.jpg"))
    sink.write(result(2))
    sink.close()
    assert sorted(p.name for p in (tmp_path / "images").iterdir()) == ["000000_1.jpg", "000001_1.jpg", "000002.jpg"]
    picture = read_image(tmp_path / "images" / "000002.jpg")
    assert np.abs(picture[75, 110].astype(int) - (200, 100, 50)).max() < 8  # colours in order: red is red
    assert image_name(result(2).frame) == "000002.jpg"


@pytest.mark.parametrize("name", ["x" * 250, "写" * 83, "ü" * 125])
def test_images__long_names_are_shortened(tmp_path: Path, name: str) -> None:
    sink = ImagesSink(tmp_path / "images")
    sink.write(result(0, file=f"in/{name}.png"))
    (written,) = (tmp_path / "images").iterdir()
    assert written.name.startswith(f"000000_{name[:60]}") and len(os.fsencode(written.name)) <= 211


def test_annotated__leaves_out_low_scores() -> None:
    frame = result().frame
    np.testing.assert_array_equal(Result(frame, FOUND, NAMES, draw_score=0.95).annotated, frame.image)
    assert (Result(frame, FOUND, NAMES, draw_score=0.9).annotated != frame.image).any()


@pytest.mark.parametrize("kind", [JsonlSink, CsvSink, ImagesSink])
def test_sinks__place_that_cannot_be_written(tmp_path: Path, kind: type) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot write"):
        kind(tmp_path / "file" / "x")


class Full:
    """A file on a disk that has room for so many bytes."""

    def __init__(self, file: Any, room: int) -> None:
        self._file, self._room = file, room

    def write(self, data: bytes) -> int:
        part = data[: self._room - self._file.tell()]
        if not part:
            raise OSError(errno.ENOSPC, "No space left on device")
        return int(self._file.write(part))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


@pytest.mark.parametrize("kind", [JsonlSink, CsvSink])
def test_line_files__a_full_disk_leaves_whole_lines(tmp_path: Path, kind: type) -> None:
    sink = kind(tmp_path / "x")
    sink.write(result(0))
    before = (tmp_path / "x").read_bytes()
    sink._file = Full(sink._file, len(before) + 30)
    with pytest.raises(OutputError, match="the disk is full"):
        sink.write(result(1))
    assert (tmp_path / "x").read_bytes() == before
    sink.close()


def test_images__each_appears_under_its_name_when_it_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = ImagesSink(tmp_path / "images")
    original = Path.write_bytes

    def half(self: Path, data: bytes) -> int:
        original(self, data[: len(data) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", half)
    with pytest.raises(OutputError, match="the disk is full"):
        sink.write(result(0))
    assert list((tmp_path / "images").iterdir()) == []


@pytest.mark.parametrize("number", [errno.ENAMETOOLONG, errno.EILSEQ, errno.EINVAL])
def test_images__a_name_that_the_file_system_refuses_costs_one_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    sink = ImagesSink(tmp_path / "images")

    def refuse(self: Path, data: bytes) -> int:
        raise OSError(number, "this name is not taken")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", refuse)
        for i in range(2):
            sink.write(result(i, file="a:b.png"))
    sink.write(result(2))
    assert sink.left_out.count == 2
    assert sink.left_out.first == f"{tmp_path}/images/000000_a:b.jpg: this name is not taken"
    assert [p.name for p in (tmp_path / "images").iterdir()] == ["000002.jpg"]


@pytest.mark.parametrize(("width", "fits"), [(65_500, True), (65_501, False)])
def test_encode_jpeg__as_large_as_jpeg_can_be(width: int, fits: bool) -> None:
    image = np.zeros((2, width, 3), np.uint8)
    if fits:
        assert encode_jpeg(image, 90).startswith(b"\xff\xd8")
        return
    with pytest.raises(ValueError, match="65501 x 2 pixels are too large for JPEG, which has 65500 a side at most"):
        encode_jpeg(image, 90)


def test_result__name_that_is_no_utf8_in_every_file(tmp_path: Path) -> None:
    odd = result(0, file=os.fsdecode(b"caf\xe9.png"))
    assert json.loads(odd.text)["file"] == odd.file == r"caf\xe9.png"
    csv_sink = CsvSink(tmp_path / "d.csv")
    coco = CocoSink(tmp_path / "coco.json", NAMES, "x")
    for sink in (csv_sink, coco):
        sink.write(odd)
        sink.close()
    assert r"caf\xe9.png" in (tmp_path / "d.csv").read_text("utf-8")
    assert json.loads((tmp_path / "coco.json").read_text("utf-8"))["images"][0]["file_name"] == r"caf\xe9.png"


@pytest.mark.skipif(os.name != "posix", reason="a folder that is open cannot be removed there")
@pytest.mark.parametrize("again", [False, True])
def test_images__the_folder_is_taken_away(tmp_path: Path, again: bool) -> None:
    sink = ImagesSink(tmp_path / "images")
    sink.write(result(0))
    shutil.rmtree(tmp_path / "images")
    if again:
        (tmp_path / "images").mkdir()
    with pytest.raises(OutputError, match="images was removed or replaced while the run was writing"):
        sink.write(result(1))
    sink.close()
    assert not again or list((tmp_path / "images").iterdir()) == []
