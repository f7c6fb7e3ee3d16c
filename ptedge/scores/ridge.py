"""Ridge regression on few points, with an error that was measured on what it had not seen."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ptedge.artifacts.estimate import Ridge

FloatArray = NDArray[np.float64]

PENALTY = 0.1  # in units of a standardised regressor seen once a point; not chosen by the data, so the error is honest


def fit_ridge(x: FloatArray, y: FloatArray, weights: FloatArray, groups: Sequence[str]) -> Ridge:
    """Fit, and measure the error by leaving out one group after another.

    Args:
        x: [N, F].
        y: [N].
        weights: [N], above 0.
        groups: [N] names; points of one group are left out together.

    Raises:
        ValueError: fewer than two groups, or two points.
    """
    names = sorted(set(groups))
    if len(names) < 2 or len(y) < 2:
        raise ValueError(f"a regression needs points of two groups, got {len(y)} of {len(names)}")
    intercept, slopes = _solve(x, y, weights)
    missed = np.zeros(len(y))
    member = np.asarray(groups)
    for name in names:
        out = member == name
        without = _solve(x[~out], y[~out], weights[~out])
        # cut to the range that the others span, as predict does
        cut = np.clip(x[out], x[~out].min(axis=0), x[~out].max(axis=0))
        missed[out] = y[out] - without[0] - cut @ without[1]
    error = float(np.sqrt((weights * missed**2).sum() / weights.sum()))
    low, high = x.min(axis=0), x.max(axis=0)
    return Ridge(intercept, tuple(slopes.tolist()), tuple(low.tolist()), tuple(high.tolist()), error, len(y))


def _solve(x: FloatArray, y: FloatArray, weights: FloatArray) -> tuple[float, FloatArray]:
    """Intercept and slopes: weighted least squares on standardised x, its slopes held towards 0."""
    share = weights / weights.sum()
    mean = share @ x
    deviation = np.sqrt(share @ (x - mean) ** 2)
    # what never changes differs from its mean by rounding alone, and must not be scaled up
    deviation = np.where(deviation > 1e-9 * np.maximum(1.0, np.abs(mean)), deviation, np.inf)
    scaled = (x - mean) / deviation
    y_mean = share @ y
    gram = scaled.T @ (scaled * share[:, None]) + PENALTY * np.eye(x.shape[1])
    slopes = np.linalg.solve(gram, scaled.T @ (share * (y - y_mean))) / deviation
    return float(y_mean - mean @ slopes), slopes
