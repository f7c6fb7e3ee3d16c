"""Offset, scale and conformal intervals of box sides from a few labelled boxes, shrunk where few say little.

Everything is in shares of the detected box, where the detected box itself is (0, 0, 1, 1): what all boxes share is
then a constant, and overlap with the labelled box follows from the errors alone.

Reference: method.md section 1, "Calibrated sides"; docs/calibrate.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ptedge.calibration import MOST_OFFSET
from ptedge.scores.robust import FloatArray, IntArray, jackknife_error, leave_out, location, shrinkage, spread
from ptedge.scores.sigma_quality import SHARES, interval_width

MOST_SCALE = 20.0  # sigma is not taken to be further off than this, either way
PRIOR_LOG_SCALE = 0.5  # spread of log scale among models: sigma off by a factor of 1.6 is ordinary
_UNIT = np.array([0.0, 0.0, 1.0, 1.0])


@dataclass(frozen=True)
class SideSample:
    """True positives of a model, as calibration sees them.

    Attributes:
        errors: [M, 4] detected minus labelled, in shares of the detected box.
        sigma: [M, 4] of the detector, in the same shares, above 0; all 0 for a detector without.
        images: [M] which image each is from.
    """

    errors: FloatArray
    sigma: FloatArray
    images: IntArray

    def __len__(self) -> int:
        return len(self.errors)

    def take(self, rows: NDArray[np.bool_]) -> SideSample:
        """Some of them.

        Args:
            rows: [M] which.
        """
        return SideSample(self.errors[rows], self.sigma[rows], self.images[rows])


@dataclass(frozen=True)
class OffsetFit:
    """Offset of the sides, in shares of the box.

    Attributes:
        measured: [4] robust location of the errors.
        error: [4] its standard error.
        weight: [4] what shrinkage leaves of it, in [0, 1].
        others: [M, 4] the shrunk offset of the other images, for each box.
        gain: mean of what moving each box by ``others`` adds to its IoU.
        gain_error: standard error of ``gain``.
    """

    measured: FloatArray
    error: FloatArray
    weight: FloatArray
    others: FloatArray
    gain: float
    gain_error: float

    @property
    def helps(self) -> bool:
        """Whether boxes that had no part in it overlap their labels better by it, beyond one standard error."""
        return self.gain > self.gain_error

    @property
    def offset(self) -> FloatArray:
        """[4] to apply; 0 where it does not help."""
        return np.clip(self.weight * self.measured, -MOST_OFFSET, MOST_OFFSET) if self.helps else np.zeros(4)


@dataclass(frozen=True)
class SideFit:
    """What a sample says.

    Attributes:
        offset: of the sides.
        scale: [4] what sigma is to be multiplied by; 1 for a detector without sigma.
        intervals: coverage -> [4] factors of the calibrated sigma.
        too_few: coverage -> boxes that an interval of it takes, where there are fewer.
    """

    offset: OffsetFit
    scale: FloatArray
    intervals: dict[float, FloatArray]
    too_few: dict[float, int]


def fit_sides(sample: SideSample, coverages: Sequence[float] = ()) -> SideFit:
    """Fit a calibration.

    Args:
        sample: at least two true positives.
        coverages: of the intervals to give, each in (0, 1).
    """
    offset = fit_offset(sample)
    residuals = sample.errors - offset.others if offset.helps else sample.errors
    if not sample.sigma.any():
        return SideFit(offset, np.ones(4), {}, {})
    standardised = np.abs(residuals) / sample.sigma
    scale = fit_scale(standardised, sample.images)
    found: dict[float, FloatArray] = {}
    too_few: dict[float, int] = {}
    for coverage in coverages:
        factors = conformal_factors(standardised / scale, coverage)
        if factors is None:
            too_few[coverage] = boxes_needed(coverage)
        else:
            found[coverage] = factors
    return SideFit(offset, scale, found, too_few)


def fit_offset(sample: SideSample) -> OffsetFit:
    """The offset of the sides, shrunk towards 0, with what it gains on images left out.

    The four sides are taken for four draws of one Gaussian around 0, see :func:`shrinkage`.

    Args:
        sample: at least two true positives.
    """
    measured = location(sample.errors)
    rows, part = leave_out(sample.errors, sample.images, location)
    error = np.maximum(jackknife_error(rows), spread(sample.errors) / math.sqrt(0.95 * len(sample)))
    weight = shrinkage(measured, error)
    others = np.clip(weight * rows[part], -MOST_OFFSET, MOST_OFFSET)
    gains = unit_iou(sample.errors, others) - unit_iou(sample.errors, np.zeros(4))
    means, _ = leave_out(gains[:, None], sample.images, lambda rest: rest.mean(axis=0))
    return OffsetFit(measured, error, weight, others, float(gains.mean()), float(jackknife_error(means)[0]))


def fit_scale(standardised: FloatArray, images: IntArray) -> FloatArray:
    """What sigma of each side is to be multiplied by.

    A side's own scale is drawn towards that of all sides, as far as they do not differ beyond chance, and that of all
    sides towards 1, as far as :data:`PRIOR_LOG_SCALE` makes it unlikely.

    Args:
        standardised: [M, 4] magnitude of errors in units of sigma.
        images: [M].
    """
    logs = np.maximum(standardised, 1e-6)
    own = log_scale(logs)
    own_error = jackknife_error(leave_out(logs, images, log_scale)[0])
    together = float(_log_scale_together(logs)[0])
    variance = float(jackknife_error(leave_out(logs, images, _log_scale_together)[0])[0]) ** 2
    kept = PRIOR_LOG_SCALE**2 / (PRIOR_LOG_SCALE**2 + variance)
    apart = own - together
    scale: FloatArray = np.exp(kept * (together + shrinkage(apart, own_error) * apart))
    return np.clip(scale, 1.0 / MOST_SCALE, MOST_SCALE)


def log_scale(standardised: FloatArray) -> FloatArray:
    """Logarithm of the factor that makes sigma cover what it should, in the mean over :data:`SHARES`.

    Args:
        standardised: [M, N] magnitude of errors in units of sigma.

    Returns:
        [N] mean of log(quantile / its Gaussian value). Quantiles bear wild errors, where a root mean square does not.
    """
    wanted = np.array([interval_width(share) for share in SHARES])
    found = np.quantile(standardised, np.array(SHARES) / 100.0, axis=0)  # [levels, N]
    return np.asarray(np.log(found / wanted[:, None]).mean(axis=0), np.float64)


def _log_scale_together(standardised: FloatArray) -> FloatArray:
    return log_scale(standardised.reshape(-1, 1))


def conformal_factors(scores: FloatArray, coverage: float) -> FloatArray | None:
    """Factor of sigma within which a new side lies with a given probability, whatever the errors' distribution.

    Args:
        scores: [M, N] magnitude of errors in units of sigma, of boxes that had no part in the offset.
        coverage: in (0, 1).

    Returns:
        [N] the ceil((M + 1) coverage)-th smallest; ``None`` where that is more than there are.

    Reference: Vovk et al., "Algorithmic Learning in a Random World", 2005; Lei et al., "Distribution-Free Predictive
    Inference for Regression", 2018, section 2.
    """
    rank = math.ceil((len(scores) + 1) * coverage - 1e-9)
    return None if rank > len(scores) else np.sort(scores, axis=0)[rank - 1]


def boxes_needed(coverage: float) -> int:
    """Boxes from which :func:`conformal_factors` gives an interval of a coverage in (0, 1)."""
    return math.ceil(coverage / (1.0 - coverage) - 1e-9)


def unit_iou(errors: FloatArray, offset: FloatArray) -> FloatArray:
    """IoU of detected boxes, moved, with their labels.

    Args:
        errors: [M, 4] in shares of the detected box.
        offset: [4] or [M, 4] in the same shares.

    Returns:
        [M].
    """
    moved, truth = _UNIT - offset, _UNIT - errors
    size = np.minimum(moved, truth)[..., 2:] - np.maximum(moved, truth)[..., :2]
    intersection = np.clip(size, 0.0, None).prod(axis=-1)
    area = (moved[..., 2:] - moved[..., :2]).prod(axis=-1) + (truth[..., 2:] - truth[..., :2]).prod(axis=-1)
    return np.asarray(intersection / (area - intersection), np.float64)
