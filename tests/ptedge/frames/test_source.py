"""Frames from files and video: order, numbers, times, and clear errors."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import struct
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np
import pytest
from places import SHARED

from ptedge.errors import BackendError, InputError
from ptedge.frames import index as frame_index
from ptedge.frames import video, video_file
from ptedge.frames.source import index_frames, natural_key, open_frames


def write_image(path: Path, value: int = 100) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    assert cv2.imwrite(str(path), np.full((16, 24, 3), value, np.uint8))
    return path


def write_video(path: Path, values: list[int], fps: float = 10) -> Path:
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter_fourcc(*"MJPG"), fps, (64, 48))
    assert writer.isOpened()
    for value in values:
        writer.write(np.full((48, 64, 3), value, np.uint8))
    writer.release()
    return path


def change_times(path: Path, times: dict[int, int]) -> None:
    """Give the blocks of a Matroska file (track 1, one cluster) other milliseconds, so that the rate varies."""
    data = path.read_bytes()
    for old, new in times.items():
        before = b"\x81" + struct.pack(">h", old) + b"\x80"  # track 1, time, key frame
        assert data.count(before) == 1
        data = data.replace(before, b"\x81" + struct.pack(">h", new) + b"\x80")
    path.write_bytes(data)


def test_natural_key() -> None:
    names = ["img10.png", "img2.png", "Img1.png", "a/z.png", "10.png"]
    assert sorted(names, key=natural_key) == ["10.png", "a/z.png", "Img1.png", "img2.png", "img10.png"]


def test_open_frames__image(tmp_path: Path) -> None:
    path = write_image(tmp_path / "bild ä.png", 77)
    source = open_frames(path)
    assert (source.kind, source.count, source.fps) == ("image", 1, None)
    (frame,) = source
    assert frame.image.shape == (16, 24, 3) and (frame.image == 77).all()
    assert (frame.index, frame.time, frame.source, frame.file) == (0, None, str(path), str(path))


def test_open_frames__folder_natural_order_recursive(tmp_path: Path) -> None:
    for name in ("f10.png", "f2.png", "sub/f1.png", ".hidden/f0.png", ".f.png"):
        write_image(tmp_path / name)
    (tmp_path / "notes.txt").write_text("no image")
    source = open_frames(str(tmp_path))
    names = [str(Path(frame.file or "").relative_to(tmp_path)) for frame in source]
    assert names == ["f2.png", "f10.png", "sub/f1.png"]
    assert (source.kind, source.count) == ("folder", 3)


def test_open_frames__start_stride_limit(tmp_path: Path) -> None:
    for i in range(10):
        write_image(tmp_path / f"{i}.png", i)
    source = open_frames(tmp_path, start=1, stride=3, limit=2)
    assert source.count == 2
    assert [(frame.index, int(frame.image[0, 0, 0])) for frame in source] == [(1, 1), (4, 4)]
    assert open_frames(tmp_path, start=1, stride=3).count == 3
    assert list(open_frames(tmp_path, limit=0)) == []
    with pytest.raises(InputError, match="10 frames"):
        open_frames(tmp_path, start=10)
    with pytest.raises(InputError, match="stride 0"):
        open_frames(tmp_path, stride=0)


def test_open_frames__glob(tmp_path: Path) -> None:
    for name in ("a1.png", "a2.png", "b1.png"):
        write_image(tmp_path / name)
    source = open_frames(str(tmp_path / "a*"))
    assert source.kind == "glob" and len(list(source)) == 2
    with pytest.raises(InputError, match="no image"):
        open_frames(str(tmp_path / "c*.png"))


def test_open_frames__list_is_relative_to_itself(tmp_path: Path) -> None:
    write_image(tmp_path / "pictures" / "x.png", 5)
    absolute = write_image(tmp_path / "elsewhere" / "y.png", 6)
    listing = tmp_path / "list.txt"
    listing.write_text(f"# comment\n\npictures/x.png\n{absolute}\n", "utf-8")
    source = open_frames(listing)
    assert source.kind == "list"
    assert [int(frame.image[0, 0, 0]) for frame in source] == [5, 6]


def test_open_frames__corrupt_files_are_named_and_skipped(tmp_path: Path) -> None:
    write_image(tmp_path / "1.png")
    (tmp_path / "2.jpg").write_bytes(b"broken")
    write_image(tmp_path / "3.png")
    source = open_frames(tmp_path)
    for _ in range(2):  # a second pass does not count twice
        assert [frame.index for frame in source] == [0, 2]
        assert len(source.skipped) == 1
    name, reason = source.skipped[0]
    assert name.endswith("2.jpg") and "corrupt" in reason


def test_open_frames__nothing_readable(tmp_path: Path) -> None:
    (tmp_path / "a.jpg").write_bytes(b"broken")
    (tmp_path / "b.jpg").write_bytes(b"")
    with pytest.raises(InputError, match=r"none of its 2 frames.*a\.jpg"):
        list(open_frames(tmp_path))
    listing = tmp_path / "list.txt"
    listing.write_text("missing.png\n")
    with pytest.raises(InputError, match=r"missing\.png"):
        list(open_frames(listing))


def test_open_frames__missing_or_empty(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="do not exist"):
        open_frames(tmp_path / "nothing")
    with pytest.raises(InputError, match="holds no image"):
        open_frames(tmp_path)
    (tmp_path / "empty.txt").write_text("\n")
    with pytest.raises(InputError, match="holds no image"):
        open_frames(tmp_path / "empty.txt")


def test_open_frames__field_folder(tmp_path: Path) -> None:
    (tmp_path / "field.json").write_text("{}")
    for i in (1, 2, 3):
        write_image(tmp_path / "images" / f"{i}.png")
    write_image(tmp_path / "previews" / "9.png")  # not a frame
    lines = [json.dumps({"file": "images/1.png", "time": 12.5}), json.dumps({"file": "images/2.png", "time": None})]
    (tmp_path / "frames.jsonl").write_text("\n".join(lines) + '\n{"file": "images/3.pn')  # cut by a power loss
    source = open_frames(tmp_path)
    assert source.kind == "field"
    assert [frame.time for frame in source] == [12.5, None, None]


def test_open_frames__video_times(tmp_path: Path) -> None:
    path = write_video(tmp_path / "a.avi", [0, 50, 100, 150, 200])
    source = open_frames(path)
    assert (source.kind, source.count, source.fps) == ("video", 5, 10.0)
    read = list(source)
    assert [frame.time for frame in read] == pytest.approx([0, 0.1, 0.2, 0.3, 0.4])
    assert [round(float(frame.image.mean()) / 50) for frame in read] == [0, 1, 2, 3, 4]
    assert read[0].file is None and read[0].source == str(path) and not source.skipped
    thinned = open_frames(path, start=1, stride=2)
    assert thinned.count == 2
    assert [frame.index for frame in thinned] == [1, 3]
    assert [frame.time for frame in thinned] == pytest.approx([0.1, 0.3])


def test_open_frames__variable_frame_rate(tmp_path: Path) -> None:
    path = write_video(tmp_path / "a.mkv", [0, 50, 100, 150, 200])
    change_times(path, {100: 40, 200: 90, 300: 700, 400: 730})
    assert [frame.time for frame in open_frames(path)] == pytest.approx([0, 0.04, 0.09, 0.7, 0.73])
    assert [frame.time for frame in open_frames(path, stride=3)] == pytest.approx([0, 0.7])


def test_open_frames__video_is_rgb(tmp_path: Path) -> None:
    writer = cv2.VideoWriter(str(tmp_path / "a.avi"), cv2.VideoWriter_fourcc(*"MJPG"), 10, (64, 48))
    writer.write(np.full((48, 64, 3), (0, 0, 200), np.uint8))  # BGR: red
    writer.release()
    (frame,) = open_frames(tmp_path / "a.avi")
    assert frame.image[20, 20, 0] > 190 and frame.image[20, 20, 2] < 10
    assert frame.image.dtype == np.uint8 and frame.image.flags["C_CONTIGUOUS"]


def test_open_frames__broken_video(tmp_path: Path) -> None:
    whole = write_video(tmp_path / "a.avi", [10] * 20)
    data = whole.read_bytes()
    cases = {"empty.mp4": b"", "text.mp4": b"hello" * 50, "cut.avi": data[:200]}
    for name, content in cases.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match=name):
            list(open_frames(tmp_path / name))
        with pytest.raises(InputError, match=name):
            index_frames(tmp_path / name)


def test_open_frames__video_cut_short_says_so(tmp_path: Path) -> None:
    sample = SHARED / "video" / "test_video.mp4"
    if not sample.is_file():
        pytest.skip("shared/data/video is absent")
    data = sample.read_bytes()
    path = tmp_path / "half.mp4"
    path.write_bytes(data[: len(data) // 2])
    source = open_frames(path)
    read = len(list(source))
    assert 0 < read < 38
    assert f"after {read} of 38" in source.skipped[-1][1]


def test_open_frames__real_video() -> None:
    sample = SHARED / "video" / "test_video.mp4"
    if not sample.is_file():
        pytest.skip("shared/data/video is absent")
    source = open_frames(sample, stride=10)
    assert (source.count, source.fps) == (4, 25.0)
    assert [frame.time for frame in source] == pytest.approx([0, 0.4, 0.8, 1.2])


def test_open_frames__live_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(video, "has_gstreamer", lambda: False)
    for spec in ("csi://0", "videotestsrc ! videoconvert ! appsink"):
        with pytest.raises(BackendError, match="GStreamer"):
            open_frames(spec)
    with pytest.raises(InputError, match="live source"):
        open_frames("rtsp://camera/1", live=False)
    for spec in ("0", "rtsp://camera/1"):
        with pytest.raises(InputError, match="live source"):
            index_frames(spec)


def test_index_frames__images_are_lazy(tmp_path: Path) -> None:
    write_image(tmp_path / "1.png", 1)
    (tmp_path / "2.png").write_bytes(b"broken")
    index = index_frames(tmp_path)
    assert len(index) == 2 and index.name(1).endswith("2.png")
    assert (index.read(0) == 1).all()
    with pytest.raises(InputError, match=r"2\.png"):
        index.read(1)


def test_index_frames__video_any_order(tmp_path: Path) -> None:
    path = write_video(tmp_path / "a.avi", [0, 50, 100, 150, 200])
    index = index_frames(path)
    assert len(index) == 5 and index.name(3) == f"{path}#000003"
    assert [round(float(index.read(i).mean()) / 50) for i in (4, 0, 2)] == [4, 0, 2]


def test_index_frames__decodes_a_video_once_in_order_and_never_seeks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_video(tmp_path / "a.avi", list(range(0, 200, 10)))  # 20 frames
    calls: Counter[str] = Counter()
    opened = cv2.VideoCapture

    class Counted:
        def __init__(self, *words: object) -> None:
            calls["open"] += 1
            self.device = opened(*words)

        def __getattr__(self, name: str) -> object:
            calls[name] += 1
            return getattr(self.device, name)

    monkeypatch.setattr(cv2, "VideoCapture", Counted)
    index = index_frames(path, max_video_frames=5)
    assert calls["grab"] == 21 and calls["retrieve"] == 5  # the last grab finds the end; others are not converted
    assert calls["set"] == calls["read"] == 0
    before = calls.copy()
    for i in (3, 0, 4, 1, 2, 3):  # as training reads them
        index.read(i)
    assert calls == before


@pytest.mark.parametrize("claimed", [None, 3, 20])
def test_index_frames__evenly_spaced_whatever_the_container_claims(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, claimed: int | None
) -> None:
    path = write_video(tmp_path / "a.avi", list(range(0, 200, 10)))  # 20 frames

    @contextlib.contextmanager
    def claiming(spec: str) -> Iterator[video_file.Capture]:
        with video_file.open_capture(spec) as capture:
            yield dataclasses.replace(capture, count=claimed)

    monkeypatch.setattr(frame_index, "open_capture", claiming)
    index = index_frames(path, max_video_frames=5)
    numbers = [int(index.name(i)[-6:]) for i in range(len(index))]
    assert len(numbers) == 5 and numbers[0] == 0 and numbers[-1] >= 16
    gaps = np.diff(numbers)
    assert gaps.min() >= 1 and gaps.max() <= 2 * gaps.min()
