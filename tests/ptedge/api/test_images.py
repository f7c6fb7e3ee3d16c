from __future__ import annotations

from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from ptedge.api.images import to_rgb
from ptedge.errors import InputError

RGB = np.zeros((2, 3, 3), np.uint8) + np.array([10, 20, 30], np.uint8)


def test_to_rgb__array_is_taken_as_it_is() -> None:
    assert to_rgb(RGB, "rgb") is RGB


def test_to_rgb__bgr_is_turned_around() -> None:
    turned = to_rgb(np.ascontiguousarray(RGB[:, :, ::-1]), "bgr")
    np.testing.assert_array_equal(turned, RGB)
    assert turned.flags.c_contiguous


def test_to_rgb__grey_gets_three_channels() -> None:
    assert to_rgb(np.full((2, 3), 7, np.uint8), "bgr").tolist() == np.full((2, 3, 3), 7).tolist()


def test_to_rgb__a_file_needs_no_order(tmp_path: Path) -> None:
    cv2.imwrite(str(tmp_path / "a.png"), RGB[:, :, ::-1])
    for color in ("rgb", "bgr"):
        np.testing.assert_array_equal(to_rgb(tmp_path / "a.png", color), RGB)  # type: ignore[arg-type]
        np.testing.assert_array_equal(to_rgb(str(tmp_path / "a.png"), color), RGB)  # type: ignore[arg-type]


def test_to_rgb__pil_images_of_any_mode() -> None:
    pil = pytest.importorskip("PIL.Image", reason="Pillow comes with torchvision or supervision")
    image = pil.fromarray(RGB)
    np.testing.assert_array_equal(to_rgb(image, "bgr"), RGB)
    assert to_rgb(image.convert("RGBA"), "rgb").shape == to_rgb(image.convert("L"), "rgb").shape == (2, 3, 3)


@pytest.mark.parametrize(
    ("image", "text"),
    [
        (RGB.astype(np.float32), "uint8, 0 to 255; got float32"),
        (np.zeros((1, 2, 3, 3), np.uint8), "got 1 x 2 x 3 x 3"),
        (np.zeros((2, 3, 4), np.uint8), "alpha"),
        (np.zeros((0, 3, 3), np.uint8), "got 0 x 3 x 3"),
        (7, "got int"),
        ("rtsp://me:secret@camera/1", r"\*\*\*@camera/1 is no single image. Give it to ptedge.stream"),
        ("missing.jpg", "missing.jpg"),
    ],
)
def test_to_rgb__refuses_what_it_would_have_to_guess(image: Any, text: str) -> None:
    with pytest.raises(InputError, match=text) as caught:
        to_rgb(image, "rgb")
    assert "secret" not in str(caught.value)


def test_to_rgb__a_folder_is_for_streams(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"ptedge\.stream"):
        to_rgb(tmp_path, "rgb")


def test_to_rgb__unknown_order() -> None:
    with pytest.raises(InputError, match="color is 'gbr'; it must be one of rgb, bgr"):
        to_rgb(RGB, "gbr")  # type: ignore[arg-type]
