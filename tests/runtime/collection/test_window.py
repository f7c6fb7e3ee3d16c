from __future__ import annotations

import numpy as np
import pytest
from made_windows import look, rows

from ptedge.runtime.collection.window import Window, Windows, are_neighbours, paired

NONE = rows()


def indices(window: Window) -> tuple[int | None, int, int | None]:
    at = [None if one is None else one.result.frame.index for one in (window.before, window.now, window.after)]
    return at[0], at[1] or 0, at[2]


def test_windows__each_frame_once_between_its_neighbours() -> None:
    windows = Windows(0.3, 1)
    told = [indices(w) for i in range(3) for w in windows.add(look(NONE, i, i / 10))]
    told += [indices(w) for w in windows.rest()]
    assert told == [(None, 0, 1), (0, 1, 2), (1, 2, None)]
    assert list(windows.rest()) == []


def test_windows__sources_do_not_mix_and_rest_comes_in_order_of_arrival() -> None:
    windows = Windows(0.3, 1)
    frames = [("a", 0), ("b", 5), ("b", 6), ("a", 1)]
    told = [(w.now.result.frame.source, *indices(w)) for s, i in frames for w in windows.add(look(NONE, i, source=s))]
    assert told == [("b", None, 5, 6), ("a", None, 0, 1)]
    assert [(w.now.result.frame.source, *indices(w)) for w in windows.rest()] == [("b", 5, 6, None), ("a", 0, 1, None)]


def test_windows__a_gap_ends_a_neighbourhood_on_both_sides() -> None:
    windows = Windows(0.3, 1)
    times = [0.0, 1.0, 9.0, 10.0]
    told = [indices(w) for i, t in enumerate(times) for w in windows.add(look(NONE, i, t))]
    assert told + [indices(w) for w in windows.rest()] == [(None, 0, 1), (0, 1, None), (None, 2, 3), (2, 3, None)]


@pytest.mark.parametrize(
    ("words", "whether"),
    [
        ({"index": 6, "time": 3.0}, True),
        ({"index": 6, "time": 3.1}, False),  # 2.1 s later
        ({"index": 6, "time": 0.5}, False),  # earlier: it began again
        ({"index": 5, "time": 1.5}, False),
        ({"index": 90, "time": None}, True),  # files without times
        ({"index": 6, "time": 1.5, "side": 16}, False),
    ],
)
def test_are_neighbours(words: dict[str, int], whether: bool) -> None:
    assert are_neighbours(look(NONE, 5, 1.0), look(NONE, **words)) is whether


def test_paired__best_first_and_each_once() -> None:
    overlap = np.array([[0.9, 0.8], [0.85, 0.2]], np.float32)
    before = overlap.copy()
    assert paired(overlap, 0.3) == [(0, 0)]  # what is left overlaps by 0.2
    assert paired(overlap, 0.2) == [(0, 0), (1, 1)]
    assert (overlap == before).all() and paired(np.zeros((0, 3), np.float32), 0.3) == []


def test_look__light_by_hand() -> None:
    one = look(NONE, side=16)  # four pixels are looked at
    one.result.frame.image[0, 8] = 255
    assert one.light == (pytest.approx(0.25), pytest.approx(np.std([0, 1, 0, 0])))
    assert one.small.shape == (8, 9)
