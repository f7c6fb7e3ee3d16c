"""Strong and weak views by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from batch_inputs import MEAN, OFF, generator, picture
from tiny_detector import HEIGHT, WIDTH

from ptedge.training.batches.augment import AugmentConfig, apply_zoom, draw_zoom, flip, move_boxes, strong_colour


def test_flip__by_hand() -> None:
    image = picture(4, 10)
    mirrored, boxes = flip(image, np.array([[1, 0, 4, 2], [0, 1, 10, 3]], np.float32))
    np.testing.assert_array_equal(mirrored[:, 0], image[:, 9])
    assert boxes.tolist() == [[6, 0, 9, 2], [0, 1, 10, 3]]
    again, back = flip(mirrored, boxes)
    np.testing.assert_array_equal(again, image)
    assert back.tolist() == [[1, 0, 4, 2], [0, 1, 10, 3]]
    assert flip(image, np.zeros((0, 4), np.float32))[1].shape == (0, 4)


def test_draw_zoom__is_about_the_centre() -> None:
    config = AugmentConfig(**{**OFF, "zoom": (0.5, 0.9)})
    scales = []
    for seed in range(50):
        scale, dx, dy = draw_zoom(100, 60, config, generator(seed)).tolist()
        assert (scale * 50 + dx, scale * 30 + dy) == pytest.approx((50, 30), abs=1e-4)
        scales.append(scale)
    assert min(scales) >= 0.5 and max(scales) <= 0.9 and max(scales) - min(scales) > 0.3


@pytest.mark.parametrize("scale", [0.5, 0.75, 0.9])
def test_apply_zoom__a_white_rectangle_lands_where_its_box_goes(scale: float) -> None:
    image = np.zeros((80, 120, 3), np.uint8)
    box = np.array([[24, 16, 72, 56]], np.float32)
    image[16:56, 24:72] = 255
    zoom = np.array([scale, (1 - scale) * 60, (1 - scale) * 40], np.float32)
    shown = apply_zoom(image, zoom)[..., 0].astype(np.float64) / 255
    x1, y1, x2, y2 = move_boxes(box, zoom)[0]
    row, column = round((y1 + y2) / 2), round((x1 + x2) / 2)
    inside = (slice(row, row + 1), slice(round((1 - scale) * 60) + 3, round((1 + scale) * 60) - 3))
    # coverage along the middle row and column: its sum is the side, its centre of mass the middle of the box
    across = shown[inside][0]
    assert across.sum() == pytest.approx(x2 - x1, abs=0.3)
    positions = np.arange(inside[1].start, inside[1].stop) + 0.5
    assert (across * positions).sum() / across.sum() == pytest.approx((x1 + x2) / 2, abs=0.15)
    down = shown[round((1 - scale) * 40) + 3 : round((1 + scale) * 40) - 3, column]
    assert down.sum() == pytest.approx(y2 - y1, abs=0.3)


def test_apply_zoom__the_border_is_the_mean() -> None:
    out = apply_zoom(picture(), np.array([0.5, 24, 16], np.float32))
    assert (out[:14] == MEAN).all() and (out[50:] == MEAN).all()
    assert (out[:, :22] == MEAN).all() and (out[:, 74:] == MEAN).all()
    assert not (out[20:40, 30:60] == MEAN).all()


def test_apply_zoom__scale_one_changes_nothing() -> None:
    image = picture()
    np.testing.assert_array_equal(apply_zoom(image, np.array([1, 0, 0], np.float32)), image)


def test_strong_colour__all_off_changes_nothing() -> None:
    np.testing.assert_array_equal(strong_colour(picture(), AugmentConfig(**OFF), generator()), picture())


def test_strong_colour__solarize_and_grayscale_by_hand() -> None:
    image = np.array([[[10, 127, 128], [255, 200, 0]]], np.uint8)
    solarized = strong_colour(image, AugmentConfig(**{**OFF, "solarize": 1.0}), generator())
    assert solarized.tolist() == [[[10, 127, 127], [0, 55, 0]]]
    gray = strong_colour(image, AugmentConfig(**{**OFF, "grayscale": 1.0}), generator())
    expected = image @ np.array([0.299, 0.587, 0.114])  # the luma of RGB
    np.testing.assert_allclose(gray, np.repeat(expected[..., None], 3, axis=2), atol=1)


def test_strong_colour__follows_the_generator_alone() -> None:
    config = AugmentConfig(jitter=1.0, grayscale=0.5, blur=1.0, solarize=0.5)
    first = strong_colour(picture(), config, generator(1))
    torch.manual_seed(5)
    np.random.seed(5)
    np.testing.assert_array_equal(strong_colour(picture(), config, generator(1)), first)
    assert (strong_colour(picture(), config, generator(2)) != first).any()
    assert first.shape == (HEIGHT, WIDTH, 3) and first.dtype == np.uint8
