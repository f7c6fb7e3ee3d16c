"""What a manifest may say of selection."""

from __future__ import annotations

from typing import Any

import pytest

from ptedge.stages.settings import Selection

GOOD: dict[str, Any] = {
    "anchors": ((16.0, 8.0),),
    "proposals": (10, 5),
    "proposal_nms": 0.7,
    "candidates": 10,
    "nms": 0.5,
}


@pytest.mark.parametrize(
    "wrong",
    [
        {"anchors": ()},
        {"anchors": ((16.0, 0.0),)},
        {"anchors": ((float("inf"), 8.0),)},
        {"proposals": (10, 0)},
        {"proposals": (3841, 5)},
        {"candidates": 0},
        {"nms": 1.5},
        {"proposal_nms": -0.1},
    ],
)
def test_selection__what_no_model_has(wrong: dict[str, Any]) -> None:
    Selection(**GOOD)
    with pytest.raises(ValueError, match=r"anchors|proposals|candidates|nms"):
        Selection(**{**GOOD, **wrong})
