"""The bet: wins against a wrong claim soon, and against a true one hardly ever."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ptedge.runtime.deployment.wager import STAKES, Wager


def test_wager__capital_by_hand() -> None:
    wager = Wager(0.5)
    for value in (1.0, 0.25):
        wager.add(value)
    capital = np.mean([(1 + 2 * s * 0.5) * (1 - 2 * s * 0.25) for s in STAKES])
    assert not wager.won(1 / (capital * 1.001))
    assert wager.won(1 / (capital * 0.999))


@pytest.mark.parametrize(("limit", "calls"), [(2 / 3, 23), (4 / 5, 41), (3 / 5, 18)])
def test_wager__how_many_values_a_total_failure_takes(limit: float, calls: int) -> None:
    wager = Wager(limit)
    while not wager.won(0.001):
        wager.add(1.0)
    # the largest stake alone: log(4 / 0.001) / log(1 + 0.9 (1 / limit - 1)), a little less with the others' capital
    bound = math.log(4 / 0.001) / math.log(1 + 0.9 * (1 / limit - 1))
    assert bound - 3 < wager.values <= math.ceil(bound)
    assert wager.values == calls


def test_wager__a_true_claim_is_refused_no_more_often_than_stated() -> None:
    """Values at the limit, looked at after each of 300; chance 0.05 at most."""
    rng = np.random.default_rng(0)
    refused = 0
    for _ in range(400):
        wager = Wager(0.6)
        for value in rng.random(300) < 0.6:
            wager.add(float(value))
            if wager.won(0.05):
                refused += 1
                break
    assert refused <= 0.05 * 400
