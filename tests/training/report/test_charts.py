from __future__ import annotations

import re

import numpy as np

from ptedge.training.report.charts import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Trace, chart, ticks


def test_ticks__are_round_and_within() -> None:
    assert ticks(0, 1) == [0, 0.2, 0.4, 0.6, 0.8, 1]
    assert ticks(1, 40) == [10, 20, 30, 40]
    assert ticks(-0.3, 0.5) == [-0.2, 0, 0.2, 0.4]
    assert ticks(1e-6, 8e-5) == [2e-05, 4e-05, 6e-05, 8e-05]


def test_chart__a_line_from_corner_to_corner() -> None:
    made = chart("Loss", "nats", [Trace("", np.array([1.0, 3.0]), np.array([0.0, 4.0]))])
    assert made is not None
    points = re.search(r'points="([^"]+)"', made)
    assert points is not None
    assert points[1] == f"{LEFT:.1f},{HEIGHT - BOTTOM:.1f} {WIDTH - RIGHT:.1f},{TOP:.1f}"
    assert 'aria-label="Loss, nats: from 0 at 1 to 4 at 3"' in made


def test_chart__nothing_to_draw() -> None:
    assert chart("Loss", "", [Trace("", np.zeros(0), np.zeros(0))]) is None


def test_chart__one_value_and_equal_values_have_an_axis() -> None:
    for count in (1, 2):
        made = chart("Loss", "", [Trace("", np.arange(count) + 5.0, np.full(count, 2.0))], span=(0, 10))
        assert made is not None and "nan" not in made
        assert ("<circle" in made) == (count == 1)


def test_chart__long_lines_are_thinned_to_their_ends() -> None:
    made = chart("Loss", "", [Trace("", np.arange(10_000.0), np.arange(10_000.0))])
    assert made is not None
    assert len(made) < 12_000
    assert "to 1e+04 at 9999" in made


def test_chart__marks_guards_and_escapes_what_they_say() -> None:
    made = chart("Loss", "", [Trace("a<b", np.arange(3.0), np.arange(3.0))], marks=[(1, "<b>: stop")])
    assert made is not None
    assert "<title>step 1: &lt;b&gt;: stop</title>" in made and "a guard stepped in" in made
    assert "a<b" not in made
