from __future__ import annotations

import pytest
from made_windows import look, rows, window

from ptedge.runtime.collection.missed import missed
from ptedge.runtime.collection.window import Window


def test_missed__a_track_that_breaks_counts_its_lower_score() -> None:
    assert missed(window([], [(0.9, 0)], [(0.7, 8)])) == pytest.approx(0.7)
    assert missed(window([(0.5, 4)], [(0.9, 0)], [(0.7, 8)])) == 0.0
    # what is there is far from where it should be, half-way between
    assert missed(window([(0.5, 24)], [(0.9, 0)], [(0.7, 8)])) == pytest.approx(0.7)


def test_missed__two_objects_on_two_sides_are_no_track() -> None:
    assert missed(window([], [(0.9, 0)], [(0.7, 40)])) == 0.0
    other = Window(look(rows()), look(rows((0.9, 0))), look(rows((0.9, 0), label=1)))
    assert missed(other) == 0.0


def test_missed__a_weak_candidate_that_stays_counts_its_mean_score() -> None:
    assert missed(window([(0.2, 0)], [(0.1, 2)], [(0.27, 0)])) == pytest.approx(0.19)
    assert missed(window([(0.2, 0)], [(0.09, 0)], [(0.27, 0)])) == 0.0  # noise before it
    assert missed(window([(0.2, 0)], [(0.2, 60)], [(0.2, 0)])) == 0.0  # elsewhere before it
    # beside an object of this frame it is that object once more
    assert missed(window([(0.9, 0), (0.2, 4)], [(0.1, 4)], [(0.1, 4)])) == 0.0


def test_missed__both_signs_of_one_thing_add_up() -> None:
    assert missed(window([(0.2, 0)], [(0.9, 0)], [(0.7, 0)])) == pytest.approx(0.7 + 1.8 / 3)


def test_missed__needs_a_frame_before_and_one_after() -> None:
    assert missed(window([(0.2, 0)], None, [(0.9, 0)])) == 0.0
    assert missed(window([(0.2, 0)], [(0.9, 0)])) == 0.0
