"""Statistics by hand, and rank intervals against tables of critical values and slow references."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptedge.runtime.benchmark.stats import Ratio, _pairs_below, _signs_below, paired_ratio, ratio, statistics, trend

SERIES = st.lists(st.floats(0.01, 1000), min_size=1, max_size=12)


def test_statistics__by_hand() -> None:
    found = statistics(np.array([4.0, 1.0, 3.0, 2.0, 10.0]))
    # sorted 1 2 3 4 10; percentile p lies at 4 p / 100 along them; variance (9 + 4 + 1 + 0 + 36) / 5 = 10
    assert found["min"] == 1 and found["max"] == 10 and found["mean"] == 4 and found["median"] == 3
    assert found["p90"] == pytest.approx(4 + 0.6 * 6) and found["p95"] == pytest.approx(4 + 0.8 * 6)
    assert found["p99"] == pytest.approx(4 + 0.96 * 6)
    assert found["cv"] == pytest.approx(10**0.5 / 4, abs=1e-4)


def test_statistics__of_one_call_and_of_nothing_measurable() -> None:
    assert set(statistics(np.array([2.0])).values()) == {2.0, 0.0}
    assert statistics(np.zeros(3))["cv"] == 0


@pytest.mark.parametrize(("m", "n", "critical"), [(3, 3, -1), (4, 4, 0), (5, 5, 2), (8, 10, 17), (10, 10, 23)])
def test_pairs_below__the_tables_of_mann_and_whitney(m: int, n: int, critical: int) -> None:
    assert _pairs_below(m, n) == critical + 1  # largest U that is significant at 5 %, two-sided


@pytest.mark.parametrize(("n", "critical"), [(5, -1), (6, 0), (8, 3), (10, 8), (20, 52)])
def test_signs_below__the_tables_of_wilcoxon(n: int, critical: int) -> None:
    assert _signs_below(n) == critical + 1


@pytest.mark.parametrize(("m", "n"), [(4, 5), (5, 4), (6, 6)])
def test_pairs_below__every_order_counted(m: int, n: int) -> None:
    statistics_u = []
    for places in combinations(range(m + n), m):
        others = [p for p in range(m + n) if p not in places]
        statistics_u.append(sum(a > b for a, b in product(places, others)))
    expected = sum(np.mean(np.array(statistics_u) <= u) <= 0.025 for u in range(m * n))
    assert _pairs_below(m, n) == expected


def test_ratio__by_hand() -> None:
    # all ratios of [2, 4] by [1, 2]: 1, 2, 2, 4
    assert ratio([1.0, 2.0], [2.0, 4.0]) == Ratio(2.0, None, None, floor=0.01)
    old, new = [1.0, 1.0, 1.0, 1.0], [2.0, 2.0, 2.0, 2.0]
    found = ratio(old, new)
    assert (found.value, found.low, found.high, found.differs) == pytest.approx((2, 2, 2, True))


def test_ratio__too_few_rounds_tell_nothing() -> None:
    assert ratio([1, 1, 1], [5, 5, 5]).differs is None
    assert paired_ratio([1] * 5, [5] * 5).differs is None


def test_ratio__a_small_difference_is_none() -> None:
    assert ratio([100.0] * 10, [100.5] * 10).differs is False
    assert ratio([100.0] * 10, [102.0] * 10).differs is True


def test_ratio__less_than_its_own_drift_is_none() -> None:
    falling = [1.3, 1.3, 1.3, 1.15, 1.15, 1.15, 1.15, 1.0, 1.0, 1.0]
    assert ratio(falling, [0.95] * 10).differs is False  # 17 % below, but it fell by 23 % by itself
    assert ratio([1.15] * 10, [0.95] * 10).differs is True


def test_paired_ratio__what_meets_both_cancels() -> None:
    noise = np.array([1, 9, 2, 7, 3, 8, 1, 5, 2, 4], float)  # far above the difference
    found = paired_ratio(noise.tolist(), (noise * 1.05).tolist())
    assert found.value == pytest.approx(1.05) and found.differs
    assert not ratio(noise.tolist(), (noise * 1.05).tolist()).differs


def test_trend__last_third_by_first() -> None:
    assert trend([1.0] * 5) == 0
    assert trend([1, 1, 1, 7, 7, 7, 1.2, 1.2, 1.2]) == pytest.approx(0.2)


@given(SERIES)
def test_ratio__of_a_measurement_with_itself_is_one(values: list[float]) -> None:
    assert ratio(values, values).value == pytest.approx(1)
    assert ratio(values, values).differs in (None, False)


@given(SERIES, SERIES)
def test_ratio__the_other_way_round_is_its_inverse(old: list[float], new: list[float]) -> None:
    there, back = ratio(old, new), ratio(new, old)
    assert there.value * back.value == pytest.approx(1)
    assert there.differs == back.differs
    if there.low is not None and there.high is not None and back.low is not None:
        assert there.high * back.low == pytest.approx(1)
        assert there.low <= there.value * (1 + 1e-9) and there.value <= there.high * (1 + 1e-9)


@given(SERIES, SERIES, st.floats(0.5, 2))
def test_ratio__follows_the_unit(old: list[float], new: list[float], factor: float) -> None:
    assert ratio(old, [v * factor for v in new]).value == pytest.approx(ratio(old, new).value * factor)


@given(st.lists(st.tuples(st.floats(0.1, 10), st.floats(0.1, 10)), min_size=1, max_size=12))
def test_paired_ratio__inverse_and_inside_its_interval(pairs: list[tuple[float, float]]) -> None:
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    there, back = paired_ratio(first, second), paired_ratio(second, first)
    assert there.value * back.value == pytest.approx(1)
    if there.low is not None and there.high is not None:
        assert there.low <= there.value * (1 + 1e-9) and there.value <= there.high * (1 + 1e-9)
