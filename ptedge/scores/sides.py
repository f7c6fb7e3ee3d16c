"""Signed errors of box sides: what all boxes share (an offset), how far they scatter around it, and what it costs.

An offset is an error in common: teacher and student share it, so self-training cannot see it. It comes from how labels
are drawn (tight in one data set, loose in another) or from the look of the place, and costs average precision at high
IoU while AP50 hardly moves. Spread is what is left, and what sigma should tell.

All is relative to the *detected* box, its width for x1 and x2 and its height for y1 and y2: that is what is known where
no label is, and an offset measured so is taken away exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptedge.boxes import clip_boxes
from ptedge.data.dataset import Sample
from ptedge.detections import Detections
from ptedge.scores.average_precision import Matches, evaluate_detections
from ptedge.scores.convention import VOC, Convention
from ptedge.scores.sigma_quality import MIN_SIGMA, interval_coverages

FloatArray = NDArray[np.float64]

SIDES = ("x1", "y1", "x2", "y2")

# times the median absolute deviation of a Gaussian gives its standard deviation: 1.4826
_MAD_TO_SIGMA = 1.0 / NormalDist().inv_cdf(0.75)


@dataclass(frozen=True)
class SideErrors:
    """Errors of each side over the true positives, in shares of the detected box.

    Attributes:
        offset: [4] median of detected minus labelled, of x1, y1, x2, y2; above 0 the side lies too far right or down.
            ``None`` without a true positive.
        spread: [4] robust standard deviation: 1.4826 times the median absolute deviation from ``offset``. For Gaussian
            errors it is the standard deviation; single wild boxes do not move it. ``None`` for fewer than two.
        sigma: [4] median of the detector's own sigma, to compare with ``spread``; ``None`` for a detector without.
    """

    offset: FloatArray | None
    spread: FloatArray | None
    sigma: FloatArray | None

    def to_json(self) -> dict[str, dict[str, float | None]]:
        """Plain values by side, as under ``sides`` in ``ptedge eval --json``."""
        columns = {"offset": self.offset, "spread": self.spread, "sigma": self.sigma}
        return {
            side: {name: None if values is None else float(values[i]) for name, values in columns.items()}
            for i, side in enumerate(SIDES)
        }


@dataclass(frozen=True)
class OffsetRemoved:
    """Scores after every box was moved by the median offsets *measured on the same labels*.

    A diagnosis, not an achievement: it says how much of what is missing is one constant a side. What a correction earns
    shows only on labels it was not measured on.

    Attributes:
        ap50: average precision as in :class:`ptedge.scores.average_precision.DetectionMetrics`; ``None`` where there
            is nothing to find, or no true positive to measure an offset on.
        ap75: as ``ap50``.
        ap: as ``ap50``.
        coverage: by name, of the same true positives as before; ``None`` where sigma or true positives are missing.
    """

    ap50: float | None
    ap75: float | None
    ap: float | None
    coverage: dict[str, float | None]

    def to_json(self) -> dict[str, Any]:
        """Plain values, as under ``offset_removed`` in ``ptedge eval --json``."""
        return {"AP50": self.ap50, "AP75": self.ap75, "AP": self.ap, **self.coverage}


def relative_errors(matches: Matches) -> FloatArray:
    """Detected minus labelled, side by side.

    Args:
        matches: true positives, whose boxes have an area.

    Returns:
        [M, 4] in shares of the detected box's width (x1, x2) and height (y1, y2).
    """
    errors: FloatArray = (matches.boxes - matches.truth) / box_size(matches.boxes)
    return errors


def side_errors(matches: Matches) -> SideErrors:
    """Offset and spread of each side.

    Args:
        matches: true positives, as :func:`ptedge.scores.average_precision.match_detections` gives them.
    """
    if not len(matches):
        return SideErrors(None, None, None)
    errors = relative_errors(matches)
    offset = np.median(errors, axis=0)
    spread = _MAD_TO_SIGMA * np.median(np.abs(errors - offset), axis=0) if len(matches) > 1 else None
    sigma = np.median(matches.sigma / box_size(matches.boxes), axis=0) if matches.sigma.any() else None
    return SideErrors(offset, spread, sigma)


def remove_offset(
    detections: Sequence[Detections],
    samples: Sequence[Sample],
    class_names: Sequence[str],
    matches: Matches,
    offset: FloatArray | None,
    convention: Convention = VOC,
) -> OffsetRemoved:
    """Score again with every box moved by ``offset``, the lone false alarm as well as the true positive.

    Args:
        detections: one an image, in its pixels.
        samples: the same images in the same order.
        class_names: names by label, for both.
        matches: the true positives of ``detections`` as they are.
        offset: [4] as :attr:`SideErrors.offset`.
        convention: what AP50 and AP75 mean.
    """
    errors, sigma = matches.boxes - matches.truth, matches.sigma
    if offset is None or not sigma.any():
        errors = sigma = np.zeros((0, 4))  # no share can be said of them
    else:
        errors = errors - offset * box_size(matches.boxes)
    coverage = interval_coverages(errors, np.maximum(sigma, MIN_SIGMA))
    if offset is None:
        return OffsetRemoved(None, None, None, coverage)
    moved = [move_sides(found, sample, offset) for found, sample in zip(detections, samples, strict=True)]
    metrics = evaluate_detections(moved, samples, class_names, convention)
    return OffsetRemoved(metrics.ap50, metrics.ap75, metrics.ap, coverage)


def move_sides(detections: Detections, sample: Sample, offset: FloatArray) -> Detections:
    """Detections without an offset, cut at the picture's edge.

    Args:
        detections: of one image, in its pixels.
        sample: that image; where its size is unknown nothing is cut.
        offset: [4] in shares of each box.
    """
    exact = detections.boxes.astype(np.float64)
    boxes = (exact - offset * box_size(exact)).astype(np.float32)
    if sample.width:  # labels end at the picture's edge, and so do detections
        boxes = clip_boxes(boxes, sample.width, sample.height)
    return replace(detections, boxes=boxes)


def box_size(boxes: FloatArray) -> FloatArray:
    """What each side is measured by: [N, 4] xyxy -> [N, 4] width, height, width, height."""
    return np.tile(boxes[:, 2:] - boxes[:, :2], 2)


__all__ = [
    "SIDES",
    "OffsetRemoved",
    "SideErrors",
    "box_size",
    "move_sides",
    "relative_errors",
    "remove_offset",
    "side_errors",
]
