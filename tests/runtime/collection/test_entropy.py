from __future__ import annotations

import numpy as np
import pytest
from made_windows import look, rows

from ptedge.runtime.collection.entropy import entropy
from ptedge.runtime.collection.window import Window


def test_entropy__by_hand() -> None:
    uniform = rows((0.5, 0), (0.1, 40), (0.09, 80), entropy=float(np.log(2)))  # over car and background
    assert entropy(Window(look(uniform))) == pytest.approx(2.0)  # the third says nothing
    assert entropy(Window(look(uniform), num_classes=3)) == pytest.approx(1.0)  # log 2 over log 4, twice
    assert entropy(Window(look(rows()))) == 0.0
