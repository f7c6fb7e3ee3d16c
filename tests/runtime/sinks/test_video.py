from __future__ import annotations

import os
import shutil
from pathlib import Path

import cv2
import numpy as np
import pytest
from made_results import NAMES, result, video_frames

from ptedge.detections import Detections
from ptedge.errors import OutputError
from ptedge.frames.source import Frame
from ptedge.runtime.sinks.files import Result
from ptedge.runtime.sinks.video import VideoSink, file_rate, fit


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


@pytest.mark.parametrize(
    ("fps", "wanted"),
    [
        (25.0, (25.0, 1)),
        (30000 / 1001, (29.97, 1)),
        (211.222, (211.22, 1)),
        (66.667, (66.67, 1)),  # 66667 / 1000 has a tick too many, 6667 / 100 has not
        (65.535, (65.535, 1)),
        (655.36, (655.4, 1)),
        (1500.0, (1500.0, 1)),
        (7000.4, (7000.0, 1)),
        (65535.0, (65535.0, 1)),
        (1 / 60, (0.05, 3)),
        (0.05, (0.05, 1)),
        (0.001, (0.001, 1)),
        (1 / 900, (0.01, 9)),
        *((odd, (25.0, 1)) for odd in (None, 0.0, -5.0, 1e-9, 65535.1, 90000.0, 1e300, float("nan"), float("inf"))),
    ],
)
def test_file_rate__what_mpeg4_can_hold(fps: float | None, wanted: tuple[float, int]) -> None:
    assert file_rate(fps) == (pytest.approx(wanted[0]), wanted[1])


@pytest.mark.parametrize("fps", [211.222, 196.263, 70.1234, 1 / 60, 1 / 450, 2000.0, 65535.0, 1e6, float("nan"), 0.0])
def test_video__each_rate_gives_a_file_of_its_length(tmp_path: Path, fps: float) -> None:
    sink = VideoSink(tmp_path / "video.mp4", fps)
    known = file_rate(fps) != (25.0, 1)
    for i in range(4):
        sink.write(result(i, time=i / fps if known else None))
    sink.close()
    capture = cv2.VideoCapture(str(tmp_path / "video.mp4"))
    rate = capture.get(cv2.CAP_PROP_FPS)
    capture.release()
    count = video_frames(tmp_path / "video.mp4")
    copies = file_rate(fps)[1]
    assert (count - 1) // copies == 3 and rate / copies == pytest.approx(fps if known else 25.0, rel=0.003)


def test_video__slow_frames_without_a_time(tmp_path: Path) -> None:
    sink = VideoSink(tmp_path / "video.mp4", 1 / 60)
    for i in range(2):
        sink.write(result(i))
    sink.close()
    assert video_frames(tmp_path / "video.mp4") == 6  # three times each, at 0.05 a second: a minute each


def test_video__the_folder_is_removed_and_that_is_what_is_said(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    sink = VideoSink(tmp_path / "out" / "video.mp4", 10.0)
    sink.write(result(0))
    shutil.rmtree(tmp_path / "out")
    for i in range(1, 10):
        sink.write(result(i))  # OpenCV does not notice
    with pytest.raises(OutputError, match=r"cannot write .*No such file"):
        sink.write(result(10))
    with pytest.raises(OutputError, match=r"video\.mp4 was removed or replaced while the run was writing"):
        sink.close()
    (tmp_path / "out").mkdir()
    again = VideoSink(tmp_path / "out" / "video.mp4", 10.0)
    again.write(result(0))
    shutil.rmtree(tmp_path / "out")
    (tmp_path / "out").mkdir()
    for i in range(1, 10):
        again.write(result(i))
    with pytest.raises(OutputError, match=r"video\.mp4 was removed or replaced"):
        again.write(result(10))


def test_video__a_frame_wider_than_the_codec_takes_is_made_smaller(tmp_path: Path) -> None:
    sink = VideoSink(tmp_path / "video.mp4", 10.0)
    wide = Frame(np.zeros((20, 16_380, 3), np.uint8), 0, None, "", None)
    sink.write(Result(wide, Detections.empty(), NAMES))
    sink.close()
    capture = cv2.VideoCapture(str(tmp_path / "video.mp4"))
    assert (capture.get(cv2.CAP_PROP_FRAME_WIDTH), capture.get(cv2.CAP_PROP_FRAME_HEIGHT)) == (8190, 10)
    capture.release()


def test_video__a_frame_that_opencv_refuses_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(image: np.ndarray, width: int, height: int) -> np.ndarray:
        raise cv2.error("too large")

    sink = VideoSink(tmp_path / "video.mp4", 10.0)
    sink.write(result(0))
    with monkeypatch.context() as patch:
        patch.setattr("ptedge.runtime.sinks.video.fit", refuse)
        sink.write(result(1))
    sink.write(result(2))
    sink.close()
    assert video_frames(tmp_path / "video.mp4") == 2
    assert sink.left_out.count == 1 and sink.left_out.first.endswith("video.mp4: too large")
