"""Estimates from few values, some of them wrong, and how sure they are: for :mod:`ptedge.scores.side_fit`.

Values of one image go together: whenever something is judged on them, the whole image was left out before.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

FOLDS = 20  # images are left out one by one up to this many, and in this many parts beyond
HUBER = 1.345  # deviations beyond which a value counts less: 95 % efficient where values are Gaussian
ROUNDS = 12  # of reweighting
_MAD_TO_SIGMA = 1.0 / NormalDist().inv_cdf(0.75)


def location(values: FloatArray) -> FloatArray:
    """Huber's robust mean of each column, which single wild values hardly move.

    Args:
        values: [M, N].

    Returns:
        [N].

    Reference: Huber, "Robust Estimation of a Location Parameter", 1964.
    """
    centre = np.median(values, axis=0)
    limit = HUBER * np.maximum(spread(values), 1e-9)
    for _ in range(ROUNDS):
        weights = np.minimum(1.0, limit / np.maximum(np.abs(values - centre), 1e-12))
        centre = (weights * values).sum(axis=0) / weights.sum(axis=0)
    return np.asarray(centre, np.float64)


def spread(values: FloatArray) -> FloatArray:
    """Robust standard deviation of each column: 1.4826 times the median absolute deviation. [M, N] -> [N]."""
    deviation: FloatArray = _MAD_TO_SIGMA * np.median(np.abs(values - np.median(values, axis=0)), axis=0)
    return deviation


def shrinkage(values: FloatArray, errors: FloatArray) -> FloatArray:
    """Weights that draw several measured values towards 0.

    Args:
        values: [N] measured.
        errors: [N] their standard errors.

    Returns:
        [N] t / (t + error^2), t the mean of value^2 - error^2 or 0 if that is negative. With an error of s / sqrt(n)
        that is n / (n + k), k = s^2 / t.

    Reference: Efron and Morris, "Stein's Estimation Rule and Its Competitors: An Empirical Bayes Approach", 1973.
    """
    between = max(0.0, float(np.mean(values**2 - errors**2)))
    if between == 0.0:
        return np.zeros(len(values))
    weights: FloatArray = between / (between + errors**2)
    return weights


def leave_out(
    values: FloatArray, images: IntArray, estimate: Callable[[FloatArray], FloatArray]
) -> tuple[FloatArray, IntArray]:
    """An estimate without each part of the images.

    Args:
        values: [M, N].
        images: [M] which image each row is from.
        estimate: [rows, N] -> [K].

    Returns:
        [P, K] the estimate without each part; [M] the row of it that a box had no part in.
    """
    parts = folds(images)
    return np.stack([estimate(values[parts != part]) for part in range(parts.max() + 1)]), parts


def jackknife_error(rows: FloatArray) -> FloatArray:
    """Standard error of an estimate, from what it is without each part: [P, K] -> [K]."""
    error: FloatArray = np.sqrt((len(rows) - 1) / len(rows) * ((rows - rows.mean(axis=0)) ** 2).sum(axis=0))
    return error


def folds(images: IntArray) -> IntArray:
    """Parts that are left out together: images, at most :data:`FOLDS` parts; single boxes where images are too few.

    Args:
        images: [M].

    Returns:
        [M] number of each box's part.
    """
    _, order = np.unique(images, return_inverse=True)
    if order.max(initial=0) < 2:
        order = np.arange(len(images))
    return np.asarray(order.reshape(-1) % FOLDS, np.int64)
