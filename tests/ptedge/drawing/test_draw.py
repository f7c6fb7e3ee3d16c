from __future__ import annotations

import numpy as np
import pytest

from ptedge.detections import Detections
from ptedge.drawing.draw import COLORS, SOURCE_COLOR, TRUTH_COLOR, draw_boxes, draw_detections
from ptedge.drawing.lettering import Lettering


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


def bare(image: np.ndarray, detections: Detections) -> np.ndarray:
    """Without a legend."""
    return draw_detections(image, detections, ["car"], legend=None)


def test_draw_detections__band_widths_follow_each_side() -> None:
    image = np.zeros((200, 200, 3), np.uint8)
    drawn = changed(image, bare(image, one([60, 60, 140, 140], [2, 4, 8, 1])))
    row, column = np.flatnonzero(drawn[100]), np.flatnonzero(drawn[:, 100])
    # two sigma outwards; inwards it has faded to nothing just before
    assert row[row < 100].tolist() == list(range(60 - 4, 60 + 4))
    assert (row[row > 100].min(), row.max()) == (140 - 15, 140 + 16)
    assert column.max() == 140 + 2
    assert column[column < 100].max() == 60 + 7


def test_draw_detections__band_fades_with_the_distance_and_ends_in_a_hairline() -> None:
    image = np.zeros((300, 600, 3), np.uint8)
    row = bare(image, one([200, 50, 500, 250], [20, 1, 1, 1]))[150, :, 0].astype(int)  # red
    outwards, inwards = row[199:160:-1], row[201:240]
    for band in (outwards, inwards):
        assert (np.diff(band) <= 0).all()
        assert 0.3 * COLORS[0][0] < band[3] < 0.65 * COLORS[0][0]
        # at one sigma exp(-1/2), lowered by what is left at two: 0.55 of what it is at the side
        assert band[19] <= 0.56 * band[0]
    assert inwards[-2:].max() <= 2
    assert row[160] > 50 and row[159] == 0


@pytest.mark.parametrize("sigma", [2.0, 5.0, 40.0])
@pytest.mark.parametrize("side", [20, 400])
def test_draw_detections__what_is_in_a_box_stays_visible(side: int, sigma: float) -> None:
    image = np.random.default_rng(0).integers(0, 256, (500, 700, 3), np.uint8)
    out = bare(image, one([100, 50, 100 + side, 50 + side], [sigma] * 4))
    quarter = side // 4
    inside = slice(50 + quarter, 50 + side - quarter + 1), slice(100 + quarter, 100 + side - quarter + 1)
    np.testing.assert_array_equal(out[inside], image[inside])
    assert changed(image, out)[50 + side // 2, 100]


def test_draw_detections__lines_of_small_boxes_are_thin() -> None:
    image = np.zeros((900, 900, 3), np.uint8)
    for side, thick in ((20, 1), (400, 3)):
        row = bare(image, one([100, 100, 100 + side, 100 + side], [0] * 4))[100 + side // 2, 90:110]
        assert (row == COLORS[0]).all(axis=1).sum() == thick


def test_draw_detections__legend_is_there_and_leaves_boxes_free() -> None:
    image = np.zeros((240, 416, 3), np.uint8)
    nothing = draw_detections(image, Detections.empty(), ["car"])
    assert changed(image, nothing)[200:, :250].any()  # in the first corner
    box = one([5, 150, 200, 235], [1, 1, 1, 1])
    plain, out = bare(image, box), draw_detections(image, box, ["car"])
    legend = changed(plain, out)
    assert legend.sum() > 3000
    assert not legend[150:236, 5:201].any()


def test_draw_detections__labels_cover_neither_boxes_nor_one_another_where_there_is_room() -> None:
    image = np.zeros((240, 416, 3), np.uint8)
    boxes = np.array([[100, 100, 120, 120], [124, 100, 144, 120], [148, 100, 168, 120]], np.float32)
    three = Detections(
        boxes, np.float32([0.9, 0.8, 0.7]), np.arange(3), np.zeros((3, 4), np.float32), np.zeros(3, np.float32)
    )
    out = draw_detections(image, three, ["car", "person", "train"])
    for x in (100, 124, 148):
        assert not changed(image, out)[101:120, x + 1 : x + 20].any()
    assert [(out == COLORS[i]).all(axis=2).sum() > 400 for i in range(3)] == [True] * 3


def test_draw_detections__labels_in_a_crowd_cover_no_better_one() -> None:
    image = np.zeros((240, 416, 3), np.uint8)
    boxes = np.array([[100 + 6 * i, 100, 125 + 6 * i, 120] for i in range(5)], np.float32)
    crowd = Detections(
        boxes,
        np.linspace(0.9, 0.5, 5, dtype=np.float32),
        np.arange(5),
        np.zeros((5, 4), np.float32),
        np.zeros(5, np.float32),
    )
    out = draw_detections(image, crowd, ["car"] * 5, legend=None)
    wide, high = Lettering.fitting(240, 416).size("car 0.90")
    for i in range(5):  # more than two thirds of each plate is plate and not text: all are whole
        plate = (out[:100] == COLORS[i]).all(axis=2).sum() + (out[121:] == COLORS[i]).all(axis=2).sum()
        assert plate > 0.5 * wide * high


def test_draw_detections__a_label_that_stands_apart_is_led_to_its_box() -> None:
    image = np.zeros((240, 416, 3), np.uint8)
    # the small box lies in the large one: beside it there is no free place
    boxes = np.array([[40, 100, 300, 140], [160, 110, 180, 130]], np.float32)
    two = Detections(boxes, np.float32([0.9, 0.8]), np.arange(2), np.zeros((2, 4), np.float32), np.zeros(2, np.float32))
    out = draw_detections(image, two, ["car", "person"], legend=None)
    column = (out[:, 160:181] == COLORS[1]).all(axis=2).any(axis=1)  # of the small box and its line
    assert column[101:110].all() or column[131:140].all()  # out of the large box, above or below


def test_draw_detections__larger_letters() -> None:
    image = np.zeros((240, 416, 3), np.uint8)
    box = one([100, 100, 120, 120], [0] * 4)
    plates = [
        (draw_detections(image, box, ["car"], legend=None, letters=size) == COLORS[0]).all(axis=2).sum()
        for size in (1, 2)
    ]
    assert plates[1] > 2.5 * plates[0]


def test_draw_detections__one_color_for_all() -> None:
    out = draw_detections(np.zeros((80, 80, 3), np.uint8), one([9, 9, 60, 60], [0] * 4), ["car"], color=SOURCE_COLOR)
    assert tuple(out[40, 60]) == SOURCE_COLOR


def test_draw_boxes__wider_lines_show_around_others() -> None:
    image = np.zeros((50, 50, 3), np.uint8)
    draw_boxes(image, np.float32([[10, 10, 40, 40]]), [TRUTH_COLOR], wider=2)
    assert image[25, 7:14, 0].tolist() == [0, 0, 255, 255, 255, 0, 0]


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


def test_draw_detections__bands_of_many_boxes_do_not_add_up() -> None:
    image = np.random.default_rng(0).integers(0, 256, (96, 160, 3), np.uint8)
    box, sigma = [50.0, 30.0, 130.0, 70.0], [10.0, 10.0, 10.0, 10.0]
    many = Detections(
        np.array([box] * 30, np.float32),
        np.full(30, 0.5, np.float32),
        np.zeros(30, np.int64),
        np.array([sigma] * 30, np.float32),
        np.zeros(30, np.float32),
    )
    out = bare(image, many)
    # at one sigma from the left side, by hand: (exp(-1/2) - exp(-2)) / (1 - exp(-2)) of the opacity of 0.6
    alpha = 0.6 * (np.exp(-0.5) - np.exp(-2)) / (1 - np.exp(-2))
    expected = (1 - alpha) * image[35:65, 40] + alpha * np.array(COLORS[0])
    # thirty labels have to lie somewhere, where depends on the font of the version; a part of the side is free of them
    assert np.quantile(np.abs(out[35:65, 40] - expected).max(axis=1), 0.25) <= 1
