"""Corruptions: fifty sets, boxes where they belong, and what a few of them do by hand."""

import numpy as np
import pytest

from ptedge.training.estimate.corruptions import CLEAN, KINDS, SMALLER, STRENGTHS, Corruption, corrupt, corruption_sets

BOXES = np.array([[8, 4, 40, 36]], np.float32)


def picture(height: int = 48, width: int = 64) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8)


def rng() -> np.random.Generator:
    return np.random.default_rng(1)


def test_sets__fifty_of_thirteen_kinds() -> None:
    sets = corruption_sets()
    assert len(sets) == 50
    assert {one.kind for one in sets} == {CLEAN, SMALLER, *KINDS}
    assert {one.strength for one in sets if one.kind == "haze"} == set(STRENGTHS)


def test_corrupt__clean_is_the_picture() -> None:
    image, boxes = corrupt(picture(), BOXES, Corruption(CLEAN, 0.0), rng())
    assert np.array_equal(image, picture()) and np.array_equal(boxes, BOXES)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_corrupt__changes_the_look_more_with_strength_and_no_box(kind: str) -> None:
    weak, strong = (corrupt(picture(), BOXES, Corruption(kind, strength), rng()) for strength in (0.2, 0.8))
    for image, boxes in (weak, strong):
        assert image.shape == picture().shape and image.dtype == np.uint8
        assert np.array_equal(boxes, BOXES)
    change = [np.abs(image.astype(int) - picture()).mean() for image, _ in (weak, strong)]
    assert 0 < change[0] < change[1]
    again, _ = corrupt(picture(), BOXES, Corruption(kind, 0.8), rng())
    assert np.array_equal(again, strong[0])


def test_flat__a_tenth_of_the_contrast_is_left_at_full_strength() -> None:
    image = np.zeros((4, 4, 3), np.uint8)
    image[:2] = 200
    flat, _ = corrupt(image, BOXES, Corruption("flat", 1.0), rng())
    assert (flat[0, 0].tolist(), flat[3, 0].tolist()) == ([110] * 3, [90] * 3)


def test_dark__a_square_root_of_the_light_and_a_quarter_of_it() -> None:
    image = np.full((4, 4, 3), 128, np.uint8)
    dark, _ = corrupt(image, BOXES, Corruption("dark", 1.0), rng())
    assert dark[0, 0].tolist() == [round(255 * (128 / 255) ** 2 * 0.25)] * 3


def test_smaller__boxes_stay_on_what_they_frame() -> None:
    image = np.zeros((480, 640, 3), np.uint8)
    image[100:300, 200:400] = 255
    small, boxes = corrupt(image, np.array([[200, 100, 400, 300]], np.float32), Corruption(SMALLER, 0.8), rng())
    x1, y1, x2, y2 = boxes[0]
    assert x2 - x1 == pytest.approx(200 * 0.48, rel=0.01)
    rows, columns = np.nonzero(small[..., 0] > 190)
    assert (columns.min(), rows.min(), columns.max() + 1, rows.max() + 1) == pytest.approx((x1, y1, x2, y2), abs=1.0)
