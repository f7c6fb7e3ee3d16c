"""Detections in numpy from a few numbers, for tests of label-free signs."""

from __future__ import annotations

import numpy as np

from ptedge.detections import Detections


def found(*rows: tuple[float, int, list[float]], sigma: float = 1.0) -> Detections:
    """Detections of (score, label, box), entropy 1 - score."""
    scores = np.array([row[0] for row in rows], np.float32)
    return Detections(
        boxes=np.array([row[2] for row in rows], np.float32).reshape(-1, 4),
        scores=scores,
        labels=np.array([row[1] for row in rows], np.int64),
        sigma=np.full((len(rows), 4), sigma, np.float32),
        entropy=1 - scores,
    )
