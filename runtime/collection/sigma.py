"""Strategy ``sigma``: sides of things in the frame are in doubt."""

from __future__ import annotations

import numpy as np

from ptedge.boxes import box_area

from .window import LEAST, Window


def sigma(window: Window) -> float:
    """Score times mean sigma over the size of the box (root of its area), summed over candidates scored 0.1 and above.

    Without the score a weak candidate of huge sigma, of which every frame has one, would decide.
    """
    found = window.now.candidates
    found = found.select(found.scores >= LEAST)
    size = np.sqrt(np.maximum(box_area(found.boxes), 1.0))
    return float((found.scores * found.sigma.mean(axis=1) / size).sum())
