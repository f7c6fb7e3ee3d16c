"""Is sigma true? Coverage, likelihood, calibration error and ranking of the standard deviations of box sides.

Everything here looks at true positives only: what a detector says about its misses is the score's business.
Every function gives ``None`` where there is nothing to measure, never NaN.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptedge.scores.average_precision import Matches

FloatArray = NDArray[np.float64]

# share of a Gaussian within one and two standard deviations
EXPECTED_COVERAGE = {1: 0.6826895, 2: 0.9544997}
# intervals, in per cent of a Gaussian, that are looked at by name
SHARES = (50, 68, 90, 95)

# a sigma of 0 would make the likelihood infinite; no detector of ptedge goes below this many pixels in earnest
MIN_SIGMA = 1e-3


@dataclass(frozen=True)
class SigmaQuality:
    """How well sigma describes the error of the true positives; ``None`` where that cannot be said.

    A detector without variance heads answers sigma 0 throughout; then all that concerns sigma is ``None``.

    Attributes:
        matches: true positives looked at.
        coverage_1: share of box sides within one sigma of the label; 0.683 if sigma is true.
        coverage_2: share within two sigma; 0.954 if sigma is true.
        coverage_50: share within the central 50 % of a Gaussian of that sigma (0.674 sigma); 0.50 if sigma is true.
        coverage_68: the same for 68 % (0.994 sigma).
        coverage_90: the same for 90 % (1.645 sigma).
        coverage_95: the same for 95 % (1.960 sigma).
        nll: mean negative log-likelihood of a side, in nats, for pixels. Lower is better.
        ence: expected normalised calibration error; 0 if sigma is true.
        mean_sigma: pixels.
        rmse: root mean squared error of a side, in pixels.
        rank_sigma: Spearman correlation of a box's mean sigma with 1 - IoU. Positive is right: wide sigma, poor box.
        rank_relative_sigma: the same for mean sigma / sqrt(box area). IoU does not know scale but pixels do, so this is
            the fairer of the two.
        rank_score: the same for 1 - score: how well the score alone ranks the boxes.
    """

    matches: int
    coverage_1: float | None = None
    coverage_2: float | None = None
    coverage_50: float | None = None
    coverage_68: float | None = None
    coverage_90: float | None = None
    coverage_95: float | None = None
    nll: float | None = None
    ence: float | None = None
    mean_sigma: float | None = None
    rmse: float | None = None
    rank_sigma: float | None = None
    rank_relative_sigma: float | None = None
    rank_score: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain values, as under ``sigma`` in ``ptedge eval --json``."""
        return dict(vars(self))


def sigma_quality(matches: Matches) -> SigmaQuality:
    """All measures of this file at once.

    Args:
        matches: true positives, as :func:`ptedge.scores.average_precision.match_detections` gives them.
    """
    errors = matches.boxes - matches.truth
    miss = 1.0 - matches.iou
    rmse, rank_score = root_mean_square(errors), spearman(1.0 - matches.scores, miss)
    if not matches.sigma.any():
        return SigmaQuality(len(matches), rmse=rmse, rank_score=rank_score)
    sigma = np.maximum(matches.sigma, MIN_SIGMA)
    mean_sigma = matches.sigma.mean(axis=1)  # [M]
    size = np.clip(matches.boxes[:, 2:] - matches.boxes[:, :2], 0.0, None)
    root_area = np.sqrt(np.maximum(size.prod(axis=1), 1.0))  # [M]; below one pixel the quotient would say nothing
    return SigmaQuality(
        matches=len(matches),
        coverage_1=coverage(errors, sigma, 1.0),
        coverage_2=coverage(errors, sigma, 2.0),
        **interval_coverages(errors, sigma),
        nll=gaussian_nll(errors, sigma),
        ence=expected_normalised_calibration_error(errors, sigma),
        mean_sigma=float(mean_sigma.mean()),
        rmse=rmse,
        rank_sigma=spearman(mean_sigma, miss),
        rank_relative_sigma=spearman(mean_sigma / root_area, miss),
        rank_score=rank_score,
    )


def coverage(errors: FloatArray, sigma: FloatArray, width: float) -> float | None:
    """Share of errors within ``width`` standard deviations.

    Args:
        errors: [M, 4] prediction minus label, in pixels.
        sigma: [M, 4] in pixels, above 0.
        width: how many sigma.

    Returns:
        In [0, 1].
    """
    return float(np.mean(np.abs(errors) <= width * sigma)) if errors.size else None


def interval_coverages(errors: FloatArray, sigma: FloatArray) -> dict[str, float | None]:
    """Share of errors within each central interval of ``SHARES``; a true sigma has 0.50 within 50 %, and so on.

    Args:
        errors: [M, 4] prediction minus label, in pixels.
        sigma: [M, 4] in pixels, above 0.

    Returns:
        ``coverage_50``, ``coverage_68``, ``coverage_90``, ``coverage_95``, each in [0, 1].
    """
    return {f"coverage_{share}": coverage(errors, sigma, interval_width(share)) for share in SHARES}


def interval_width(share: float) -> float:
    """Half the width, in standard deviations, of the interval that holds the central share of a Gaussian.

    Args:
        share: in per cent, in [0, 100).

    Returns:
        The quantile at (1 + share / 100) / 2: 1.960 for 95.
    """
    return NormalDist().inv_cdf((1.0 + share / 100.0) / 2.0)


def gaussian_nll(errors: FloatArray, sigma: FloatArray) -> float | None:
    """Mean negative log-likelihood of an error under a Gaussian of that sigma.

    Args:
        errors: [M, 4] prediction minus label, in pixels.
        sigma: [M, 4] in pixels, above 0.

    Returns:
        Nats a box side: 1/2 log(2 pi) + log(sigma) + 1/2 (error / sigma)^2.
    """
    if not errors.size:
        return None
    return float(np.mean(0.5 * math.log(2 * math.pi) + np.log(sigma) + 0.5 * (errors / sigma) ** 2))


def expected_normalised_calibration_error(errors: FloatArray, sigma: FloatArray, bins: int = 10) -> float | None:
    """How far sigma is from the error it foretells, relative to sigma, over bins of equal count.

    Args:
        errors: [M, 4] prediction minus label, in pixels.
        sigma: [M, 4] in pixels, above 0.
        bins: at most this many; fewer when there are fewer values.

    Returns:
        Mean over bins of |RMS sigma - RMS error| / RMS sigma; 0 is best, unbounded above.

    Reference: Levi et al., "Evaluating and Calibrating Uncertainty Prediction in Regression Tasks", eq. 8.
    """
    if not errors.size:
        return None
    order = np.argsort(sigma, axis=None, kind="stable")
    groups = np.array_split(order, min(bins, errors.size))
    squares_sigma, squares_error = sigma.reshape(-1) ** 2, errors.reshape(-1) ** 2
    rms_sigma = np.sqrt([squares_sigma[g].mean() for g in groups])
    rms_error = np.sqrt([squares_error[g].mean() for g in groups])
    return float(np.mean(np.abs(rms_sigma - rms_error) / rms_sigma))


def root_mean_square(errors: FloatArray) -> float | None:
    """Root of the mean squared error.

    Args:
        errors: any shape, in pixels.

    Returns:
        Pixels.
    """
    return float(np.sqrt(np.mean(errors**2))) if errors.size else None


def spearman(a: FloatArray, b: FloatArray) -> float | None:
    """Spearman's rank correlation; equal values share their mean rank.

    Args:
        a: [N].
        b: [N].

    Returns:
        In [-1, 1], above 0 when large ``a`` goes with large ``b``; ``None`` for fewer than two values or a constant.
    """
    if len(a) < 2:
        return None
    x, y = _ranks(a), _ranks(b)
    x, y = x - x.mean(), y - y.mean()
    norm = math.sqrt(float((x**2).sum() * (y**2).sum()))
    return float(np.clip((x * y).sum() / norm, -1.0, 1.0)) if norm > 0 else None


def _ranks(values: FloatArray) -> FloatArray:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)  # highest rank, from 1, among equals
    ranks: FloatArray = (last - (counts - 1) / 2.0)[inverse.reshape(-1)]
    return ranks


__all__ = [
    "EXPECTED_COVERAGE",
    "MIN_SIGMA",
    "SHARES",
    "SigmaQuality",
    "coverage",
    "expected_normalised_calibration_error",
    "gaussian_nll",
    "interval_coverages",
    "interval_width",
    "root_mean_square",
    "sigma_quality",
    "spearman",
]
