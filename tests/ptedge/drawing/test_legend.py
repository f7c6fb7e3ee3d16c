from __future__ import annotations

import numpy as np

from ptedge.drawing.legend import LegendRow, band_row, draw_legend
from ptedge.drawing.lettering import Area

ROWS = [LegendRow("source model", (255, 0, 0)), band_row((0, 255, 0))]


def test_draw_legend__shows_a_line_and_a_band_in_their_colours() -> None:
    image = np.zeros((240, 416, 3), np.uint8)
    area = draw_legend(image, ROWS, [])
    assert area is not None and area.right <= 416 and area.bottom <= 240
    middle = (area.top + area.bottom) // 2
    red, green = (image == (255, 0, 0)).all(axis=2), (image == (0, 255, 0)).all(axis=2)
    assert red[:middle].sum() > 15 and not red[middle:].any()
    assert green[middle:].any() and not green[:middle].any()
    # the band beside its line is neither plate nor full colour
    row = image[(middle + area.bottom) // 2, area.left : area.left + 40, 1]
    assert len({int(v) for v in row if 40 < v < 255}) > 5


def test_draw_legend__takes_the_corner_that_is_free() -> None:
    everywhere = Area(0, 0, 416, 240)
    for corner, taken in (
        ((False, True), [Area(0, 120, 416, 240), Area(208, 0, 416, 120)]),
        ((True, True), [Area(0, 120, 416, 240), Area(0, 0, 208, 120)]),
        ((True, False), [Area(0, 0, 416, 120), Area(0, 120, 150, 240)]),
        ((False, False), [everywhere]),  # no room anywhere: the first
    ):
        area = draw_legend(np.zeros((240, 416, 3), np.uint8), ROWS, taken)
        assert area is not None
        # nearer to the right border than to the left, to the upper than to the lower: text differs in width by version
        assert (area.left > 416 - area.right, area.top < 240 - area.bottom) == corner


def test_draw_legend__none_on_a_picture_too_small_for_one() -> None:
    image = np.zeros((60, 80, 3), np.uint8)
    assert draw_legend(image, ROWS, []) is None
    assert draw_legend(np.zeros((240, 416, 3), np.uint8), [], []) is None
    assert not image.any()
