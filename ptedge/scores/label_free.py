"""Signs of how good detections are that need no label: two views compared, candidates beside the box that was kept.

Reference: method.md section 8, "Judging without labels".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptedge.detections import Detections, class_iou
from ptedge.scores.sigma_quality import EXPECTED_COVERAGE, MIN_SIGMA

FloatArray = NDArray[np.float64]

PAIR_IOU = 0.5  # as a detection and its label are matched when sigma is judged
CANDIDATE_IOU = 0.5  # a candidate that overlaps a kept box this much speaks of the same object
ONE_SIGMA = EXPECTED_COVERAGE[1]


@dataclass(frozen=True)
class Answers:
    """What a model says of one picture, in its pixels.

    Attributes:
        plain: detections of the picture as it is.
        candidates: the same before suppression: every box above the score threshold.
        second: detections in another view of it, brought back.
    """

    plain: Detections
    candidates: Detections
    second: Detections


@dataclass(frozen=True)
class Signs:
    """Label-free statistics of a model on a set of pictures.

    Attributes:
        frames: pictures.
        pairs: objects that both views found.
        disagreement: of x1, y1, x2, y2, see :func:`disagreement`; ``None`` where there is no pair.
        score: mean score.
        agreement: mean overlap with the best box of the second view, 0 where there is none.
        consistency: mean overlap of a box with the candidates it stands for.
        reliability: mean score of these candidates, relative to the box's own.
        entropy: mean class entropy in nats.
            All five means are over detections, each weighted by its score; ``nan`` where there is no detection.
    """

    frames: int
    pairs: int
    disagreement: tuple[float, float, float, float] | None
    score: float
    agreement: float
    consistency: float
    reliability: float
    entropy: float


def suppress(candidates: Detections, nms_threshold: float, max_detections: int) -> Detections:
    """Class-wise non-maximum suppression.

    Args:
        candidates: best score first.
        nms_threshold: a box that overlaps a better one of its class by more goes.
        max_detections: at most this many stay.
    """
    overlap = class_iou(candidates, candidates)
    keep: list[int] = []
    for row in range(len(candidates)):
        if len(keep) < max_detections and not (overlap[row, keep] > nms_threshold).any():
            keep.append(row)
    return candidates.select(np.array(keep, np.int64))


def pair_views(answers: Answers) -> tuple[FloatArray, FloatArray]:
    """Each box of the plain view with its match in the second: of one class, best score first, largest overlap.

    Args:
        answers: of one picture.

    Returns:
        [M, 4] squared difference of each side over the sum of both variances, which is 1 in the mean if sigma is true
        and the errors of the views are independent; and [M] weights, the product of both scores.
    """
    a, b = answers.plain, answers.second
    overlap = class_iou(a, b)
    rows, columns = [], []
    for row in range(len(a)):
        if len(b) and overlap[row].max() >= PAIR_IOU:
            column = int(overlap[row].argmax())
            overlap[:, column] = -1.0  # taken
            rows.append(row)
            columns.append(column)
    difference = a.boxes[rows].astype(np.float64) - b.boxes[columns]
    variance = sum(np.maximum(d.sigma[i].astype(np.float64), MIN_SIGMA) ** 2 for d, i in ((a, rows), (b, columns)))
    return difference**2 / variance, a.scores[rows].astype(np.float64) * b.scores[columns]


def disagreement(ratio: FloatArray, weights: FloatArray) -> tuple[float, float, float, float] | None:
    """How far two views differ beside what sigma says: the 68.3 % quantile of the ratio for each side.

    Args:
        ratio: [M, 4] and
        weights: [M], as :func:`pair_views` gives them, of all pictures.

    Returns:
        1 of each side if sigma is true and errors of the views are independent; ``None`` without pairs.
    """
    if not len(ratio):
        return None
    x1, y1, x2, y2 = (weighted_quantile(ratio[:, side], weights, ONE_SIGMA) for side in range(4))
    return x1, y1, x2, y2


def candidate_signs(answers: Answers) -> tuple[FloatArray, FloatArray]:
    """How the candidates that a box stands for agree with it.

    A candidate belongs to the kept box of its class that it overlaps most, at :data:`CANDIDATE_IOU` or more; every box
    has at least itself.

    Args:
        answers: of one picture.

    Returns:
        [N] consistency: mean overlap of the box's candidates with it, weighted by their scores; and [N] reliability:
        their mean score over the box's own. Both in [0, 1].

    Reference: Yoo et al., "Automated Model Evaluation for Object Detection via Prediction Consistency and Reliability",
        2025. There both enter one score; here they are two regressors.
    """
    kept, candidates = answers.plain, answers.candidates
    overlap = class_iou(kept, candidates)
    consistency, reliability = np.ones(len(kept)), np.ones(len(kept))
    if not len(kept) or not len(candidates):
        return consistency, reliability
    owner = np.where(overlap.max(axis=0) >= CANDIDATE_IOU, overlap.argmax(axis=0), -1)
    scores = candidates.scores.astype(np.float64)
    for row in range(len(kept)):
        own = owner == row
        if own.any():
            consistency[row] = (scores[own] * overlap[row, own]).sum() / scores[own].sum()
            reliability[row] = min(1.0, scores[own].mean() / kept.scores[row])
    return consistency, reliability


def signs_of(answers: Sequence[Answers]) -> Signs:
    """All statistics of a set of pictures.

    Args:
        answers: one a picture, of one model.
    """
    pairs = [pair_views(one) for one in answers]
    ratio = np.concatenate([np.zeros((0, 4)), *(ratio for ratio, _ in pairs)])
    weights = np.concatenate([np.zeros(0), *(weight for _, weight in pairs)])
    inner = [candidate_signs(one) for one in answers]
    columns: dict[str, Sequence[NDArray[Any]]] = {
        "score": [one.plain.scores for one in answers],
        "agreement": [_best_overlap(one) for one in answers],
        "consistency": [consistency for consistency, _ in inner],
        "reliability": [reliability for _, reliability in inner],
        "entropy": [one.plain.entropy for one in answers],
    }
    joined = {name: np.concatenate([np.zeros(0), *parts]) for name, parts in columns.items()}
    total = joined["score"].sum()
    means = {
        name: float((values * joined["score"]).sum() / total) if total > 0 else float("nan")
        for name, values in joined.items()
    }
    return Signs(len(answers), len(ratio), disagreement(ratio, weights), **means)


def weighted_quantile(values: FloatArray, weights: FloatArray, share: float) -> float:
    """The smallest value that, with those below it, holds a share of the weight.

    Args:
        values: [N], N >= 1.
        weights: [N], above 0.
        share: in (0, 1].
    """
    order = np.argsort(values, kind="stable")
    below = np.cumsum(weights[order])
    # a hair less, so that rounding of the sum does not ask for more weight than there is
    return float(values[order][np.searchsorted(below, share * below[-1] * (1 - 1e-12))])


def _best_overlap(answers: Answers) -> FloatArray:
    overlap = class_iou(answers.plain, answers.second)
    best = overlap.max(axis=1) if len(answers.second) else np.zeros(len(answers.plain))
    return best.astype(np.float64)
