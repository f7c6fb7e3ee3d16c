"""Which detection stands for which labelled box, in one class of one image: as pycocotools has it, and as VOC has."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

UNMATCHED = -1
ON_IGNORE = -2


def match_boxes(overlap: NDArray[np.float64], ignore: NDArray[np.bool_], thresholds: ArrayLike) -> NDArray[np.int64]:
    """Greedy matching of one class in one image, at several thresholds at once.

    Args:
        overlap: [N, G] of N detections, best score first, with G boxes; in [0, 1].
        ignore: [G] marks boxes that are neither to be found nor to be missed.
        thresholds: [T] least overlap for a match.

    Returns:
        [T, N] index of the box a detection takes, ``UNMATCHED`` or ``ON_IGNORE``.

    Reference: pycocotools ``COCOeval.evaluateImg``; of boxes with equal overlap the last one is taken, as there.
    """
    least = np.asarray(thresholds, np.float64)  # [T]
    matched = np.full((len(least), len(overlap)), UNMATCHED, np.int64)
    if overlap.size == 0:
        return matched
    on_ignore = np.max(overlap, axis=1, where=ignore[None], initial=0.0)  # [N]
    free = np.repeat(~ignore[None], len(least), axis=0)  # [T, G]
    rows = np.arange(len(least))
    for i in np.flatnonzero(overlap.max(axis=1) >= least.min()):
        candidates = np.where(free, overlap[i], -1.0)  # [T, G]
        best = candidates.shape[1] - 1 - np.argmax(candidates[:, ::-1], axis=1)  # [T]
        hit = candidates[rows, best] >= least
        matched[:, i] = np.where(hit, best, np.where(on_ignore[i] >= least, ON_IGNORE, UNMATCHED))
        free[rows[hit], best[hit]] = False
    return matched


def match_as_devkit(iou: NDArray[np.float64], ignore: NDArray[np.bool_], threshold: float) -> NDArray[np.int64]:
    """Matching of the VOC development kit: each detection looks at its best box only, taken or not.

    Args:
        iou: [N, G] of N detections, best score first, with G boxes; in [0, 1], also for boxes to ignore.
        ignore: [G] marks boxes that are neither to be found nor to be missed (``difficult``).
        threshold: a match overlaps by more than this.

    Returns:
        [N] index of the box a detection takes, ``UNMATCHED`` or ``ON_IGNORE``.

    Reference: VOCevaldet.m; of boxes with equal overlap the first one counts, as there.
    """
    matched = np.full(len(iou), UNMATCHED, np.int64)
    if iou.size == 0:
        return matched
    taken: set[int] = set()
    for i, best in enumerate(iou.argmax(axis=1).tolist()):
        if iou[i, best] <= threshold:
            continue
        if ignore[best]:
            matched[i] = ON_IGNORE
        elif best not in taken:
            taken.add(best)
            matched[i] = best
    return matched


def overlaps(boxes: NDArray[Any], truth: NDArray[np.float64], ignore: NDArray[np.bool_]) -> NDArray[np.float64]:
    """IoU, or intersection over the detection's area for ignore boxes.

    In float64: float32 would put an IoU of exactly 0.65 below the threshold 0.65.

    Args:
        boxes: [N, 4] xyxy, the detections.
        truth: [G, 4] xyxy, the labelled boxes.
        ignore: [G] marks boxes to ignore.

    Returns:
        [N, G] in [0, 1].
    """
    a = boxes.astype(np.float64)[:, None]  # [N, 1, 4]
    b = truth[None]  # [1, G, 4]
    size = np.clip(np.minimum(a[..., 2:], b[..., 2:]) - np.maximum(a[..., :2], b[..., :2]), 0.0, None)
    intersection = size.prod(axis=-1)  # [N, G]
    area_a = np.clip(a[..., 2:] - a[..., :2], 0.0, None).prod(axis=-1)
    area_b = np.clip(b[..., 2:] - b[..., :2], 0.0, None).prod(axis=-1)
    whole = np.where(ignore[None], area_a, area_a + area_b - intersection)
    overlap: NDArray[np.float64] = np.divide(intersection, whole, out=np.zeros_like(intersection), where=whole > 0)
    return overlap
