from __future__ import annotations

import numpy as np

from ptedge.drawing.lettering import Area, Lettering, areas_of, least_covering


def test_areas_of__pixels_that_a_box_touches() -> None:
    assert areas_of(np.float32([[1.2, 2.0, 9.6, 4.4]])) == [Area(1, 2, 11, 5)]


def test_least_covering__the_first_of_the_best() -> None:
    places = [Area(0, 0, 4, 4), Area(10, 0, 14, 4), Area(20, 0, 24, 4)]
    taken = [Area(0, 0, 100, 1), Area(2, 2, 6, 6), Area(3, 2, 4, 3)]
    # 4 + 4 + 1 pixels, then 4, then 4
    assert least_covering(places, taken) == (places[1], 4)
    assert least_covering(places, taken[1:2]) == (places[1], 0)
    assert least_covering(places[:1], taken) == (places[0], 9)
    assert least_covering(places, []) == (places[0], 0)


def test_lettering__text_of_the_smallest_pictures_is_nine_pixels_high_and_stays_on_its_plate() -> None:
    lettering = Lettering.fitting(120, 160)
    width, height = lettering.size("car 0.91")
    image = np.zeros((60, 160, 3), np.uint8)
    lettering.write(image, "car 0.91", 20, 10, (255, 255, 255))
    rows, columns = np.nonzero(image.max(axis=2) > 100)
    assert rows.max() - rows.min() >= 8
    assert columns.min() >= 20 and columns.max() < 20 + width
    assert rows.min() >= 10 and rows.max() < 10 + height
    assert Lettering.fitting(2160, 3840).scale > 1.5
