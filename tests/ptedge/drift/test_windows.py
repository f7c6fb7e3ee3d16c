from __future__ import annotations

import numpy as np
import pytest
from drift_streams import frame, reference

from ptedge.drift.reference import SHARES
from ptedge.drift.windows import MARGIN, Edges, excess, log_chance


def test_look__by_hand() -> None:
    known = reference()
    edges = Edges(known)
    row = edges.names.index("score:0")
    values = frame(np.random.default_rng(0))
    low, high = (np.array(end["score:0"]) for end in (known.low, known.high))
    margin = MARGIN * known.spread["score:0"]
    values["score:0"] = np.array([low[3] - margin - 1e-6, low[3] - margin + 1e-6, high[0] + margin + 1e-6, 0.0])
    beyond, means = edges.look(values)
    # one value lies below the bound of 5 %, two below that of 10 %; 0 lies among the values of the reference
    assert beyond[row, 0].tolist()[:5] == [0, 0, 0, 0.25, 0.5]
    assert beyond[row, 1].tolist()[:5] == [0.25] * 5
    assert means[row] == pytest.approx(values["score:0"].mean())


def test_look__no_value() -> None:
    known = reference()
    edges = Edges(known)
    values = {**frame(np.random.default_rng(0)), "score:0": np.zeros(0)}
    beyond, means = edges.look(values)
    row = edges.names.index("score:0")
    assert np.isnan(beyond[row]).all() and np.isnan(means[row]) and np.isfinite(np.delete(means, row)).sum() >= 30


def test_excess__is_the_plain_statistic_where_nothing_is_allowed() -> None:
    # the largest of F(x) - R(x) over the bounds; 0 where F lies below R
    shares = np.array(SHARES)
    assert excess(shares, 1.0) == 0
    assert excess(np.minimum(1, shares + np.array([0, 0, 0.3, 0, 0, 0, 0, 0.1])), 1.0) == pytest.approx(0.3)


def test_excess__any_part_of_the_reference_is_no_drift() -> None:
    # all frames like the lowest 10 % of the reference: fine for a window that may be any 10 %, not for any 50 %
    beyond = np.where(np.array(SHARES) >= 0.1, 1.0, np.array(SHARES) / 0.1)
    assert excess(beyond, 0.1) == 0
    assert excess(beyond, 0.5) == pytest.approx(0.8)  # at 10 %: 1 - 0.2


def test_log_chance__by_hand() -> None:
    # 40 frames of autocorrelation time 4 against 10 independent ones: n = 10 * 10 / 20
    got = log_chance(np.array([[0.5, 0.0]]), np.array([40.0]), np.array([4.0]), np.array([10.0]))
    assert got == pytest.approx(np.array([[-2 * 5 * 0.25, 0.0]]))


@pytest.mark.parametrize("n", [10, 30])
def test_log_chance__bounds_the_rate_of_the_plain_test(n: int) -> None:
    # uniform values against known shares: P(D > d) must not exceed the bound
    rng = np.random.default_rng(0)
    values = rng.random((20_000, n))
    beyond = (values[:, :, None] < np.array(SHARES)).mean(axis=1)
    distance = excess(beyond, 1.0)
    for level in (0.2, 0.05, 0.01):
        limit = np.sqrt(-np.log(level) / (2 * n))
        assert (distance > limit).mean() <= level
