from __future__ import annotations

import numpy as np
import pytest

from ptedge.drift.dependence import autocorrelation_times


def slow_time(values: np.ndarray) -> float:
    centred = values - values.mean()
    rho = [float((centred[: len(centred) - k] * centred[k:]).sum() / (centred**2).sum()) for k in range(len(values))]
    total = -1.0
    for k in range(0, len(rho) - 1, 2):
        if rho[k] + rho[k + 1] <= 0:
            break
        total += 2 * (rho[k] + rho[k + 1])
    return max(1.0, total)


@pytest.mark.parametrize("keep", [0.0, 0.5, 0.9])
def test_autocorrelation_times__slow_reference(keep: float) -> None:
    rng = np.random.default_rng(3)
    series = np.zeros((60, 4))
    for t in range(1, 60):
        series[t] = keep * series[t - 1] + rng.standard_normal(4)
    assert autocorrelation_times(series) == pytest.approx([slow_time(column) for column in series.T])


@pytest.mark.parametrize(("keep", "expected"), [(0.0, 1.0), (0.8, 9.0)])  # (1 + keep) / (1 - keep)
def test_autocorrelation_times__of_a_process_that_is_known(keep: float, expected: float) -> None:
    rng = np.random.default_rng(0)
    series = np.zeros((4000, 8))
    for t in range(1, 4000):
        series[t] = keep * series[t - 1] + rng.standard_normal(8)
    assert np.median(autocorrelation_times(series)) == pytest.approx(expected, rel=0.2)


def test_autocorrelation_times__gaps_constants_and_too_few() -> None:
    values = np.random.default_rng(0).standard_normal(30)
    gaps = np.full(60, np.nan)
    gaps[::2] = values
    series = np.stack([gaps, np.full(60, 3.0), np.where(np.arange(60) < 9, 1.0 * np.arange(60), np.nan)], axis=1)
    times = autocorrelation_times(series)
    assert times[0] == pytest.approx(slow_time(values)) and np.isnan(times[1:]).all()
