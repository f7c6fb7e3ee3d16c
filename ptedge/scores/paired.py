"""Two models on the same pictures: how sure a difference is, by drawing pictures again (bootstrap).

Both are looked at on the same drawn pictures each time, so what makes a picture hard for both cancels.

Reference: Efron and Tibshirani, "An Introduction to the Bootstrap", 1993; blocks: Kuensch, "The jackknife and the
bootstrap for general stationary observations", 1989.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ptedge.data.dataset import Sample
from ptedge.detections import Detections
from ptedge.scores.average_precision import of_class
from ptedge.scores.matching import ON_IGNORE, match_boxes, overlaps

DRAWS = 2000
IOU = 0.5

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Difference:
    """A difference of two models, second minus first.

    Attributes:
        first: value of the first model.
        second: of the second.
        low: with 95 % confidence, the difference is above this; and
        high: with 95 % confidence below this.
        pictures: that it is of.
    """

    first: float
    second: float
    low: float
    high: float
    pictures: int

    @property
    def value(self) -> float:
        """The difference."""
        return self.second - self.first


def paired_mean(first: FloatArray, second: FloatArray, seed: int = 0) -> Difference:
    """The difference of two means over frames of a video, where neighbours are alike.

    Args:
        first: [N] a value a frame, of the first model, in the order of the frames; N >= 1.
        second: [N] of the second.
        seed: of the draws.

    Returns:
        Bounds by a bootstrap of moving blocks of about N^(1/3) frames, wrapped around.
    """
    count = len(first)
    length = max(1, round(count ** (1 / 3)))
    rng = np.random.default_rng(seed)
    starts = rng.integers(0, count, (DRAWS, -(-count // length)))
    rows = (starts[..., None] + np.arange(length)).reshape(DRAWS, -1)[:, :count] % count  # [DRAWS, N]
    drawn = (second - first)[rows].mean(axis=1)
    low, high = np.quantile(drawn, (0.05, 0.95))
    return Difference(float(first.mean()), float(second.mean()), float(low), float(high), count)


def paired_ap50(
    first: Sequence[Detections],
    second: Sequence[Detections],
    samples: Sequence[Sample],
    classes: int,
    seed: int = 0,
    draws: int = DRAWS,
) -> Difference | None:
    """The difference of two AP50 (VOC all-point, mean over the classes that have boxes) on labelled pictures.

    Args:
        first: detections of the first model, one an image.
        second: of the second.
        samples: the same images in the same order.
        classes: labels are 0..classes-1.
        seed: of the draws.
        draws: of images, with replacement.

    Returns:
        Bounds by drawing images; ``None`` where no box is labelled.
    """
    models = [[_ranked(found, samples, label) for label in range(classes)] for found in (first, second)]
    count = len(samples)
    once = np.ones(count)
    values = [_mean_ap(ranked, once) for ranked in models]
    if None in values:
        return None
    rng = np.random.default_rng(seed)
    drawn = []
    for _ in range(draws):
        times = rng.multinomial(count, np.full(count, 1 / count)).astype(np.float64)
        one, other = (_mean_ap(ranked, times) for ranked in models)
        if one is not None and other is not None:  # drawn without any box: says nothing
            drawn.append(other - one)
    low, high = np.quantile(drawn, (0.05, 0.95))
    return Difference(float(values[0] or 0.0), float(values[1] or 0.0), float(low), float(high), count)


@dataclass(frozen=True)
class _Ranked:
    """Detections of one class over all images, best score first, those on ignore boxes left out.

    Attributes:
        image: [N] number of its image.
        hit: [N] 1.0 for right, 0.0 for wrong.
        boxes: [images] to find.
    """

    image: NDArray[np.int64]
    hit: FloatArray
    boxes: FloatArray


def _ranked(detections: Sequence[Detections], samples: Sequence[Sample], label: int) -> _Ranked:
    image, hit, score, boxes = [], [], [], []
    for number, (one, sample) in enumerate(zip(detections, samples, strict=True)):
        found, truth, ignore = of_class(one, sample, label)
        matched = match_boxes(overlaps(found.boxes, truth, ignore), ignore, [IOU])[0]
        counts = matched != ON_IGNORE
        hit.append(matched[counts] >= 0)
        score.append(found.scores[counts])
        image.append(np.full(int(counts.sum()), number))
        boxes.append(float((~ignore).sum()))
    order = np.argsort(-np.concatenate(score), kind="stable")
    hits = np.concatenate(hit)[order].astype(np.float64)
    return _Ranked(np.concatenate(image)[order].astype(np.int64), hits, np.array(boxes))


def _mean_ap(classes: Sequence[_Ranked], times: FloatArray) -> float | None:
    """Mean over classes that have boxes, each image counted so many times."""
    values = [_ap(ranked, times) for ranked in classes if float(ranked.boxes @ times) > 0]
    return float(np.mean(values)) if values else None


def _ap(ranked: _Ranked, times: FloatArray) -> float:
    weights = times[ranked.image]
    right = np.cumsum(weights * ranked.hit)
    total = np.cumsum(weights)
    precision = np.divide(right, total, out=np.zeros_like(right), where=total > 0)
    envelope = np.maximum.accumulate(precision[::-1])[::-1]
    return float(np.sum(np.diff(right, prepend=0.0) * envelope) / (ranked.boxes @ times))
