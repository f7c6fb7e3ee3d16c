from __future__ import annotations

import math

import pytest
from made_windows import look, rows

from ptedge.runtime.collection.drift import MEMORY, Drift
from ptedge.runtime.collection.window import Window


def grey(level: int) -> Window:
    return Window(look(rows((0.9, 0)), grey=level))


def test_drift__distance_from_the_mean_in_standard_deviations() -> None:
    drift = Drift()
    assert drift(grey(100)) == 0.0  # nothing to hold it against
    for level in (104, 96, 104, 96):
        drift(grey(level))
    levels = [100, 104, 96, 104, 96]
    mean = sum(levels) / 5
    spread = math.sqrt(sum((level - mean) ** 2 for level in levels) / 5)
    assert drift(grey(120)) == pytest.approx((120 - mean) / spread, rel=1e-5)


def test_drift__any_of_the_quantities_will_do() -> None:
    drift = Drift()
    for i in range(50):
        drift(Window(look(rows((0.9, 0), (0.8 + 0.01 * (i % 2), 40)), grey=100 + i % 2)))
    usual = drift(Window(look(rows((0.9, 0), (0.8, 40)), grey=100)))
    assert usual < 2
    many = rows(*[(0.85, 30.0 * i) for i in range(9)])
    assert drift(Window(look(many, grey=100))) > 100  # never more than two before
    assert drift(Window(look(rows((0.4, 0), (0.4, 40)), grey=100))) > 20
    assert drift(Window(look(rows(), grey=100))) > 2  # no score to speak of, and no object


def test_drift__forgets() -> None:
    drift = Drift()
    for i in range(2 * MEMORY):
        drift(grey(100 + i % 2))
    first = drift(grey(140))
    for i in range(5 * MEMORY):
        drift(grey(140 + i % 2))
    assert first > 50 and drift(grey(140)) < 2
