"""Strategy ``near_threshold``: scores that a little more or less would turn from an object into none, or back."""

from __future__ import annotations

import numpy as np

from .window import Window

REACH = 0.15  # of scores, on either side of the threshold


def near_threshold(window: Window) -> float:
    """How many candidates are near the threshold; one at it counts 1, falling to 0 at 0.15 on either side."""
    away = np.abs(window.now.candidates.scores - window.threshold)
    return float(np.clip(1 - away / REACH, 0, None).sum())
