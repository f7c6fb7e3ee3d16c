"""Measuring by a clock that is known: stages, warm-up, turns of several subjects, calls at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_model import tiny_bundle, tiny_onnx

from ptedge.backends.bundle_predictor import BundlePredictor
from ptedge.errors import BackendError
from ptedge.runtime.benchmark.measure import STAGES, Subject, measure, noise, subject_names


class Clock:
    """Goes on by the same step at each look."""

    def __init__(self, step: float = 0.001) -> None:
        self.now, self.step = 0.0, step

    def __call__(self) -> float:
        self.now += self.step
        return self.now


def subject(folder: Path, name: str = "cpu", batch: int = 1, **more: Any) -> Subject:
    bundle = tiny_bundle(folder, tiny_onnx(batch=batch), batch=batch)
    return Subject(name, BundlePredictor(bundle.path, "cpu", 1), [noise()], **more)


def stage(times: np.ndarray, name: str) -> list[float]:
    return np.unique(times[:, STAGES.index(name)].round(9)).tolist()


def test_measure__stages_of_a_known_clock(tmp_path: Path) -> None:
    one = subject(tmp_path / "b", batch=2)
    assert list(measure([one], 0.5, 0.02, 10, clock=Clock(), cpu=Clock(0.01))) == [10] * 10
    for r in one.rounds:
        # each look is 1 ms: a stage takes one look, the three stages together three
        assert [stage(r.times, name) for name in ("preprocess", "infer", "postprocess")] == [[0.001]] * 3
        assert stage(r.times, "end_to_end") == [0.003]
        for name in ("h2d", "compute", "d2h", "enqueue", "latency"):
            assert np.isnan(r.times[:, STAGES.index(name)]).all()
        assert r.images == 2 * len(r.times) and r.detections == 2 * r.images
        # a call is 4 looks and 1 for the time: after 10 of them 50 ms are over, and the end is 1 look more
        assert len(r.times) == 10 and r.seconds == pytest.approx(0.051)
        assert r.busy == pytest.approx(0.01)


def test_measure__warms_up_by_time_and_once_at_least(tmp_path: Path) -> None:
    long, short = subject(tmp_path / "a"), subject(tmp_path / "b")
    list(measure([long], 0.1, 0.06, 1, clock=Clock()))
    list(measure([short], 0.1, 0, 1, clock=Clock()))
    assert long.warm_calls == 10 and short.warm_calls == 1  # 6 looks a call


def test_measure__turns_in_both_orders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    both = [subject(tmp_path / "a", "a"), subject(tmp_path / "b", "b")]
    order: list[str] = []
    real = Subject.turn

    def turn(self: Subject, *arguments: Any, **more: Any) -> None:
        order.append(self.name)
        assert more["again"]
        real(self, *arguments, **more)

    monkeypatch.setattr(Subject, "turn", turn)
    reads: list[int] = []
    list(measure(both, 0.2, 0, 3, clock=Clock(), read=lambda: reads.append(len(order))))
    assert order == ["a", "b", "b", "a", "a", "b"]
    assert reads == [0, 2, 4, 6]  # only between rounds
    assert [s.warm_calls for s in both] == [4, 4]  # one before, and the first of each turn


def test_measure__fewer_rounds_where_calls_are_slow(tmp_path: Path) -> None:
    slow = subject(tmp_path / "b")
    list(measure([slow], 1, 0, 10, clock=Clock(0.02)))  # about 0.1 s a call, 3 calls a turn at least
    assert len(slow.rounds) == 6  # never fewer than an interval needs, unless asked for
    few = subject(tmp_path / "c")
    list(measure([few], 1, 0, 2, clock=Clock(0.02)))
    assert len(few.rounds) == 2


def test_measure__a_turn_has_a_call_however_long(tmp_path: Path) -> None:
    one = subject(tmp_path / "b")
    list(measure([one], 0.1, 0, 1, clock=Clock(5.0)))
    assert [len(r.times) for r in one.rounds] == [1]


def test_subject__takes_the_images_in_turn(tmp_path: Path) -> None:
    one = subject(tmp_path / "b", batch=2)
    one.images = [noise(seed) for seed in range(3)]
    numbers = [[next(i for i in range(3) if image is one.images[i]) for image in one.group(call)] for call in range(3)]
    assert numbers == [[0, 1], [2, 0], [1, 2]]


def test_measure__several_calls_at_once(tmp_path: Path) -> None:
    one = subject(tmp_path / "b", slots=3)
    list(measure([one], 0.06, 0, 2))
    assert all(len(r.times) >= 3 and r.images == len(r.times) for r in one.rounds)


def test_measure__an_error_in_one_of_the_threads_is_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = subject(tmp_path / "b", slots=2)

    def fail(feeds: Any) -> None:
        raise BackendError("the GPU is gone")

    one.warm(0, Clock())
    monkeypatch.setattr(one.predictor.runner, "infer", fail)
    with pytest.raises(BackendError, match="the GPU is gone"):
        one.turn(0.01, Clock(), Clock(), again=False)


def test_subject_names__short_and_distinct() -> None:
    assert subject_names(["a/b", "a/b"], ["cpu", "cuda"]) == ["cpu", "cuda"]
    assert subject_names(["x/small", "x/large/"], ["cpu", "cpu"]) == ["small cpu", "large cpu"]
    assert subject_names(["x/0/bundle", "x/1/bundle"], ["cpu", "cpu"]) == ["0/bundle cpu", "1/bundle cpu"]
    assert subject_names(["b", "b", "b"], ["cpu", "cpu", "cuda"]) == ["cpu", "cpu #2", "cuda"]


def test_noise__is_reproducible() -> None:
    assert noise().shape == (720, 1280, 3) and noise().dtype == np.uint8
    np.testing.assert_array_equal(noise(3), noise(3))
