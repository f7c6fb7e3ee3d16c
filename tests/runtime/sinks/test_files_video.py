from __future__ import annotations

import csv
import dataclasses
import errno
import json
import os
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from ptedge.detections import Detections
from ptedge.errors import OutputError
from ptedge.frames.images import read_image
from ptedge.frames.source import Frame, FrameSource
from ptedge.runtime.sinks.choose import open_sinks, written
from ptedge.runtime.sinks.files import CocoSink, CsvSink, ImagesSink, JsonlSink, Result, image_name
from ptedge.runtime.sinks.video import VideoSink, fit
from ptedge.runtime.stats import SourceStats

NAMES = ("car", "Fußgänger")
FOUND = Detections(
    np.array([[10, 20, 40, 60], [1, 2, 3, 4]], np.float32),
    np.array([0.9, 0.5], np.float32),
    np.array([0, 1]),
    np.array([[1, 2, 3, 4], [0.5, 0.5, 0.5, 0.5]], np.float32),
    np.array([0.25, 0.75], np.float32),
)


def result(index: int = 0, found: Detections = FOUND, file: str | None = None, time: float | None = None) -> Result:
    image = np.full((80, 120, 3), (200, 100, 50), np.uint8)
    return Result(Frame(image, index, time, "here", file), found, NAMES)


def video_frames(path: Path) -> int:
    capture, count = cv2.VideoCapture(str(path)), 0
    while capture.grab():
        count += 1
    capture.release()
    return count


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


def test_annotated__leaves_out_low_scores() -> None:
    frame = result().frame
    np.testing.assert_array_equal(Result(frame, FOUND, NAMES, draw_score=0.95).annotated, frame.image)
    assert (Result(frame, FOUND, NAMES, draw_score=0.9).annotated != frame.image).any()


@pytest.mark.parametrize("kind", [JsonlSink, CsvSink, ImagesSink])
def test_sinks__place_that_cannot_be_written(tmp_path: Path, kind: type) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot write"):
        kind(tmp_path / "file" / "x")


def test_video__one_frame_each_under_its_final_name_only_when_closed(tmp_path: Path) -> None:
    sink = VideoSink(tmp_path / "video.mp4", 10.0)
    for i in range(7):
        sink.write(result(i, time=i / 10))
    assert not (tmp_path / "video.mp4").exists()
    sink.close()
    assert video_frames(tmp_path / "video.mp4") == 7
    assert [p.name for p in tmp_path.iterdir()] == ["video.mp4"]


def test_video__variable_rate_keeps_its_speed(tmp_path: Path) -> None:
    sink = VideoSink(tmp_path / "video.mp4", 10.0)
    for i, time in enumerate((5.0, 5.1, 5.5, 5.52, 6.0)):
        sink.write(result(i, time=time))
    sink.close()
    assert video_frames(tmp_path / "video.mp4") == 11  # one second at 10 a second, both ends


def test_video__jump_of_the_clock_does_not_fill_the_disk(tmp_path: Path) -> None:
    sink = VideoSink(tmp_path / "video.mp4", 10.0)
    for i, time in enumerate((0.0, 0.1, 3600.0, 3600.1, 0.0, 0.1)):
        sink.write(result(i, time=time))
    sink.close()
    assert video_frames(tmp_path / "video.mp4") == 6


def test_video__frames_of_other_sizes_and_odd_first(tmp_path: Path) -> None:
    sink = VideoSink(tmp_path / "video.mp4", None)
    for i, (height, width) in enumerate([(81, 121), (40, 200), (81, 121), (300, 10)]):
        sink.write(Result(Frame(np.zeros((height, width, 3), np.uint8), i, None, "", None), Detections.empty(), NAMES))
    sink.close()
    assert video_frames(tmp_path / "video.mp4") == 4


def test_video__stops_before_the_disk_is_full_and_stays_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = VideoSink(tmp_path / "video.mp4", 10.0)
    for i in range(10):
        sink.write(result(i))
    monkeypatch.setattr("ptedge.runtime.sinks.video.RESERVE", 1 << 62)
    with pytest.raises(OutputError, match="the disk is full"):
        sink.write(result(10))
    sink.close()
    assert video_frames(tmp_path / "video.mp4") == 10


@pytest.mark.filterwarnings("default")
def test_video__broken_file_gets_no_name(tmp_path: Path) -> None:
    sink = VideoSink(tmp_path / "video.mp4", 10.0)
    sink.write(result())
    assert sink._writer is not None
    sink._writer.release()
    sink._temporary.write_bytes(b"half")
    with pytest.raises(OutputError, match="not whole"):
        sink.close()
    assert not list(tmp_path.iterdir())


def test_video__without_frames_there_is_none(tmp_path: Path) -> None:
    VideoSink(tmp_path / "video.mp4", 25.0).close()
    assert not list(tmp_path.iterdir())


def test_fit__keeps_aspect() -> None:
    out = fit(np.full((10, 40, 3), 9, np.uint8), 20, 20)
    assert out.shape == (20, 20, 3)
    assert (out[:5] == 9).all() and (out[5:] == 0).all()


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


def test_sinks__several_sources_are_told_apart(tmp_path: Path) -> None:
    sources = [SourceStats("yard", "yard.mp4", "video", FrameSource("yard.mp4", "video", None, 10.0))]
    sources.append(SourceStats("gate", "gate.mp4", "video", FrameSource("gate.mp4", "video", None, 20.0)))
    sinks = open_sinks(("jsonl", "csv", "coco", "video", "images"), tmp_path, sources, NAMES)
    for i, name in enumerate(("yard", "gate", "yard")):
        for sink in sinks:
            sink.write(dataclasses.replace(result(i), source=name))
    for sink in sinks:
        sink.close()
    lines = [json.loads(line) for line in (tmp_path / "detections.jsonl").read_text("utf-8").splitlines()]
    assert [line["source"] for line in lines] == ["yard", "gate", "yard"]
    assert (tmp_path / "detections.csv").read_text("utf-8").splitlines()[1].startswith("yard,0,")
    names = [image["file_name"] for image in json.loads((tmp_path / "coco.json").read_text("utf-8"))["images"]]
    assert names == ["yard/000000.jpg", "gate/000001.jpg", "yard/000002.jpg"]
    assert video_frames(tmp_path / "video-yard.mp4") == 2 and video_frames(tmp_path / "video-gate.mp4") == 1
    assert sorted(p.name for p in (tmp_path / "images" / "yard").iterdir()) == ["000000.jpg", "000002.jpg"]
    assert len(written(sinks)) == 6


def test_video__remains_of_a_killed_run_are_removed(tmp_path: Path) -> None:
    gone = tmp_path / ".video.4194305.tmp.mp4"  # above the highest process number of Linux
    other = tmp_path / f".video.{os.getppid()}.tmp.mp4"
    for path in (gone, other):
        path.write_bytes(b"half")
    sink = VideoSink(tmp_path / "video.mp4", 10.0)
    sink.write(result())
    sink.close()
    assert not gone.exists() and other.exists()
