from __future__ import annotations

import numpy as np
import pytest
from pipeline_fakes import ONE

from ptedge.detections import Detections
from ptedge.runtime.drift import BASELINE_SECONDS, Drift
from ptedge.runtime.inputs import name_sources
from ptedge.runtime.stats import BOUNDS, Rate, Times


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def found(score: float, count: int = 1) -> Detections:
    one = ONE.select(np.zeros(count, np.int64))
    return Detections(one.boxes, np.full(count, score, np.float32), one.labels, one.sigma, one.entropy)


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


def test_drift__running_mean_against_the_first_minutes() -> None:
    clock = Clock()
    drift = Drift(clock)
    for second in range(int(BASELINE_SECONDS)):
        clock.now = second
        drift.add(found(0.8, 2))
    assert not drift.ready and drift.to_json()["score"] == {"first": 0.8, "now": None, "change": None}
    for second in range(int(BASELINE_SECONDS), int(BASELINE_SECONDS) * 20):
        clock.now = second
        drift.add(found(0.4, 3))
    about = drift.to_json()
    assert drift.ready and about["score"] == pytest.approx({"first": 0.8, "now": 0.4, "change": -0.5}, abs=1e-3)
    assert about["boxes"] == pytest.approx({"first": 2, "now": 3, "change": 0.5}, abs=1e-3)


def test_drift__frames_without_detections_have_no_score() -> None:
    drift = Drift(Clock())
    drift.add(Detections.empty())
    assert drift.to_json()["boxes"]["first"] == 0 and drift.to_json()["score"]["first"] is None


def test_name_sources__short_and_unlike() -> None:
    specs = ["a/drive.mp4", "b/drive.mp4", "0", "rtsp://me:secret@10.0.0.1:554/ch 1", "x ! y ! z", "..."]
    names = name_sources(specs)
    assert names[:4] == ["drive", "drive-2", "camera0", "10.0.0.1_554_ch_1"]
    assert len(set(names)) == len(names) and all(name and "/" not in name for name in names)
