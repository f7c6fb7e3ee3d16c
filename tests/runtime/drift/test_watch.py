from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from made_field import found

from ptedge.drift.measures import measure_frame
from ptedge.drift.reference import Reference, summarise
from ptedge.frames.source import Frame
from ptedge.runtime.drift.watch import DriftWatch

START = 1_767_225_600.0  # 2026-01-01, UTC


def picture(brightness: int, seed: int) -> np.ndarray:
    grey = np.random.default_rng(seed).integers(brightness, brightness + 60, (9, 10, 1), np.uint8)
    return grey.repeat(4, 0).repeat(4, 1).repeat(3, 2)


def known() -> Reference:
    frames = [measure_frame(picture(120, i), found(), (32, 48), 1) for i in range(200)]
    return summarise(frames, (32, 48), "target")


def model(reference: Reference | None) -> Any:
    return SimpleNamespace(
        manifest=SimpleNamespace(reference=reference), class_names=("car",), input_size=(32, 48), model_hash="m"
    )


class Watched:
    """A watch over one or two sources, and what it told."""

    def __init__(self, reference: Reference | None, live: bool = True, names: tuple[str, ...] = ("gate",)) -> None:
        self.lines: list[str] = []
        self.now = START
        self.watch = DriftWatch([(name, live) for name in names], 7 * 86400.0, self.lines.append, lambda: self.now)
        self.model = model(reference)
        self.watch.take_model(self.model)

    def play(self, seconds: int, brightness: int, number: int = 0, time: float | None = None, fps: int = 1) -> None:
        for i in range(seconds * fps):
            at = time + i / fps if time is not None else None
            self.watch.add(number, Frame(picture(brightness, i), i, at, "cam", None), found())
            self.now += 1 / fps


@pytest.fixture(scope="module")
def reference() -> Reference:
    return known()


def test_watch__an_alarm_is_told_shown_and_over(reference: Reference) -> None:
    run = Watched(reference)
    run.play(120, 120)
    assert run.lines == [] and not run.watch.to_json()["found"]
    run.play(150, 10)
    told = run.watch.to_json()
    alarm = told["sources"][0]["alarm"]
    assert told["found"] and told["alarms"] == 1 and alarm["since"].startswith("2026-01-01T00:0")
    assert "brightness" in {one["measure"] for one in alarm["moved"]} and "lens" in alarm["advice"]
    assert run.lines[0].startswith("drift of gate since 2026-01-01T00:0") and "darker" in run.lines[0]
    assert run.lines[1] == alarm["advice"]
    run.play(200, 120)
    over = run.watch.to_json()
    assert not over["found"] and over["sources"][0]["alarm"] is None and run.lines[-1] == "drift of gate is over"
    assert over["sources"][0]["last"][0]["ended"] is not None and over["sources"][0]["last"][0]["moved"]
    (day,) = over["days"]
    assert (day["day"], day["frames"], day["alarms"]) == ("2026-01-01", 470, 1)
    assert 0 < day["frames_in_alarm"] < 350 and "pictures are darker" in day["moved"]


def test_watch__one_frame_a_second_by_the_clock_of_the_source(reference: Reference) -> None:
    live, video, images = Watched(reference), Watched(reference, live=False), Watched(reference, live=False)
    live.play(10, 120, fps=5)
    video.play(10, 120, time=100.0, fps=5)
    images.play(10, 120, fps=5)  # without times each counts as a second
    counts = [run.watch.to_json()["sources"][0]["frames"] for run in (live, video, images)]
    assert counts == [10, 10, 50]


def test_watch__each_source_by_itself(reference: Reference) -> None:
    run = Watched(reference, names=("gate", "yard"))
    run.play(150, 10, number=1)
    gate, yard = run.watch.to_json()["sources"]
    assert gate["alarm"] is None and gate["frames"] == 0 and yard["alarm"] is not None
    assert run.watch.to_json()["days"][0]["moved"][0].startswith("yard: ")


def test_watch__no_reference_is_said_and_nothing_measured() -> None:
    run = Watched(None)
    run.play(5, 10)
    told = run.watch.to_json()
    assert told["reference"] is None and "--learn" in told["note"] and not told["found"]
    assert told["sources"][0]["frames"] == 0 and told["days"] == []


def test_watch__another_model_begins_anew(reference: Reference) -> None:
    run = Watched(reference)
    run.play(150, 10)
    run.watch.take_model(run.model)  # the same: nothing happens
    assert run.watch.to_json()["found"]
    run.watch.take_model(model(reference))
    assert not run.watch.to_json()["found"] and run.watch.to_json()["sources"][0]["frames"] == 0


def test_watch__a_clock_that_goes_back(reference: Reference) -> None:
    run = Watched(reference)
    run.play(5, 120)
    run.now -= 3600
    run.play(5, 120)
    assert run.watch.to_json()["sources"][0]["frames"] == 10
