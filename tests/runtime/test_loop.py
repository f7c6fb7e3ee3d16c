from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from ptedge.detections import Detections
from ptedge.errors import InputError, OutputError
from ptedge.frames import Frame
from ptedge.runtime.loop import run_loop
from ptedge.runtime.sinks import Result


class Model:
    """Finds one box, of score 0.5; waits for ``gate`` before each answer when there is one."""

    class_names = ("car",)

    def __init__(self, batch: int = 1, gate: threading.Semaphore | None = None, fail_at: int | None = None) -> None:
        self.batch, self.gate, self.fail_at = batch, gate, fail_at
        self.groups: list[int] = []
        self.thread: threading.Thread | None = None

    def detect_batch(self, images: Sequence[np.ndarray]) -> list[Detections]:
        self.thread = threading.current_thread()
        if self.gate is not None:
            self.gate.acquire()
        if len(self.groups) == self.fail_at:
            raise RuntimeError("model")
        self.groups.append(len(images))
        one = Detections(
            np.array([[0, 0, 1, 1]], np.float32),
            np.array([0.5], np.float32),
            np.array([0]),
            np.ones((1, 4), np.float32),
            np.zeros(1, np.float32),
        )
        return [one] * len(images)


class Keep:
    path = Path("nowhere")

    def __init__(self, fail_at: int | None = None) -> None:
        self.results: list[Result] = []
        self.closed = 0
        self.fail_at = fail_at

    def write(self, result: Result) -> None:
        if len(self.results) == self.fail_at:
            raise OutputError("disk is full")
        self.results.append(result)

    def close(self) -> None:
        self.closed += 1

    @property
    def indices(self) -> list[int]:
        return [result.frame.index for result in self.results]


def frames(count: int, error: Exception | None = None) -> Iterator[Frame]:
    for i in range(count):
        yield Frame(np.zeros((2, 2, 3), np.uint8), i, i / 10, "test", None)
    if error is not None:
        raise error


def test_run_loop__lossless_keeps_every_frame_in_order() -> None:
    model, keep = Model(), Keep()
    counters = run_loop(frames(50), model, [keep], stop=threading.Event())
    assert keep.indices == list(range(50)) and keep.closed == 1
    assert (counters.frames, counters.detections, counters.dropped) == (50, 50, 0)
    assert model.thread is threading.current_thread()
    assert counters.fps > 0


def test_run_loop__groups_of_the_graph_and_a_rest() -> None:
    model, keep = Model(batch=4), Keep()
    run_loop(frames(10), model, [keep], stop=threading.Event())
    assert model.groups == [4, 4, 2] and keep.indices == list(range(10))


def test_run_loop__no_frames() -> None:
    keep = Keep()
    counters = run_loop(frames(0), Model(), [keep], stop=threading.Event())
    assert (counters.frames, counters.fps, keep.closed) == (0, 0.0, 1)


def test_run_loop__min_score() -> None:
    keep = Keep()
    counters = run_loop(frames(3), Model(), [keep], stop=threading.Event(), min_score=0.6)
    assert counters.detections == 0 and len(keep.results[0].detections) == 0


def test_run_loop__realtime_keeps_the_newest_and_counts_the_rest() -> None:
    gate, all_read = threading.Semaphore(0), threading.Event()

    def source() -> Iterator[Frame]:
        yield from frames(20)
        all_read.set()
        gate.release(20)

    keep = Keep()
    counters = run_loop(source(), Model(gate=gate), [keep], stop=threading.Event(), realtime=True)
    assert all_read.is_set()
    assert counters.frames + counters.dropped == 20
    assert counters.frames <= 3  # one in the model, one waiting
    assert keep.indices[-1] == 19


def test_run_loop__error_while_reading_comes_after_the_frames_before() -> None:
    keep = Keep()
    with pytest.raises(InputError, match="broken camera"):
        run_loop(frames(5, InputError("broken camera")), Model(), [keep], stop=threading.Event())
    assert keep.indices == [0, 1, 2, 3, 4] and keep.closed == 1


def test_run_loop__error_in_the_model() -> None:
    keep = Keep()
    with pytest.raises(RuntimeError, match="model"):
        run_loop(frames(1000), Model(fail_at=3), [keep], stop=threading.Event())
    assert keep.indices == [0, 1, 2] and keep.closed == 1


def test_run_loop__error_in_a_sink_ends_the_run_and_closes_all() -> None:
    bad, good = Keep(fail_at=2), Keep()
    with pytest.raises(OutputError, match="disk is full"):
        run_loop(frames(100_000), Model(), [bad, good], stop=threading.Event())
    assert bad.closed == good.closed == 1 and len(good.results) == 2


def test_run_loop__error_in_close_does_not_keep_others_open() -> None:
    class Stuck(Keep):
        def close(self) -> None:
            raise OutputError("cannot finish")

    keep = Keep()
    with pytest.raises(OutputError, match="cannot finish"):
        run_loop(frames(2), Model(), [Stuck(), keep], stop=threading.Event())
    assert keep.closed == 1


def test_run_loop__stop_writes_what_was_detected() -> None:
    stop = threading.Event()

    class StopAt(Keep):
        def write(self, result: Result) -> None:
            super().write(result)
            if len(self.results) == 5:
                stop.set()

    keep = StopAt()
    counters = run_loop(frames(100_000), Model(), [keep], stop=stop)
    assert keep.indices == list(range(counters.frames))
    assert 5 <= counters.frames < 1000 and keep.closed == 1


def test_run_loop__leaves_no_thread_behind() -> None:
    before = threading.active_count()
    run_loop(frames(5), Model(), [Keep()], stop=threading.Event())
    assert threading.active_count() == before
