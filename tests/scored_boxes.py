"""Detections and labelled boxes from plain lists, for tests of scores."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ptedge.data.dataset import Sample
from ptedge.detections import Detections


def make_detections(rows: list[tuple[list[float], float, int]]) -> Detections:
    boxes = np.array([r[0] for r in rows], np.float32).reshape(-1, 4)
    return Detections(
        boxes=boxes,
        scores=np.array([r[1] for r in rows], np.float32),
        labels=np.array([r[2] for r in rows], np.int64),
        sigma=np.ones_like(boxes),
        entropy=np.zeros(len(rows), np.float32),
    )


def make_sample(rows: list[tuple[list[float], int, bool]], image_id: int = 1) -> Sample:
    return Sample(
        path=Path(f"{image_id}.jpg"),
        width=100,
        height=100,
        boxes=np.array([r[0] for r in rows], np.float32).reshape(-1, 4),
        labels=np.array([r[1] for r in rows], np.int64),
        ignore=np.array([r[2] for r in rows], np.bool_),
        image_id=image_id,
    )
