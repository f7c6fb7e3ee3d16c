from __future__ import annotations

import pytest
from made_windows import look, rows, window

from ptedge.runtime.collection.near_threshold import near_threshold
from ptedge.runtime.collection.window import Window


def test_near_threshold__by_hand() -> None:
    assert near_threshold(window([(0.3, 0), (0.36, 40), (0.225, 80), (0.46, 120), (0.14, 160)])) == pytest.approx(
        1 + 0.6 + 0.5, abs=1e-5
    )
    assert near_threshold(Window(look(rows((0.5, 0))), threshold=0.5)) == 1.0
    assert near_threshold(window([])) == 0.0
