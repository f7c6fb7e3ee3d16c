"""The statistics of a benchmark: percentiles of a stage, and how sure a ratio of two measurements is.

Whether two measurements differ is told from the medians of their rounds by rank statistics, which assume no
distribution: outliers of a busy machine count as one round each, however far out they are.

Reference: Hodges and Lehmann, "Estimates of location based on rank tests", 1963.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

CONFIDENCE = 0.95
SMALLEST = 0.01  # share of the least difference that is called one
PERCENTILES = {"median": 50, "p90": 90, "p95": 95, "p99": 99}


@dataclass(frozen=True)
class Ratio:
    """How many times the second of two measurements is the first.

    Attributes:
        value: the estimate.
        low: of its 95 % interval; ``None`` where there are too few rounds for one.
        high: of the same.
        floor: a smaller difference, as a share, is not called one, however sure.
    """

    value: float
    low: float | None
    high: float | None
    floor: float = SMALLEST

    @property
    def differs(self) -> bool | None:
        """Whether the two differ by more than their noise; ``None`` where the rounds are too few to tell."""
        if self.low is None or self.high is None:
            return None
        return not self.low <= 1 <= self.high and abs(math.log(self.value)) >= math.log(1 + self.floor)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        parts = {"ratio": self.value, "low": self.low, "high": self.high}
        return {name: None if v is None else round(v, 4) for name, v in parts.items()} | {"differs": self.differs}


def statistics(values: NDArray[np.float64]) -> dict[str, float]:
    """Location and spread of a stage.

    Args:
        values: [calls] times in ms, at least one.

    Returns:
        ``min``, ``mean``, ``median``, ``p90``, ``p95``, ``p99``, ``max`` in ms; ``cv``, standard deviation by mean.
    """
    mean = float(values.mean())
    ranked = np.percentile(values, list(PERCENTILES.values()))
    named = {"min": float(values.min()), "mean": mean}
    named |= {name: float(value) for name, value in zip(PERCENTILES, ranked, strict=True)}
    named |= {"max": float(values.max()), "cv": float(values.std() / mean) if mean > 0 else 0.0}
    return {name: round(value, 4) for name, value in named.items()}


def ratio(old: Sequence[float], new: Sequence[float]) -> Ratio:
    """Ratio of two measurements that were made apart: the median over all pairs of an old and a new round.

    Rounds of one measurement are alike in what another start would change, so the interval alone is too sure. A
    difference must also exceed what either measurement changed from its own first rounds to its last.

    Args:
        old: one positive value a round.
        new: the same; their number may differ.

    Returns:
        ``new`` by ``old``; the interval is that of the Mann-Whitney test, from 4 rounds each.
    """
    logs = np.sort((np.log(np.asarray(new))[:, None] - np.log(np.asarray(old))[None, :]).ravel())
    drift = max(math.exp(abs(math.log1p(trend(values)))) - 1 for values in (old, new))
    return replace(_estimate(logs, _pairs_below(len(old), len(new))), floor=max(SMALLEST, drift))


def paired_ratio(first: Sequence[float], second: Sequence[float]) -> Ratio:
    """Ratio of two measurements whose rounds took turns: what slows down both in a round cancels.

    Args:
        first: one positive value a round.
        second: of the same rounds.

    Returns:
        ``second`` by ``first``; the interval is that of the signed-rank test, from 6 rounds.
    """
    logs = np.log(np.asarray(second)) - np.log(np.asarray(first))
    i, j = np.triu_indices(len(logs))
    return _estimate(np.sort((logs[i] + logs[j]) / 2), _signs_below(len(logs)))


def trend(rounds: Sequence[float]) -> float:
    """How much the last third of the rounds is above the first, as a share; 0 with fewer than 6 rounds.

    Args:
        rounds: one positive value a round, in time's order.
    """
    third = len(rounds) // 3
    if third < 2:
        return 0.0
    return float(np.median(rounds[-third:]) / np.median(rounds[:third])) - 1


def _estimate(logs: NDArray[np.float64], outside: int) -> Ratio:
    """Median and interval of sorted log ratios; ``outside`` of them lie beyond the interval at each end."""
    value = math.exp(float(np.median(logs)))
    if outside == 0:
        return Ratio(value, None, None)
    return Ratio(value, math.exp(float(logs[outside - 1])), math.exp(float(logs[-outside])))


def _pairs_below(m: int, n: int) -> int:
    """Rank of the interval's end among the m * n pairs: by the exact distribution of Mann and Whitney's U."""
    counts = np.zeros(m * n + 1)  # orders of the m + n values that give U = 0, 1, ...: a Gaussian binomial
    counts[0] = 1
    for k in range(1, m + 1):
        if n + k <= m * n:
            counts[n + k :] -= counts[: -(n + k)].copy()
        for start in range(k):
            counts[start::k] = np.cumsum(counts[start::k])
    return _rank(counts)


def _signs_below(n: int) -> int:
    """The same among the n * (n + 1) / 2 means of two rounds: by the distribution of Wilcoxon's signed ranks."""
    counts = np.zeros(n * (n + 1) // 2 + 1)
    counts[0] = 1
    for k in range(1, n + 1):
        counts[k:] += counts[:-k].copy()
    return _rank(counts)


def _rank(counts: NDArray[np.float64]) -> int:
    """How many values of the statistic, from 0, have together no more than the error allowed at one end."""
    shares = np.cumsum(counts) / counts.sum()
    return int(np.searchsorted(shares, (1 - CONFIDENCE) / 2, side="right"))
