from __future__ import annotations

import pytest
from made_windows import look, rows

from ptedge.runtime.collection.sigma import sigma
from ptedge.runtime.collection.window import Window


def test_sigma__by_hand() -> None:
    found = rows((0.5, 0), (0.1, 40), (0.09, 80), sigma=4.0)  # boxes of 20 x 20
    assert sigma(Window(look(found))) == pytest.approx(0.5 * 4 / 20 + 0.1 * 4 / 20)
    assert sigma(Window(look(rows()))) == 0.0
