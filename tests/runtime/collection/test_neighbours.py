from __future__ import annotations

import pytest
from made_windows import look, rows, window

from ptedge.runtime.collection.neighbours import neighbours
from ptedge.runtime.collection.window import Window


def test_neighbours__by_hand() -> None:
    assert neighbours(window([(0.9, 0)], [(0.9, 0)], [(0.9, 5)])) == pytest.approx(0)  # 5 of 20 pixels on: the same
    assert neighbours(window([(0.9, 0)], [(0.4, 0)], [(0.9, 0)])) == pytest.approx(0.25)
    assert neighbours(window([(0.9, 0)], [(0.6, 40)])) == pytest.approx(1.5)  # elsewhere: both scores
    assert neighbours(window([(0.9, 0), (0.09, 40)], [(0.9, 0)])) == pytest.approx(0)  # too low to say anything
    assert neighbours(window([(0.9, 0)], [])) == pytest.approx(0.9)
    assert neighbours(window([(0.9, 0)])) == 0.0


def test_neighbours__another_class_is_another_thing() -> None:
    other = Window(look(rows((0.9, 0))), look(rows((0.8, 0), label=1)))
    assert neighbours(other) == pytest.approx(1.7)
