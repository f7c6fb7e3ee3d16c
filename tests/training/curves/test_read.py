"""Curves read from metrics.jsonl."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from made_run import TRIP, write_run

from ptedge.errors import ArtifactError, InputError
from ptedge.training.curves.read import TripMark, read_curves, running_median, scalars, trip_of


def test_read_curves__series_events_and_a_torn_line(tmp_path: Path) -> None:
    curves = read_curves(write_run(tmp_path / "run"))
    assert curves.name == "run" and len(curves.lines) == 8
    loss = curves.series("loss")
    assert loss.steps.tolist() == list(range(1, 9)) and loss.values[3] == 0.25
    assert curves.series("monitor/source_agreement").values.tolist() == [0.9] * 8
    assert len(curves.series("monitor/sigma")) == 0 and len(curves.series("nothing")) == 0
    assert curves.trips == [TripMark(4, "max boxes ratio: back to 2")]
    steps, shapes = curves.anchors()
    assert steps.shape == (8,) and shapes.shape == (8, 2, 2) and shapes[-1, 0].tolist() == [24.0, 16.0]


def test_series__box_entropy_from_the_variance(tmp_path: Path) -> None:
    found = read_curves(write_run(tmp_path / "run")).series("box_entropy")
    assert found.values[0] == pytest.approx(0.5 * math.log(2 * math.pi * math.e * 0.5))


def test_series__leaves_out_what_is_not_finite(tmp_path: Path) -> None:
    text = '{"step": 1, "loss": NaN}\n{"step": 2, "loss": 3}\n[1]\n{"loss": 4}\n'
    (tmp_path / "metrics.jsonl").write_text(text, "utf-8")
    found = read_curves(tmp_path).series("loss")
    assert found.steps.tolist() == [2] and found.values.tolist() == [3]


def test_read_curves__no_run_and_no_steps(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Give the folder of a run"):
        read_curves(tmp_path / "none")
    (tmp_path / "metrics.jsonl").write_text("", "utf-8")
    with pytest.raises(ArtifactError, match="no logged step"):
        read_curves(tmp_path)


def test_scalars__plain_numbers_only() -> None:
    line = {"step": 3, "a": 1, "flag": True, "list": [1.0], "monitor": {"b": 2.0, "c": None}, "guard": TRIP}
    assert scalars(line) == {"a": 1.0, "monitor/b": 2.0}


def test_trip_of__what_the_guard_says_of_itself() -> None:
    assert trip_of({"step": 3}) is None and trip_of({"step": 3, "guard": None}) is None
    # the name of the limit, not its value
    assert trip_of({"step": 5, "guard": TRIP}) == TripMark(5, "max boxes ratio: back to 2")
    assert trip_of({"step": 5, "guard": {**TRIP, "action": "stop"}}) == TripMark(5, "max boxes ratio: stop")
    assert trip_of({"step": 5, "guard": {}}) == TripMark(5, "guard")


def test_running_median__by_hand() -> None:
    assert running_median(np.array([1.0, 9.0, 2.0, 3.0]), 3).tolist() == [5.0, 2.0, 3.0, 2.5]
    assert running_median(np.array([4.0, 1.0]), 1).tolist() == [4.0, 1.0]
