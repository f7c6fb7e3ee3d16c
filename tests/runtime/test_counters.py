from __future__ import annotations

import pytest

from ptedge.runtime.counters import BOUNDS, Rate, Times


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_times__buckets_and_percentiles() -> None:
    times = Times()
    assert times.milliseconds() is None
    for milliseconds in range(1, 101):
        times.add(milliseconds / 1000)
    counts, count, total = times.buckets()
    assert counts[: 1 + BOUNDS.index(0.1)] == [1, 2, 5, 10, 25, 50, 100]
    assert counts[-1] == count == 100 and total == pytest.approx(5.05)
    assert times.milliseconds() == {"p50": 50.5, "p99": 99.01, "max": 100.0}


def test_rate__over_the_last_ten_seconds() -> None:
    clock = Clock()
    rate = Rate(clock)
    for i in range(40):
        clock.now = i * 0.5
        rate.add()
    assert rate.value == pytest.approx(2.1)  # 21 marks from 9.5 to 19.5 s
    clock.now = 60
    assert rate.value == 0
