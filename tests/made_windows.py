"""Frames, their neighbours and made-up answers, for what chooses frames."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ptedge.detections import Detections
from ptedge.frames.source import Frame
from ptedge.runtime.collection.window import Look, Window
from ptedge.runtime.sinks.files import Result

Row = tuple[float, float]  # score, and x of the left side of a box of 20 x 20 pixels


def rows(*found: Row, label: int = 0, sigma: float = 1.0, entropy: float = 0.1) -> Detections:
    """Boxes of 20 x 20 pixels beside one another."""
    count = len(found)
    boxes = np.array([(x, 0, x + 20, 20) for _, x in found], np.float32).reshape(-1, 4)
    scores = np.array([score for score, _ in found], np.float32)
    spread = np.full((count, 4), sigma, np.float32)
    return Detections(boxes, scores, np.full(count, label), spread, np.full(count, entropy, np.float32))


def look(
    candidates: Detections, index: int = 0, time: float | None = None, grey: int = 0, source: str = "a", side: int = 32
) -> Look:
    """A frame of one grey, and what was found in it; an object from a score of 0.3."""
    image = np.full((side, side, 3), grey, np.uint8)
    result = Result(Frame(image, index, time, source, None), candidates, ("car",))
    return Look(result, candidates, candidates.select(candidates.scores >= 0.3))


def window(now: Sequence[Row], before: Sequence[Row] | None = None, after: Sequence[Row] | None = None) -> Window:
    """A frame between its neighbours."""
    around = [None if found is None else look(rows(*found)) for found in (before, after)]
    return Window(look(rows(*now)), *around)
