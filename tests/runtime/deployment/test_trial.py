"""A version on probation: its errors, and what is compared."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from pipeline_fakes import ONE, FakePredictor, frames

from ptedge.detections import Detections
from ptedge.errors import BackendError
from ptedge.preprocess import Letterbox
from ptedge.runtime.deployment.trial import EVERY, Trial
from ptedge.runtime.slot import LoadedModel, ModelSlot


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Model(FakePredictor):
    """Finds ``count`` boxes of score 0.5; takes ``seconds``; fails from its ``fail_at``-th call on."""

    def __init__(
        self, clock: Clock, count: int = 1, seconds: float = 0.1, fail_at: int = 10**6, batch: int = 1
    ) -> None:
        super().__init__(batch)
        self.clock, self.count, self.seconds, self.fails = clock, count, seconds, fail_at
        self.calls = 0

    def infer(self, feeds: Mapping[str, np.ndarray]) -> Mapping[str, Any]:
        self.calls += 1
        self.clock.now += self.seconds
        if self.calls > self.fails:
            raise BackendError("out of order")
        return {}

    def postprocess(self, outputs: Mapping[str, Any], letterboxes: Sequence[Letterbox]) -> list[Detections]:
        return [ONE.select(np.zeros(self.count, np.int64))] * len(letterboxes)

    def detect_batch(self, images: Sequence[np.ndarray]) -> list[Detections]:
        found = []
        for start in range(0, len(images), self.batch):
            found += self.postprocess(self.infer({}), [Letterbox(2, 2, 2, 2)] * len(images[start : start + self.batch]))
        return found


def on_trial(old: Model, new: Model, seconds: float = 60.0) -> tuple[ModelSlot, Trial]:
    champion, challenger = LoadedModel(old, "old"), LoadedModel(new, "new")  # type: ignore[arg-type]
    slot = ModelSlot(challenger)
    slot.add(champion)
    slot.trial = trial = Trial(slot, champion, challenger, seconds, old.clock)
    return slot, trial


def ask(slot: ModelSlot, size: int = 1) -> tuple[str | None, list[Detections]]:
    """Send a group through; who answered, and what."""
    group = slot.prepare([(0, (frame, 0.0)) for frame in frames(size)], slot.current)
    outputs = slot.answer(group)
    found = group.detections(outputs)
    slot.after(group)
    slot.done(group)
    return group.model.version, found


def test_trial__passes_after_its_time() -> None:
    clock = Clock()
    slot, trial = on_trial(Model(clock), Model(clock), seconds=2.0)
    while not trial.passed:
        assert ask(slot)[0] == "new"
    assert trial.frames == 17  # 0.1 s each, and 0.1 s of the other every fifth: 17 + 3 are 2 s
    assert trial.compared == 3
    assert [model.groups for model in (trial.champion, trial.challenger)] == [0, 0]


def test_trial__an_error_is_answered_by_the_version_before() -> None:
    clock = Clock()
    old = Model(clock, count=2, batch=2)
    slot, trial = on_trial(old, Model(clock, fail_at=1, batch=3))
    assert ask(slot, 3)[0] == "new"
    queued = slot.prepare([(0, (frame, 0.0)) for frame in frames(3)], slot.current)
    version, found = ask(slot, 3)
    assert version == "old"
    assert [len(one) for one in found] == [2, 2, 2]
    assert old.calls == 2  # its batch is 2
    assert trial.failed == "error: out of order"
    assert slot.current is trial.champion
    calls = slot.trial.challenger.predictor.calls  # type: ignore[union-attr]
    assert len(queued.detections(slot.answer(queued))) == 3  # was prepared for the one that failed, and never meets it
    assert slot.trial.challenger.predictor.calls == calls  # type: ignore[union-attr]
    slot.done(queued)
    assert [model.groups for model in (trial.champion, trial.challenger)] == [0, 0]


@pytest.mark.parametrize(
    ("new", "why"),
    [
        ({"count": 0}, "less than 1/2"),
        ({"count": 60}, "more than 4 times"),
        ({"seconds": 0.5}, "1.5 times as long"),
        ({"count": 3, "seconds": 0.14}, ""),  # finds three times as much: what adaptation is for
    ],
)
def test_trial__goes_back_by_what_it_finds_and_how_long_it_takes(new: dict[str, Any], why: str) -> None:
    clock = Clock()
    slot, trial = on_trial(Model(clock), Model(clock, **new), seconds=1e9)
    for _ in range(EVERY * 60):
        ask(slot)
    assert why in trial.failed if why else not trial.failed
    assert (slot.current is trial.champion) is bool(why)


def test_trial__an_empty_street_says_nothing() -> None:
    clock = Clock()
    slot, trial = on_trial(Model(clock, count=0), Model(clock, count=0), seconds=1e9)
    for _ in range(EVERY * 60):
        ask(slot)
    assert not trial.failed and trial.compared == 60


def test_trial__a_collapse_of_scores_shows_though_boxes_are_there() -> None:
    clock = Clock()
    _, trial = on_trial(Model(clock), Model(clock), seconds=1e9)
    low = dataclasses.replace(ONE, scores=np.array([0.05], np.float32))
    while not trial.failed:
        trial.compare([low], 0.1, [ONE], 0.1)
    assert "less than" in trial.failed and trial.compared < 40
