from __future__ import annotations

import os
from pathlib import Path

import cv2
import numpy as np
import pytest
from made_results import NAMES, result, video_frames

from ptedge.detections import Detections
from ptedge.errors import OutputError
from ptedge.frames.source import Frame
from ptedge.runtime.sinks.files import Result
from ptedge.runtime.sinks.video import VideoSink, fit, holdable_rate


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


@pytest.mark.parametrize("fps", [211.222, 66.667, 70.1234, 196.263, 23.976, 29.97, 59.94, 999.999, 1.0])
def test_video__any_rate_can_be_held(tmp_path: Path, fps: float) -> None:
    sink = VideoSink(tmp_path / "video.mp4", fps)
    for i in range(6):
        sink.write(result(i, time=i / fps))
    sink.close()
    assert video_frames(tmp_path / "video.mp4") == 6
    capture = cv2.VideoCapture(str(tmp_path / "video.mp4"))
    assert capture.get(cv2.CAP_PROP_FPS) == pytest.approx(fps, rel=0.001)
    capture.release()


def test_holdable_rate() -> None:
    assert [holdable_rate(fps) for fps in (1 / 60, 0.0001, 1.0, 29.97, 66.6666, 211.222, 9000.5, 1e9)] == [
        1.0, 1.0, 1.0, 29.97, 66.67, 211.22, 9000.0, 65535.0
    ]  # fmt: skip


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


def test_video__remains_of_a_killed_run_are_removed(tmp_path: Path) -> None:
    gone = tmp_path / ".video.4194305.tmp.mp4"  # above the highest process number of Linux
    other = tmp_path / f".video.{os.getppid()}.tmp.mp4"
    for path in (gone, other):
        path.write_bytes(b"half")
    sink = VideoSink(tmp_path / "video.mp4", 10.0)
    sink.write(result())
    sink.close()
    assert not gone.exists() and other.exists()
