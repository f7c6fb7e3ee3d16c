from __future__ import annotations

from made_windows import window

from ptedge.runtime.collection.count_change import count_change

ONE, TWO = [(0.9, 0.0)], [(0.9, 0.0), (0.9, 40.0)]


def test_count_change__mean_over_the_neighbours() -> None:
    assert count_change(window(TWO, ONE, TWO)) == 0.5
    assert count_change(window([], ONE, TWO)) == 1.5
    assert count_change(window(TWO, None, ONE)) == 1.0
    assert count_change(window(TWO)) == 0.0


def test_count_change__candidates_below_the_threshold_are_no_objects() -> None:
    assert count_change(window([*ONE, (0.29, 40.0)], ONE, ONE)) == 0.0
    assert count_change(window([*ONE, (0.3, 40.0)], ONE, ONE)) == 1.0
