"""Made images and frames, as a network takes them."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest
from tiny_detector import HEIGHT, WIDTH, write_pictures

from ptedge.errors import InputError
from ptedge.export.network_inputs import first_frames, make_scenes, spread_frames


def test_make_scenes__cover_the_input() -> None:
    scenes = make_scenes((96, 128))
    assert set(scenes) == {"black", "noise", "blocks"}
    for images in scenes.values():
        assert images.dtype == np.uint8 and images.shape[1:] == (3, 96, 128)
    assert not scenes["black"].any()


def test_first_frames__nothing_there(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        first_frames(str(tmp_path / "none"), (96, 128), 4)


def test_first_frames__the_first_as_the_network_takes_them(tmp_path: Path) -> None:
    for i in range(3):  # as wide as the input and half as high: what is below stays empty
        cv2.imwrite(str(tmp_path / f"{i}.png"), np.full((20, 64, 3), (0, 0, 10 + i), np.uint8))
    found = first_frames(str(tmp_path), (40, 64), 2)
    assert found.shape == (2, 3, 40, 64) and found.dtype == np.uint8
    assert [found[i, :, 5, 5].tolist() for i in range(2)] == [[10, 0, 0], [11, 0, 0]]  # RGB


def test_spread_frames__cover_the_whole_source(tmp_path: Path) -> None:
    write_pictures(tmp_path, 12)
    source, size = str(tmp_path / "images"), (HEIGHT, WIDTH)
    everything = spread_frames(source, size, limit=64)
    assert everything.shape == (12, 3, *size)
    few = spread_frames(source, size, limit=3)
    assert [next(i for i in range(12) if np.array_equal(frame, everything[i])) for frame in few] == [0, 4, 8]
