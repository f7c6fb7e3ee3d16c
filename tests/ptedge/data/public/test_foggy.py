"""Folders of foggy images, in Cityscapes' layout and from depths."""

from __future__ import annotations

import json
from pathlib import Path

import cv2
import numpy as np
import pytest
from labelled_files import text

from ptedge.data import open_dataset, require_images
from ptedge.data.public.foggy import FILLED, MOSTLY_FILLED, THERE, WRITTEN, FogOptions, fog_cityscapes, fog_depths
from ptedge.errors import InputError


def png(path: Path, pixels: np.ndarray) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    assert cv2.imwrite(str(path), pixels)
    return path


def cityscapes(root: Path, split: str = "val", missing: int = 0) -> None:
    """One image of 4 x 2, blue on the left and red on the right, 50 m away; ``missing`` columns have no disparity."""
    pixels = np.zeros((2, 4, 3), np.uint8)
    pixels[:, :2, 0], pixels[:, 2:, 2] = 200, 200
    png(root / "leftImg8bit" / split / "ulm" / "ulm_1_leftImg8bit.png", pixels)
    raw = np.full((2, 4), 257, np.uint16)
    raw[:, :missing] = 0
    png(root / "disparity" / split / "ulm" / "ulm_1_disparity.png", raw)
    camera = {"extrinsic": {"baseline": 0.5}, "intrinsic": {"fx": 100, "fy": 100, "u0": 1, "v0": 1}}
    text(root / "camera" / split / "ulm" / "ulm_1_camera.json", json.dumps(camera))
    polygons = {"imgWidth": 4, "imgHeight": 2, "objects": [{"label": "car", "polygon": [[0, 0], [3, 0], [3, 2]]}]}
    text(root / "gtFine" / split / "ulm" / "ulm_1_gtFine_polygons.json", json.dumps(polygons))


def test_fog_cityscapes__what_the_reader_of_foggy_cityscapes_finds(tmp_path: Path) -> None:
    cityscapes(tmp_path)
    seen: list[tuple[int, int]] = []
    options = FogOptions((0.02, 0.01), (255.0, 255.0, 255.0))
    counts = fog_cityscapes(tmp_path, tmp_path, [], options, lambda done, of: seen.append((done, of)))
    assert counts == {WRITTEN: 2} and seen == [(1, 1)]
    description = text(tmp_path / "d.toml", 'format = "foggy_cityscapes"\nsplit = "val"\nbeta = 0.02\n')
    data = open_dataset(description)
    require_images(data)
    assert data.samples[0].path.name == "ulm_1_leftImg8bit_foggy_beta_0.02.png"
    share = np.exp(-0.02 * 50)  # the rays are within a ten-thousandth of the depth
    foggy = cv2.imread(str(data.samples[0].path))
    np.testing.assert_allclose(
        foggy[1, 0], [200 * share + 255 * (1 - share), 255 * (1 - share), 255 * (1 - share)], atol=1
    )
    again = fog_cityscapes(tmp_path, tmp_path, ["val"], options)
    assert again == {THERE: 2}


@pytest.mark.parametrize(
    ("missing", "expected"), [(1, {WRITTEN: 1, FILLED: 1}), (3, {WRITTEN: 1, FILLED: 1, MOSTLY_FILLED: 1})]
)
def test_fog_cityscapes__missing_disparities_are_counted(
    tmp_path: Path, missing: int, expected: dict[str, int]
) -> None:
    cityscapes(tmp_path, missing=missing)
    assert fog_cityscapes(tmp_path, tmp_path / "out", ["val"], FogOptions()) == expected
    foggy = cv2.imread(str(next((tmp_path / "out").rglob("*.png"))))
    assert np.array_equal(foggy[1, 0], foggy[1, 1])


def test_fog_cityscapes__what_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="fetch-help cityscapes"):
        fog_cityscapes(tmp_path, tmp_path, [], FogOptions())
    cityscapes(tmp_path, missing=4)
    with pytest.raises(InputError, match=r"no pixel of .*ulm_1_leftImg8bit\.png has a distance"):
        fog_cityscapes(tmp_path, tmp_path, [], FogOptions())
    (tmp_path / "camera" / "val" / "ulm" / "ulm_1_camera.json").unlink()
    with pytest.raises(InputError, match=r"ulm_1_camera\.json cannot be read"):
        fog_cityscapes(tmp_path, tmp_path, [], FogOptions())


def test_fog_depths__by_name(tmp_path: Path) -> None:
    png(tmp_path / "in" / "x" / "a b.jpg", np.full((8, 8, 3), 80, np.uint8))
    (tmp_path / "depth" / "x").mkdir(parents=True)
    np.save(tmp_path / "depth" / "x" / "a b.npy", np.full((8, 8), 1e9))
    options = FogOptions((0.01,), (10.0, 20.0, 30.0))
    assert fog_depths(tmp_path / "in", tmp_path / "depth", tmp_path / "out", 1, options) == {WRITTEN: 1}
    foggy = cv2.imread(str(tmp_path / "out" / "x" / "a b_foggy_beta_0.01.png"))
    assert foggy[0, 0].tolist() == [30, 20, 10]
    png(tmp_path / "in" / "b.png", np.zeros((8, 8, 3), np.uint8))
    with pytest.raises(InputError, match=r"b\.png has no depths: neither"):
        fog_depths(tmp_path / "in", tmp_path / "depth", tmp_path / "out", 1, options)
