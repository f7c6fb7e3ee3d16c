from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import pytest
from pipeline_fakes import ONE

from ptedge.detections import Detections
from ptedge.runtime.drift.baseline import BASELINE_SECONDS, Drift


class Clock:
    now: float = 0.0

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


def drift_at(clock: Clock, times: Iterable[float], score: float = 0.8, drift: Drift | None = None) -> Drift:
    drift = drift or Drift(clock)
    for clock.now in times:
        drift.add(found(score))
    return drift


def test_drift__weights_of_frames_by_hand() -> None:
    # a frame every 2 s from 1000 s on, the first two minutes at 0.8; then 0.4 after 2 s, after 30 s and at once
    clock = Clock()
    drift = drift_at(clock, range(1000, 1120, 2))
    assert not drift.ready
    expected = 0.8
    for now, passed in ((1120, 2), (1150, 30), (1150, 0)):
        drift_at(clock, [now], 0.4, drift)
        keep = math.exp(-passed / BASELINE_SECONDS)
        expected = keep * expected + (1 - keep) * 0.4
        assert drift.ready and drift.to_json()["score"]["now"] == pytest.approx(expected, abs=1e-4)
    assert drift.to_json()["score"]["first"] == 0.8
    assert drift.to_json()["score"]["change"] == pytest.approx(expected / 0.8 - 1, abs=1e-4)


def test_drift__a_thin_source_gives_fifty_frames_first() -> None:
    clock = Clock()
    drift = drift_at(clock, range(49))
    for now, ready in ((200, False), (201, True)):  # the fiftieth still belongs to the baseline
        drift_at(clock, [now], drift=drift)
        assert drift.ready == ready


def test_to_json__before_anything_was_seen() -> None:
    nothing = {"first": None, "now": None, "change": None}
    assert Drift(Clock()).ready is False
    assert Drift(Clock()).to_json() == {
        "baseline_seconds": 120.0,
        "ready": False,
        "boxes": nothing,
        "score": nothing,
        "entropy": nothing,
    }


def test_drift__a_measure_that_the_baseline_lacks_begins_later() -> None:
    clock = Clock()
    drift = Drift(clock)
    for clock.now in range(130):
        drift.add(Detections.empty())
    drift_at(clock, [130], 0.6, drift)
    assert drift.to_json()["score"] == {"first": None, "now": 0.6, "change": None}
    drift_at(clock, [250], 0.2, drift)
    assert drift.to_json()["score"]["now"] == pytest.approx(0.2 + 0.4 / math.e, abs=1e-4)
