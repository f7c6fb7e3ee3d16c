"""Distances by hand, and what is missing."""

from __future__ import annotations

import json
from pathlib import Path

import cv2
import numpy as np
import pytest

from ptedge.data.public.distance import (
    Camera,
    disparity_to_distance,
    fill_missing,
    read_camera,
    read_depth,
    read_sixteen_bits,
)
from ptedge.errors import InputError

CAMERA = Camera(baseline=0.5, fx=100, fy=200, u0=0, v0=0)


def test_disparity_to_distance__by_hand() -> None:
    raw = np.array([[257, 513, 0, 1]], np.uint16)
    # a disparity of 1 is 100 * 0.5 / 1 = 50 m deep, of 2 is 25 m; the ray of column 1 is sqrt(1 + 0.01^2) longer
    found = disparity_to_distance(raw, CAMERA)
    np.testing.assert_allclose(found[0, :2], [50, 25 * np.sqrt(1.0001)])
    assert np.isnan(found[0, 2]) and np.isinf(found[0, 3])
    below = disparity_to_distance(np.full((201, 1), 257, np.uint16), CAMERA)[200, 0]
    assert below == pytest.approx(50 * np.sqrt(2))  # 200 rows down at fy = 200: 45 degrees


def test_fill_missing__by_the_nearest_pixel() -> None:
    nan = np.nan
    distance = np.array([[nan, 10.0, nan, nan, nan, 30.0], [nan, nan, nan, nan, nan, np.inf]])
    filled, share = fill_missing(distance)
    assert filled[0].tolist() == [10, 10, 10, filled[0, 3], 30, 30] and filled[0, 3] in (10, 30)
    assert filled[1, :2].tolist() == [10, 10] and np.isinf(filled[1, 4:]).all()
    assert share == pytest.approx(9 / 12)
    whole = np.ones((2, 2))
    assert fill_missing(whole) == (whole, 0) or np.array_equal(fill_missing(whole)[0], whole)
    with pytest.raises(ValueError, match="no pixel has a distance"):
        fill_missing(np.full((2, 2), nan))


def test_read_camera(tmp_path: Path) -> None:
    path = tmp_path / "a_camera.json"
    content = {"extrinsic": {"baseline": 0.5}, "intrinsic": {"fx": 100, "fy": 200, "u0": 3, "v0": 4}}
    path.write_text(json.dumps(content))
    assert read_camera(path) == Camera(0.5, 100, 200, 3, 4)
    for wrong in ([], {**content, "extrinsic": {}}, {**content, "intrinsic": {**content["intrinsic"], "fy": 0}}):
        path.write_text(json.dumps(wrong))
        with pytest.raises(InputError, match=r"a_camera\.json has no (extrinsic\.baseline|intrinsic\.fy) above 0"):
            read_camera(path)


def test_read_sixteen_bits__refuses_other_kinds(tmp_path: Path) -> None:
    path = tmp_path / "é.png"
    path.write_bytes(cv2.imencode(".png", np.arange(6, dtype=np.uint16).reshape(2, 3))[1].tobytes())
    assert read_sixteen_bits(path, (2, 3)).tolist() == [[0, 1, 2], [3, 4, 5]]
    with pytest.raises(InputError, match="is 3 x 2, its image 4 x 2"):
        read_sixteen_bits(path, (2, 4))
    for content in (cv2.imencode(".png", np.zeros((2, 3), np.uint8))[1].tobytes(), b"", b"abc"):
        path.write_bytes(content)
        with pytest.raises(InputError, match="is no grey image of 16 bits"):
            read_sixteen_bits(path, (2, 3))


def test_read_depth__png_and_array(tmp_path: Path) -> None:
    png, array = tmp_path / "a.png", tmp_path / "a.npy"
    assert cv2.imwrite(str(png), np.array([[0, 256]], np.uint16))
    np.testing.assert_array_equal(read_depth(png, 1 / 256, (1, 2)), [[np.nan, 1]])
    np.save(array, np.array([[-1, 2.5]], np.float32))
    np.testing.assert_array_equal(read_depth(array, 1, (1, 2)), [[np.nan, 2.5]])
    for wrong in (np.zeros((2, 2)), np.array([["a", "b"]])):
        np.save(array, wrong)
        with pytest.raises(InputError, match="is no array of numbers of 1 x 2"):
            read_depth(array, 1, (1, 2))
    array.write_bytes(b"abc")
    with pytest.raises(InputError, match="cannot be read"):
        read_depth(array, 1, (1, 2))
