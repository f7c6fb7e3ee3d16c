from __future__ import annotations

import numpy as np
import pytest
from pipeline_fakes import ONE

from ptedge.detections import Detections
from ptedge.runtime.drift import BASELINE_SECONDS, Drift


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def found(score: float, count: int = 1) -> Detections:
    one = ONE.select(np.zeros(count, np.int64))
    return Detections(one.boxes, np.full(count, score, np.float32), one.labels, one.sigma, one.entropy)


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
