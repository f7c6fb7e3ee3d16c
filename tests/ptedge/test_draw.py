from __future__ import annotations

import numpy as np
import pytest

from ptedge.detections import Detections
from ptedge.draw import COLORS, draw_detections


def one(box: list[float], sigma: list[float], label: int = 0) -> Detections:
    return Detections(
        np.array([box], np.float32),
        np.array([0.9], np.float32),
        np.array([label]),
        np.array([sigma], np.float32),
        np.zeros(1, np.float32),
    )


def changed(image: np.ndarray, out: np.ndarray) -> np.ndarray:
    return (image != out).any(axis=2)


def test_draw_detections__band_widths_follow_each_side() -> None:
    image = np.zeros((200, 200, 3), np.uint8)
    out = draw_detections(image, one([60, 60, 140, 140], [2, 4, 8, 1]), ["car"])
    row = np.flatnonzero(changed(image, out)[100])  # crosses the left and right side
    column = np.flatnonzero(changed(image, out)[:, 100])  # crosses top and bottom
    # two sigma to each side, give or take the line's own antialiased pixel
    assert row[row < 100].tolist() == list(range(60 - 4, 60 + 4 + 1))
    assert row[row > 100].tolist() == list(range(140 - 16, 140 + 16 + 1))
    assert column[column > 100].tolist() == list(range(140 - 2, 140 + 2 + 1))
    assert column[column < 100].max() == 60 + 8


def test_draw_detections__argument_is_unchanged_and_may_be_a_view() -> None:
    image = np.full((50, 80, 3), 7, np.uint8)[:, ::-1]
    before = image.copy()
    out = draw_detections(image, one([5, 5, 30, 30], [1, 1, 1, 1]), ["car"])
    np.testing.assert_array_equal(image, before)
    assert out.shape == image.shape and out.dtype == np.uint8 and out.flags.c_contiguous


def test_draw_detections__nothing_to_draw() -> None:
    image = np.full((50, 80, 3), 7, np.uint8)
    np.testing.assert_array_equal(draw_detections(image, Detections.empty(), []), image)


@pytest.mark.parametrize("box", [[0, 0, 20, 10], [300, 180, 320, 192], [-20, -20, 400, 300], [310, 0, 320, 5]])
@pytest.mark.parametrize("sigma", [[0, 0, 0, 0], [500, 500, 500, 500]])
def test_draw_detections__box_at_the_border_keeps_its_label_inside(box: list[float], sigma: list[float]) -> None:
    image = np.zeros((192, 320, 3), np.uint8)
    out = draw_detections(image, one(box, sigma, label=1), ["car", "person"])
    plate = (out == COLORS[1]).all(axis=2)
    assert plate.sum() > 200  # the whole plate of "person 0.90", text cut out


def test_draw_detections__image_stays_visible_below_many_wide_bands() -> None:
    image = np.random.default_rng(0).integers(0, 256, (96, 160, 3), np.uint8)
    box, sigma = [20.0, 20.0, 140.0, 80.0], [60.0, 60.0, 60.0, 60.0]
    many = Detections(
        np.array([box] * 30, np.float32),
        np.full(30, 0.5, np.float32),
        np.zeros(30, np.int64),
        np.array([sigma] * 30, np.float32),
        np.zeros(30, np.float32),
    )
    out = draw_detections(image, many, ["car"])
    # blended once: 0.6 of the image remains
    expected = 0.6 * image[50, 100] + 0.4 * np.array(COLORS[0])
    assert np.abs(out[50, 100] - expected).max() <= 1
