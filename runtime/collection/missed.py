"""Strategy ``missed``: something seems to be there that is not among the objects.

Two signs: an object of the frame before and of the frame after that is none in this one (a track that breaks), and a
candidate below the threshold that is at the same place in all three frames. Candidates that a better one suppressed are
not among the outputs of the graph, so they cannot tell.
"""

from __future__ import annotations

import numpy as np

from ptedge.detections import Detections, class_iou

from .window import LEAST, SAME, Window, paired


def missed(window: Window) -> float:
    """How much seems to be missing, in objects by their scores; 0 without a frame before and one after."""
    if window.before is None or window.after is None:
        return 0.0
    return _broken_tracks(window) + _weak_ones(window)


def _broken_tracks(window: Window) -> float:
    """The lower of the two scores of each object that is there before and after, and not at the place between."""
    assert window.before is not None and window.after is not None
    first, second = window.before.objects, window.after.objects
    pairs = paired(class_iou(first, second), SAME)
    if not pairs:
        return 0.0
    i, j = (np.array(rows) for rows in zip(*pairs, strict=True))
    between = first.select(i)
    between = Detections(
        boxes=(first.boxes[i] + second.boxes[j]) / 2,
        scores=np.minimum(first.scores[i], second.scores[j]),
        labels=between.labels,
        sigma=between.sigma,
        entropy=between.entropy,
    )
    return float(between.scores[_unmet(between, window.now.objects)].sum())


def _weak_ones(window: Window) -> float:
    """Mean score over the three frames of each candidate below the threshold that stays where it is."""
    now = window.now.candidates
    weak = now.select((now.scores >= LEAST) & (now.scores < window.threshold))
    weak = weak.select(_unmet(weak, window.now.objects))
    support = weak.scores.copy()
    stays = np.ones(len(weak), bool)
    for look in window.neighbours:
        others = look.candidates.select(look.candidates.scores >= LEAST)
        scores = np.where(class_iou(weak, others) >= SAME, others.scores[None], np.float32(0))
        best = scores.max(axis=1, initial=0.0)
        support, stays = support + best, stays & (best > 0)
    return float(support[stays].sum() / 3)


def _unmet(found: Detections, others: Detections) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """Which have none of the others at their place."""
    return np.asarray(class_iou(found, others).max(axis=1, initial=0.0) < SAME)
