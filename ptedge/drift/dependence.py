"""How far frames that follow one another depend on each other."""

from __future__ import annotations

import numpy as np

from ptedge.drift.measures import FloatArray

FIRST_TIME = 4.0  # frames, where nothing was measured
FEWEST_VALUES = 10  # of a series


def autocorrelation_times(series: FloatArray) -> FloatArray:
    """How many frames in a row say as much as one independent frame: ``1 + 2 sum_k rho_k``.

    The sum ends where the first pair of neighbouring lags has no positive sum any more (Geyer, 1992).

    Args:
        series: [T, M] means of frames in order, ``nan`` where a frame has none; those are passed over.

    Returns:
        [M] at least 1; ``nan`` where fewer than :data:`FEWEST_VALUES` are, or all are equal.
    """
    found: FloatArray = np.array([_autocorrelation_time(column[np.isfinite(column)]) for column in series.T])
    return found


def _autocorrelation_time(values: FloatArray) -> float:
    if len(values) < FEWEST_VALUES or np.ptp(values) == 0:
        return float("nan")
    centred = values - values.mean()
    size = 1 << (2 * len(values) - 1).bit_length()
    power = np.abs(np.fft.rfft(centred, size)) ** 2
    rho = np.fft.irfft(power, size)[: len(values)]
    rho = rho / rho[0]
    pairs = rho[: len(rho) // 2 * 2].reshape(-1, 2).sum(axis=1)  # the first holds lag 0
    ends = np.flatnonzero(pairs <= 0)
    last = int(ends[0]) if len(ends) else len(pairs)
    return max(1.0, 2.0 * float(pairs[:last].sum()) - 1.0)
