"""Calibrate a model's sides on labelled images, and tell what that does to images that had no part in it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptedge.calibration import CalibrationOrigin, SideCalibration, Sides
from ptedge.data.dataset import Dataset, Sample
from ptedge.detections import Detections
from ptedge.errors import InputError
from ptedge.files import sha256_file
from ptedge.scores.average_precision import evaluate_detections, match_detections
from ptedge.scores.evaluation import MATCH_IOU
from ptedge.scores.robust import folds
from ptedge.scores.side_fit import SideFit, SideSample, fit_sides
from ptedge.scores.sides import SIDES, box_size, move_sides, relative_errors
from ptedge.scores.sigma_quality import MIN_SIGMA, interval_coverages

FloatArray = NDArray[np.float64]

FEWEST_BOXES = 5  # fewer true positives say nothing of four sides
DECIMALS = 6  # of the numbers kept: the graph computes in float32


@dataclass(frozen=True)
class CalibrationResult:
    """A calibration and its effect.

    Attributes:
        calibration: to keep.
        fit: how it came about.
        labelled: boxes there were to find.
        before: AP50, AP75, AP, coverage_50 and so on, of the model as it is.
        after: the same with each image corrected by what the other images give.
        held: coverage of each interval, counted in the same way.
    """

    calibration: SideCalibration
    fit: SideFit
    labelled: int
    before: dict[str, float | None]
    after: dict[str, float | None]
    held: dict[str, float]

    def to_json(self) -> dict[str, Any]:
        """Plain values, as ``ptedge calibrate --json`` prints them."""
        offset = self.fit.offset
        sides = {
            side: {
                "measured": float(offset.measured[i]),
                "error": float(offset.error[i]),
                "weight": float(offset.weight[i]),
                "offset": self.calibration.offset[i],
                "scale": self.calibration.scale[i],
                "intervals": {level: factors[i] for level, factors in self.calibration.intervals.items()},
            }
            for i, side in enumerate(SIDES)
        }
        origin = self.calibration.origin
        return {
            "images": origin.images,
            "labelled_boxes": self.labelled,
            "found_boxes": origin.boxes,
            "sides": sides,
            "offset_applied": offset.helps,
            "offset_gain": {"iou": offset.gain, "error": offset.gain_error},
            "before": self.before,
            "after": self.after,
            "intervals_held": self.held,
            "intervals_too_few": {_level(c): count for c, count in self.fit.too_few.items()},
        }


def measure_calibration(
    detections: Sequence[Detections], dataset: Dataset, coverages: Sequence[float] = (), model: str = ""
) -> CalibrationResult:
    """Measure a calibration on labelled images.

    Args:
        detections: of the uncalibrated model, one an image, in its pixels, in the order of the data set's samples.
        dataset: the labels.
        coverages: of the intervals to give, each in (0, 1).
        model: sha256 of the model's file.

    Raises:
        InputError: fewer than :data:`FEWEST_BOXES` labelled boxes were found.
    """
    sample, places = find_sample(detections, dataset)
    if len(sample) < FEWEST_BOXES:
        raise InputError(
            f"the model found {len(sample)} of the {dataset.num_boxes} labelled boxes of {dataset.root} (IoU "
            f"{MATCH_IOU:g}); a calibration takes {FEWEST_BOXES} at least. Label more frames"
        )
    fit = fit_sides(sample, coverages)
    origin = CalibrationOrigin("labels", len(sample), len(dataset), digest_of(dataset), model)
    parts = folds(sample.images)
    others = [fit_sides(sample.take(parts != part), coverages) for part in range(parts.max() + 1)]
    after, held = _left_out(detections, dataset, sample, [others[part] for part in parts], places, fit)
    return CalibrationResult(
        calibration=SideCalibration(
            _sides(fit.offset.offset),
            _sides(fit.scale),
            {_level(coverage): _sides(factors) for coverage, factors in fit.intervals.items()},
            origin,
        ),
        fit=fit,
        labelled=dataset.num_boxes,
        before=_scores(detections, dataset, sample.errors, sample.sigma),
        after=after,
        held=held,
    )


def find_sample(detections: Sequence[Detections], dataset: Dataset) -> tuple[SideSample, list[NDArray[np.int64]]]:
    """The true positives as calibration sees them.

    Args:
        detections: one an image, in its pixels, in the order of the data set's samples.
        dataset: the labels.

    Returns:
        The sample, and for each image which rows of it are its own.
    """
    errors: list[NDArray[np.float64]] = [np.zeros((0, 4))]
    sigma: list[NDArray[np.float64]] = [np.zeros((0, 4))]
    places: list[NDArray[np.int64]] = []
    count = 0
    for found, labels in zip(detections, dataset.samples, strict=True):
        matches = match_detections([found], [labels], len(dataset.class_names), MATCH_IOU)
        errors.append(relative_errors(matches))
        # 0 stays 0: a detector without variances
        floor = MIN_SIGMA if matches.sigma.any() else 0.0
        sigma.append(np.maximum(matches.sigma, floor) / box_size(matches.boxes))
        places.append(np.arange(count, count + len(matches), dtype=np.int64))
        count += len(matches)
    images = np.repeat(np.arange(len(places)), [len(rows) for rows in places])
    return SideSample(np.concatenate(errors), np.concatenate(sigma), images), places


def _left_out(
    detections: Sequence[Detections],
    dataset: Dataset,
    sample: SideSample,
    others: Sequence[SideFit],
    places: Sequence[NDArray[np.int64]],
    fit: SideFit,
) -> tuple[dict[str, float | None], dict[str, float]]:
    """Scores with each image corrected by the fit to others (one a box), and the coverage of their intervals."""
    moved = []
    for found, labels, rows in zip(detections, dataset.samples, places, strict=True):
        one = others[rows[0]] if len(rows) else fit  # an image where nothing was found had no part in any
        moved.append(move_sides(found, labels, one.offset.offset))
    errors = sample.errors - np.stack([one.offset.offset for one in others])
    sigma = sample.sigma * np.stack([one.scale for one in others])
    held = {}
    for coverage in fit.intervals:
        known = np.array([coverage in one.intervals for one in others])
        if known.any():
            factors = np.stack([one.intervals[coverage] for one, there in zip(others, known, strict=True) if there])
            held[_level(coverage)] = float(np.mean(np.abs(errors[known]) <= factors * sigma[known]))
    return _scores(moved, dataset, errors, sigma), held


def _scores(
    detections: Sequence[Detections], dataset: Dataset, errors: FloatArray, sigma: FloatArray
) -> dict[str, float | None]:
    metrics = evaluate_detections(detections, dataset.samples, dataset.class_names)
    rows = slice(None) if sigma.any() else slice(0)
    coverage = interval_coverages(errors[rows], sigma[rows])
    return {"AP50": metrics.ap50, "AP75": metrics.ap75, "AP": metrics.ap, **coverage}


def digest_of(dataset: Dataset) -> str:
    """What tells one set of labelled images from another: sha256 over images and boxes, in whatever order they come.

    Raises:
        InputError: an image cannot be read.
    """
    return hashlib.sha256("\n".join(sorted(_line(sample) for sample in dataset.samples)).encode()).hexdigest()


def _line(sample: Sample) -> str:
    try:
        image = sha256_file(sample.path)
    except OSError as error:
        raise InputError(f"cannot read {sample.path}: {error.strerror}") from None
    rows = zip(sample.labels.tolist(), sample.ignore.tolist(), sample.boxes.tolist(), strict=True)
    return f"{image} {sorted(rows)}"


def _sides(values: FloatArray) -> Sides:
    x1, y1, x2, y2 = (round(float(value), DECIMALS) for value in values)
    return x1, y1, x2, y2


def _level(coverage: float) -> str:
    return f"{coverage:g}"
