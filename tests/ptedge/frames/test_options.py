"""Options of sources: loop, rate, flip; and the counters of file sources."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from ptedge.errors import InputError
from ptedge.frames.sequence import Frame, Thinning, join_rounds
from ptedge.frames.source import open_frames


def write_images(folder: Path, values: list[int]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for i, value in enumerate(values):
        assert cv2.imwrite(str(folder / f"{i}.png"), np.full((16, 24, 3), value, np.uint8))
    return folder


def write_video(path: Path, values: list[int], fps: float = 10) -> Path:
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter_fourcc(*"MJPG"), fps, (64, 48))
    for value in values:
        writer.write(np.full((48, 64, 3), value, np.uint8))
    writer.release()
    return path


def frame(index: int, time: float | None) -> Frame:
    return Frame(np.zeros((2, 2, 3), np.uint8), index, time, "x", None)


def test_loop__images_count_on(tmp_path: Path) -> None:
    source = open_frames(write_images(tmp_path, [10, 20, 30]), loop=True, limit=7)
    assert source.count == 7
    read = list(source)
    assert [f.index for f in read] == list(range(7))
    assert [int(f.image[0, 0, 0]) for f in read] == [10, 20, 30, 10, 20, 30, 10]
    assert [f.time for f in read] == [None] * 7
    assert open_frames(tmp_path, loop=True).count is None


def test_loop__video_times_go_on(tmp_path: Path) -> None:
    source = open_frames(write_video(tmp_path / "a.avi", [0, 100, 200]), loop=True, limit=8)
    read = list(source)
    assert [f.time for f in read] == pytest.approx([0.1 * i for i in range(8)])
    assert [f.index for f in read] == list(range(8))


def test_loop__a_corrupt_image_is_listed_once(tmp_path: Path) -> None:
    write_images(tmp_path, [10, 20])
    (tmp_path / "3.png").write_bytes(b"broken")
    source = open_frames(tmp_path, loop=True, limit=20)
    assert len(list(source)) == 20
    assert len(source.skipped) == 1 and source.status.corrupt >= 9


def test_loop__ends_when_nothing_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"broken")
    with pytest.raises(InputError, match="none of its 1"):
        list(open_frames(tmp_path, loop=True))


def test_loop__close_ends_it(tmp_path: Path) -> None:
    source = open_frames(write_images(tmp_path, [1, 2]), loop=True)
    read = 0
    for _ in source:
        read += 1
        if read == 5:
            source.close()
    assert read == 5 and source.status.state == "ended"


def test_rate__video_by_its_own_time(tmp_path: Path) -> None:
    source = open_frames(write_video(tmp_path / "a.avi", list(range(0, 200, 10))), rate=4)  # 20 frames, 10 a second
    assert (source.fps, source.count) == (4, None)
    assert [f.index for f in source] == [0, 2, 5, 7, 10, 12, 15, 17]  # near every quarter second
    assert (source.status.frames, source.status.delivered, source.status.passed) == (20, 8, 12)
    faster = open_frames(tmp_path / "a.avi", rate=50)
    assert faster.fps == 10 and len(list(faster)) == 20


def test_rate__images_get_times(tmp_path: Path) -> None:
    source = open_frames(write_images(tmp_path, [1, 2, 3]), rate=5)
    assert source.count == 3 and source.fps == 5
    assert [f.time for f in source] == pytest.approx([0, 0.2, 0.4])


@pytest.mark.parametrize(
    ("flip", "corner"), [("horizontal", (0, -1)), ("vertical", (-1, 0)), ("both", (-1, -1)), (None, (0, 0))]
)
def test_flip(tmp_path: Path, flip: str, corner: tuple[int, int]) -> None:
    image = np.zeros((6, 8, 3), np.uint8)
    image[0, 0] = 255
    cv2.imwrite(str(tmp_path / "a.png"), image)
    (read,) = open_frames(tmp_path / "a.png", flip=flip)  # type: ignore[arg-type]
    assert read.image[corner].tolist() == [255, 255, 255] and read.image.sum() == 765
    assert read.image.flags["C_CONTIGUOUS"]


def test_options__refused(tmp_path: Path) -> None:
    write_images(tmp_path, [1])
    for rate in (0, -1, float("nan"), float("inf")):
        with pytest.raises(InputError, match="rate is"):
            open_frames(tmp_path, rate=rate)
    with pytest.raises(InputError, match="horizontal, vertical, both"):
        open_frames(tmp_path, flip="left")  # type: ignore[arg-type]


def test_status__counts_files_and_begins_anew(tmp_path: Path) -> None:
    write_images(tmp_path, [1, 2, 3])
    (tmp_path / "1.png").write_bytes(b"broken")
    source = open_frames(tmp_path)
    status = source.status
    for _ in range(2):
        list(source)
        assert (status.frames, status.delivered, status.corrupt, status.state) == (2, 2, 1, "ended")
    assert status.size == (24, 16)


def test_thinning__rate_is_kept_under_jitter() -> None:
    thinning = Thinning(0, 1, 10)
    rng = np.random.default_rng(0)
    times = np.arange(300) / 30 + rng.uniform(-0.012, 0.012, 300)
    assert abs(sum(thinning.wants(i, max(0.0, t)) for i, t in enumerate(times)) - 100) <= 1


def test_thinning__start_and_stride() -> None:
    thinning = Thinning(2, 3, None)
    assert [i for i in range(12) if thinning.wants(i, i)] == [2, 5, 8, 11]


def test_join_rounds() -> None:
    rounds = [[frame(0, 5.0), frame(2, 5.5)], [frame(0, 5.0), frame(2, 5.5)], []]
    joined = list(join_rounds([*rounds, [frame(0, 1.0)]], 0.1))  # nothing after a round without frames
    assert [f.index for f in joined] == [0, 2, 3, 5]
    assert [f.time for f in joined] == pytest.approx([5.0, 5.5, 6.0, 6.5])
    single = list(join_rounds([[frame(0, 1.0)], [frame(0, 1.0)]], 0.25))
    assert [f.time for f in single] == pytest.approx([1.0, 1.25])
    assert [f.time for f in join_rounds([[frame(0, None)]] * 2, 0.25)] == [None, None]
