"""Windows of a stream against a reference: how much lies beyond what was usual, and whether that can be chance.

The distribution F of a measure in a window is compared with that of the reference, R, by the Kolmogorov-Smirnov
statistic, in a one-sided form that leaves room for what is no drift::

    D = sup_x  F(x) - min(1, R(x + margin) / share)        and the same from above

``share``: a window may be like any part of the reference that makes up this share, as an hour is no day and a red light
no street. With ``share`` 1 and no margin this is the plain test. If the window's own law keeps within that room,
P(D > d) <= exp(-2 n d^2) for n independent frames (Massart, 1990). Frames that follow one another are not independent:
n is their number over the integrated autocorrelation time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ptedge.drift.measures import FloatArray
from ptedge.drift.reference import SHARES, Reference

MARGIN = 0.25  # of the spread of a measure: how far beyond its quantiles something has to be
SIDES = ("low", "high")
LEAST_TIME = 2.0  # frames: autocorrelation times are estimates, and a little dependence is always left


@dataclass(frozen=True)
class Moved:
    """A measure that is not as it was where the model was made.

    Attributes:
        name: of the measure.
        side: ``low`` or ``high``.
        share: of the frames that lie beyond the bound that tells most.
        now: mean.
        usual: middle 80 % in the reference.
    """

    name: str
    side: str
    share: float
    now: float
    usual: tuple[float, float]


class Edges:
    """Bounds of a reference, ready to be asked about frames.

    Attributes:
        names: of the measures, M of them.
        counts: [M] frames of the reference that had a value.
    """

    def __init__(self, reference: Reference) -> None:
        """Widen the quantiles by the margin.

        Args:
            reference: of one place.
        """
        self.names = reference.names
        self.counts = np.array([reference.counts[name] for name in self.names], np.float64)
        margin = np.array([[MARGIN * reference.spread[name]] for name in self.names])
        self._low = np.array([reference.low[name] for name in self.names]) - margin  # [M, K]
        self._high = np.array([reference.high[name] for name in self.names]) + margin

    def look(self, frame: Mapping[str, FloatArray]) -> tuple[FloatArray, FloatArray]:
        """Where the values of a frame lie.

        Args:
            frame: of :func:`ptedge.drift.measures.measure_frame`.

        Returns:
            [M, 2, K] share of the frame's values below each lower and above each upper bound, and [M] their mean; both
            ``nan`` where the frame has no value.
        """
        beyond = np.full((len(self.names), 2, len(SHARES)), np.nan)
        means = np.full(len(self.names), np.nan)
        for row, name in enumerate(self.names):
            values = frame[name]
            if len(values) == 1:
                beyond[row, 0] = values[0] < self._low[row]
                beyond[row, 1] = values[0] > self._high[row]
                means[row] = values[0]
            elif len(values):
                beyond[row, 0] = (values[:, None] < self._low[row]).mean(axis=0)
                beyond[row, 1] = (values[:, None] > self._high[row]).mean(axis=0)
                means[row] = values.mean()
        return beyond, means


def excess(beyond: FloatArray, share: float) -> FloatArray:
    """The statistic D.

    Args:
        beyond: [..., K] mean share of a window's values beyond each bound.
        share: of the reference that a window may be like, in (0, 1].

    Returns:
        [...] in [0, 1]; 0 where nothing is beyond what there is room for.
    """
    room = np.minimum(1.0, np.array(SHARES) / share)
    found: FloatArray = np.clip((beyond - room).max(axis=-1), 0.0, None)
    return found


def log_chance(distance: FloatArray, frames: FloatArray, times: FloatArray, counts: FloatArray) -> FloatArray:
    """Logarithm of a bound of the probability that D is so large by chance.

    Args:
        distance: [M, 2] the statistic.
        frames: [M] frames in the window.
        times: [M] autocorrelation time in frames.
        counts: [M] frames of the reference, which has errors of its own.

    Returns:
        [M, 2], at most 0.
    """
    own = frames / np.maximum(times, LEAST_TIME)
    n = own * counts / np.maximum(own + counts, 1e-9)
    chance: FloatArray = -2.0 * n[:, None] * distance**2
    return chance
