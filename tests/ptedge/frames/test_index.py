"""Frames of a store in any order."""

from __future__ import annotations

import hashlib
from pathlib import Path

import cv2
import numpy as np
import pytest
from made_field import collect
from servers.buckets import address

from ptedge.errors import InputError, StoreError
from ptedge.frames.images import read_image
from ptedge.frames.source import index_frames
from ptedge.runtime.transfer.push import push
from ptedge.stores.opening import open_store


@pytest.mark.parametrize("kind", ["folder", "rclone", "moto"])
def test_index_frames__of_a_store(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    site = str(tmp_path / "site")
    if kind != "folder":
        request.getfixturevalue("bucket_keys")
        site = address(request.getfixturevalue(f"{kind}_server"), "of-index-frames")
    collect(tmp_path / "field", count=5)
    push(tmp_path / "field", open_store(site), site, 10_000)
    frames = index_frames(site)
    paths = {path.name: path for path in (tmp_path / "field" / "images").iterdir()}
    assert len(frames) == 5 and frames.spec == site
    for i in range(5):
        path = paths[Path(frames.name(i)).name]
        assert np.array_equal(frames.read(i), read_image(path))
        assert frames.size(i) == (80, 72)
        assert frames.path(i) is None
        assert frames.digest(i) == hashlib.sha256(path.read_bytes()).hexdigest()
    assert index_frames(tmp_path / "field").digest(0) is None


def test_index_frames__of_an_empty_store_and_of_none(bucket_keys: None, moto_server: str) -> None:
    with pytest.raises(InputError, match="holds no frames"):
        index_frames(address(moto_server, "empty"))
    with pytest.raises(StoreError, match="no bucket"):
        index_frames(f"s3://absent/site?endpoint={moto_server}")


def film(path: Path, grey: int, count: int = 8) -> None:
    """A video of one grey."""
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*"mp4v"), 10, (96, 64))
    for _ in range(count):
        writer.write(np.full((64, 96, 3), grey, np.uint8))
    writer.release()


def test_index_frames__of_a_folder_of_videos(tmp_path: Path) -> None:
    folder = tmp_path / "videos"
    folder.mkdir()
    for name, grey in (("drive10.mp4", 200), ("drive2.mp4", 50)):
        film(folder / name, grey)
    frames = index_frames(folder)
    assert len(frames) == 16 and frames.left_out == ()
    assert [frames.name(i) for i in (0, 8)] == [f"{folder}/drive2.mp4#000000", f"{folder}/drive10.mp4#000000"]
    assert [abs(int(frames.read(i).mean()) - grey) < 8 for i, grey in ((0, 50), (15, 200))] == [True, True]
    few = index_frames(folder, max_video_frames=6)  # each has its share
    assert [few.name(i).partition("#")[0][-6:] for i in range(6)] == ["e2.mp4"] * 3 + ["10.mp4"] * 3
    assert len(index_frames(str(folder / "*.mp4"), max_video_frames=6)) == 6


def test_index_frames__images_and_videos_together(tmp_path: Path) -> None:
    cv2.imwrite(str(tmp_path / "a.png"), np.zeros((64, 96, 3), np.uint8))
    film(tmp_path / "b.mp4", 100)
    frames = index_frames(tmp_path)
    assert len(frames) == 9 and frames.path(0) == tmp_path / "a.png" and frames.path(1) is None
