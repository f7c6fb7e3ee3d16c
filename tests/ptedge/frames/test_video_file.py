"""Video files: times where the container has some, files that end early, and names that FFmpeg misreads."""

from __future__ import annotations

import math
import os
import struct
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from ptedge.errors import InputError
from ptedge.frames.source import index_frames, open_frames
from ptedge.frames.video import claimed_fps
from ptedge.frames.video_file import VideoClock, read_capture


def write_video(path: Path, frames: int, fps: float = 10, codec: str = "MJPG") -> Path:
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter_fourcc(*codec), fps, (64, 48))
    assert writer.isOpened()
    for i in range(frames):
        writer.write(np.full((48, 64, 3), 10 * i, np.uint8))
    writer.release()
    return path


class Device:
    """Stands for cv2.VideoCapture: frames with the timestamps given."""

    def __init__(self, times: list[float], fps: float, count: float) -> None:
        self._times, self._fps, self._count, self._at = times, fps, count, -1

    def isOpened(self) -> bool:  # noqa: N802
        return True

    def grab(self) -> bool:
        self._at += 1
        return self._at < len(self._times)

    def retrieve(self) -> tuple[bool, Any]:
        return True, np.full((2, 2, 3), self._at, np.uint8)

    def get(self, what: int) -> float:
        if what == cv2.CAP_PROP_POS_MSEC:
            return self._times[self._at]
        return self._fps if what == cv2.CAP_PROP_FPS else self._count

    def release(self) -> None:
        pass


def read(
    monkeypatch: pytest.MonkeyPatch, folder: Path, times: list[float], fps: float = 20, count: float = 0
) -> tuple[list[float | None], list[str]]:
    """Times and complaints of a made video."""
    monkeypatch.setattr(cv2, "VideoCapture", lambda *_: Device(times, fps, count))
    (folder / "a.mkv").write_bytes(b"a video")
    skipped: list[tuple[str, str]] = []
    frames = list(read_capture(str(folder / "a.mkv"), 0, 1, skipped))
    assert [index for index, _, _ in frames] == list(range(len(times)))
    assert [int(image[0, 0, 0]) for _, _, image in frames] == list(range(len(times)))
    return [time for _, time, _ in frames], [reason for _, reason in skipped]


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ([0, 50, 100], [0, 0.05, 0.1]),
        ([100, 150, 0, 0], [0.1, 0.15, 0.2, 0.25]),  # H.264 in AVI: the last have none
        ([0, 0, 0], [None, None, None]),  # raw H.264
        ([-7.7e18, -7.7e18, -7.7e18], [None, None, None]),  # an older OpenCV
        ([math.nan, math.inf, math.nan], [None, None, None]),
        ([0], [0]),
        ([-5], [None]),
        ([0, 40, 40, 120], [0, 0.04, 0.09, 0.12]),  # one twice
        ([0, 40, 20, 120], [0, 0.04, 0.09, 0.12]),  # one back
        ([0, 40, 9e10, 120], [0, 0.04, 0.09, 0.12]),  # one three years later
        ([1000, 1040], [1, 1.04]),  # does not begin at 0
        ([0, 0, 40, 80], [None, None, 0.04, 0.08]),
    ],
)
def test_read_capture__times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: list[float], expected: list[float | None]
) -> None:
    assert read(monkeypatch, tmp_path, times)[0] == pytest.approx(expected)


def test_read_capture__no_rate_no_guess(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for fps in (0, math.nan, 90000, 1000, -1, 1e-9):
        times, _ = read(monkeypatch, tmp_path, [0, 50, 0], fps)
        assert times == [0, 0.05, None]


@pytest.mark.parametrize(
    ("times", "count", "complaint"),
    [
        ([0, 500, 1000, 1500, 3950], 80, ""),  # a variable rate, and the whole file
        ([0, 50, 100, 150, 200], 80, "5 of 80 frames (0.2 of 4.0 s)"),
        ([0, 3700], 80, "2 of 80 frames (3.7 of 4.0 s)"),
        ([0, 3740], 80, ""),  # with its own duration within five per cent
        ([0, 50, 100, 150, 200], 5, ""),
        ([0, 0, 0], 80, "3 of 80"),  # without times only the count is left
        ([0, 50, 100], -1.9e14, ""),  # nonsense
        ([0, 50, 100], math.nan, ""),
        ([0, 50, 100], 1e18, ""),
    ],
)
def test_read_capture__cut_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: list[float], count: float, complaint: str
) -> None:
    _, complaints = read(monkeypatch, tmp_path, times, 20, count)
    assert len(complaints) == bool(complaint)
    assert all(complaint in text and "cut short" in text for text in complaints)


def test_read_capture__a_whole_matroska_of_variable_rate(tmp_path: Path) -> None:
    path = write_video(tmp_path / "a.mkv", 9)
    data = path.read_bytes()
    for number in range(1, 9):  # the last frames late: duration times rate is far more than nine
        before = b"\x81" + struct.pack(">h", 100 * number) + b"\x80"
        assert data.count(before) == 1
        data = data.replace(before, b"\x81" + struct.pack(">h", 20000 + 100 * number) + b"\x80")
    path.write_bytes(data)
    source = open_frames(path)
    assert [frame.time for frame in source][-1] == pytest.approx(20.8)
    assert not source.skipped


def test_read_capture__times_of_an_mp4(tmp_path: Path) -> None:
    path = write_video(tmp_path / "a.mp4", 8, codec="mp4v")
    times = [frame.time for frame in open_frames(path)]
    assert times == pytest.approx([i / 10 for i in range(8)])


@pytest.mark.parametrize("name", ["rec-12:30.avi", "http:a.avi", "a%02d.avi", "-a.avi", "a b'c.avi", "pipe:0", "ä.avi"])
def test_open_capture__names_that_look_like_something_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    write_video(tmp_path / "plain.avi", 3).rename(tmp_path / name)
    monkeypatch.chdir(tmp_path)
    assert len(list(open_frames(name))) == 3
    assert len(index_frames(name)) == 3


@pytest.mark.parametrize("start", [b"#EXTM3U\n/etc/passwd\n", b"ffconcat version 1.0\nfile a\n", b"\n<?xml?><MPD>"])
def test_open_capture__playlists_are_no_videos(tmp_path: Path, start: bytes) -> None:
    (tmp_path / "a.mp4").write_bytes(start)
    with pytest.raises(InputError, match=r"a\.mp4 is no video but a playlist"):
        open_frames(tmp_path / "a.mp4")


def test_open_capture__a_broken_video_is_not_the_first_of_a_sequence(tmp_path: Path) -> None:
    for i in range(3):  # OpenCV would read the pictures by their numbers
        assert cv2.imwrite(str(tmp_path / f"shot{i}.png"), np.zeros((4, 4, 3), np.uint8))
    (tmp_path / "shot0.png").rename(tmp_path / "kept.png")
    (tmp_path / "shot0.dat").write_bytes(b"no video")
    with pytest.raises(InputError, match=r"shot0\.dat"):
        list(open_frames(tmp_path / "shot0.dat"))


def test_open_frames__damaged_videos_end_with_frames_or_a_sentence(tmp_path: Path) -> None:
    data = write_video(tmp_path / "whole.avi", 5).read_bytes()
    chance = np.random.default_rng(0)
    for _ in range(25):
        changed = bytearray(data)
        for at in chance.integers(0, 400, 3):
            changed[at] = chance.integers(256)
        (tmp_path / "a.avi").write_bytes(bytes(changed[: chance.integers(100, len(data))]))
        try:
            list(open_frames(tmp_path / "a.avi", rate=5))
        except InputError as error:
            assert "a.avi" in str(error)


@pytest.mark.parametrize("fps", [0.0, -5.0, 1e-9, 1000.0, 90000.0, math.inf, math.nan])
def test_claimed_fps__no_rate_of_a_video(fps: float) -> None:
    assert claimed_fps(Device([], fps, 0)) is None  # type: ignore[arg-type]


@pytest.mark.parametrize("fps", [1 / 60, 23.976, 211.222, 999.9])
def test_claimed_fps__rates_of_videos(fps: float) -> None:
    assert claimed_fps(Device([], fps, 0)) == fps  # type: ignore[arg-type]


def test_clock__before_anything_advances() -> None:
    clock = VideoClock(None)
    clock.begin(0.0, 0.0)
    assert clock.tell(0.0) is None and clock.last is None


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no pipes with names")
def test_open_capture__a_pipe_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.mp4")
    with pytest.raises(InputError, match="pipe"):
        list(read_capture(str(tmp_path / "a.mp4"), 0, 1, []))
