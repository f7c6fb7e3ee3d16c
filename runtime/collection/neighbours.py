"""Strategy ``neighbours``: the frame and those around it show the same things, and the model says otherwise."""

from __future__ import annotations

import numpy as np

from ptedge.detections import Detections, class_iou

from .window import LEAST, SAME, Window, paired


def neighbours(window: Window) -> float:
    """Score that is in one frame and not in the other, mean over the neighbours; 0 without any.

    Candidates from a score of 0.1 are paired one to one by class and overlap; a pair leaves the difference of its two
    scores, a candidate without a partner its own.
    """
    unlike = [_unshared(window.now.candidates, look.candidates) for look in window.neighbours]
    return sum(unlike) / len(unlike) if unlike else 0.0


def _unshared(first: Detections, second: Detections) -> float:
    first, second = (found.select(found.scores >= LEAST) for found in (first, second))
    pairs = paired(class_iou(first, second), SAME)
    shared = sum(float(np.minimum(first.scores[i], second.scores[j])) for i, j in pairs)
    return float(first.scores.sum() + second.scores.sum()) - 2 * shared
