"""How far answers in another arithmetic are from a reference: matched share, boxes, scores, sigma.

Unlike :mod:`ptedge.export.verify.compare`, which asks whether two float32 implementations are equal, this measures a
difference that is there by design. Doubtful detections come and go with any rounding, so only sure ones are counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ptedge.detections import Detections

from .compare import match
from .limits import Limits

SURE = 0.3  # score from which a detection is expected on the other side as well; there it may be lower
NEAR_TIES = 2  # misses that are forgiven however few there are: one pair that hangs on a near-tie, seen from both sides


@dataclass(frozen=True)
class Deviation:
    """Differences of two answers for the same images.

    Attributes:
        limits: what is allowed.
        detections: sure ones, of both sides.
        missed: of these, without a partner, or with one whose box or score is beyond the limits.
        box: 95th percentile over matched pairs of the largest difference of a side, in pixels.
        score: 95th percentile of the difference of scores.
        sigma: median relative difference of sigma, over all sides; 0 without pairs.
        sigma_shift: median ratio of sigma to the reference's, less one: its sign tells over- from underconfidence.
    """

    limits: Limits
    detections: int
    missed: int
    box: float
    score: float
    sigma: float
    sigma_shift: float

    @property
    def matched(self) -> float:
        """Share of sure detections that the other side has too; 1 when there are none."""
        return 1.0 - self.missed / self.detections if self.detections else 1.0

    @property
    def passed(self) -> bool:
        """Within the limits."""
        allowed = max(NEAR_TIES, (1.0 - self.limits.matched) * self.detections)
        nothing_left = 0 < self.detections == self.missed
        return self.missed <= allowed and not nothing_left and self.sigma <= self.limits.sigma

    def __str__(self) -> str:
        if not self.detections:
            return f"no detection above {SURE:g} on either side"
        return (
            f"{self.matched:.1%} of {self.detections} detections above {SURE:g} match (95 % within: box {self.box:.2g} "
            f"px, score {self.score:.2g}), sigma {self.sigma:.2%} off in the median ({self.sigma_shift:+.2%})"
        )


def deviation(reference: Sequence[Detections], found: Sequence[Detections], limits: Limits) -> Deviation:
    """Measure how far answers are from a reference.

    Args:
        reference: one an image, input pixels.
        found: for the same images.
        limits: what counts as matched.
    """
    total = missed = 0
    rows: list[NDArray[np.float32]] = []
    ratios: list[NDArray[np.float32]] = []
    for a, b in zip(reference, found, strict=True):
        sure = int((a.scores >= SURE).sum() + (b.scores >= SURE).sum())
        total += sure
        for i, j in match(a, b):
            weight = int(a.scores[i] >= SURE) + int(b.scores[j] >= SURE)
            if not weight:
                continue
            box = float(np.abs(a.boxes[i] - b.boxes[j]).max())
            score = float(abs(a.scores[i] - b.scores[j]))
            longer = float((a.boxes[i, 2:] - a.boxes[i, :2]).max())
            if box <= max(limits.box, limits.box_relative * longer) and score <= limits.score:
                sure -= weight
            rows.append(np.array([box, score], np.float32))
            ratios.append(b.sigma[j] / np.maximum(a.sigma[i], np.float32(1e-6)) - 1)
        missed += sure
    pairs = np.stack(rows) if rows else np.zeros((1, 2), np.float32)
    shift = np.concatenate(ratios) if ratios else np.zeros(1, np.float32)
    box, score = np.percentile(pairs, 95, axis=0)
    return Deviation(
        limits, total, missed, float(box), float(score), float(np.median(np.abs(shift))), float(np.median(shift))
    )
