from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pipeline_fakes import FakePredictor, Keep, frames, run

from ptedge.errors import InputError, OutputError, PtedgeError
from ptedge.frames.source import Frame
from ptedge.runtime.counters import RunCounters, RunSource
from ptedge.runtime.pipeline import Pipeline, Rules
from ptedge.runtime.slot import LoadedModel, ModelSlot


def test_pipeline__lossless_keeps_every_frame_in_order() -> None:
    model, keep = FakePredictor(), Keep()
    counters = run([frames(50)], model, [keep])
    assert keep.indices == list(range(50)) and keep.closed == 1
    assert (counters.frames, counters.detections, counters.dropped) == (50, 50, 0)
    assert model.thread is threading.current_thread()
    assert counters.fps > 0 and counters.ages.count == counters.infer.count == 50
    assert keep.results[0].source is None and keep.results[0].age is None


def test_pipeline__groups_of_the_graph_and_a_rest() -> None:
    model, keep = FakePredictor(batch=4), Keep()
    run([frames(10)], model, [keep])
    assert model.groups == [4, 4, 2] and keep.indices == list(range(10))


def test_pipeline__a_batch_does_not_wait_for_ever_for_a_live_source() -> None:
    goes_on = threading.Event()

    def camera() -> Iterator[Frame]:
        yield from frames(1)
        assert goes_on.wait(20)
        yield from frames(1)

    model, keep = FakePredictor(batch=4), Keep(then=lambda _: goes_on.set())
    run([camera()], model, [keep], fill=0.01)
    assert model.groups == [1, 1]


def test_pipeline__no_frames() -> None:
    keep = Keep()
    counters = run([frames(0)], FakePredictor(), [keep])
    assert (counters.frames, counters.fps, keep.closed) == (0, 0.0, 1)


def test_pipeline__min_score() -> None:
    keep = Keep()
    assert run([frames(3)], FakePredictor(), [keep], min_score=0.6).detections == 0
    assert len(keep.results[0].detections) == 0


def test_pipeline__realtime_keeps_the_newest_and_counts_the_rest() -> None:
    gate, all_read = threading.Semaphore(0), threading.Event()

    def source() -> Iterator[Frame]:
        yield from frames(20)
        all_read.set()
        gate.release(20)

    keep = Keep()
    counters = run([source()], FakePredictor(gate=gate), [keep], realtime=True, fill=0.0)
    assert all_read.is_set()
    assert counters.frames + counters.dropped == counters.sources[0].read == 20
    assert counters.frames <= 3  # one in the model, one waiting
    assert keep.indices[-1] == 19
    assert keep.results[0].age is not None and "age_ms" in keep.results[0].line()


def test_pipeline__paced_frames_come_at_their_times() -> None:
    start = time.monotonic()
    run([frames(4)], FakePredictor(), [Keep()], pace=frozenset({0}))
    assert time.monotonic() - start >= 0.3  # the last has time 0.3


def test_pipeline__several_sources_are_served_in_turn() -> None:
    keep = Keep()
    counters = run([frames(30), frames(5), frames(0)], FakePredictor(batch=2), [keep])
    assert [about.frames for about in counters.sources] == [30, 5, 0]
    for name, count in (("s0", 30), ("s1", 5)):
        assert [r.frame.index for r in keep.results if r.source == name] == list(range(count))
    assert {r.line()["source"] for r in keep.results} == {"s0", "s1"}


def test_pipeline__a_fast_source_does_not_starve_a_slow_one() -> None:
    """The endless source fills its lane at once; the other's five frames still come through."""
    stop = threading.Event()

    def endless() -> Iterator[Frame]:
        while True:
            yield from frames(1)

    keep = Keep(then=lambda count: stop.set() if keep.results[-1].source == "s1" and count > 5 else None)
    counters = run([endless(), frames(5)], FakePredictor(), [keep], stop)
    assert counters.sources[1].frames >= 1


def test_pipeline__one_failing_source_does_not_end_the_others() -> None:
    keep = Keep()
    counters = run([frames(3, InputError("camera lost")), frames(40)], FakePredictor(), [keep])
    assert [about.frames for about in counters.sources] == [3, 40]
    assert [about.error for about in counters.sources] == ["camera lost", ""]


def test_pipeline__all_sources_failing_is_an_error() -> None:
    with pytest.raises(InputError, match="all 2 sources failed; the first: one"):
        run([frames(3, InputError("one")), frames(4, InputError("two"))], FakePredictor(), [Keep()])


def test_pipeline__error_while_reading_comes_after_the_frames_before() -> None:
    keep = Keep()
    with pytest.raises(InputError, match="broken camera"):
        run([frames(5, InputError("broken camera"))], FakePredictor(), [keep])
    assert keep.indices == [0, 1, 2, 3, 4] and keep.closed == 1


@pytest.mark.parametrize("realtime", [False, True])
def test_pipeline__error_in_the_model(realtime: bool) -> None:
    keep = Keep()
    with pytest.raises(PtedgeError, match="inference failed: RuntimeError: model") as caught:
        run([frames(1000)], FakePredictor(fail_at=0 if realtime else 3), [keep], realtime=realtime)
    assert isinstance(caught.value.__cause__, RuntimeError)
    assert len(keep.results) == (0 if realtime else 3) and keep.closed == 1


def test_pipeline__error_in_a_sink_ends_the_run_and_closes_all() -> None:
    bad, good = Keep(fail_at=2), Keep()
    with pytest.raises(OutputError, match="disk is full"):
        run([frames(100_000)], FakePredictor(), [bad, good])
    assert bad.closed == good.closed == 1
    assert len(bad.results) == 2 and len(good.results) == 3  # the other one does not lack the frame


def test_pipeline__error_in_close_does_not_keep_others_open() -> None:
    class Stuck(Keep):
        def close(self) -> None:
            raise OutputError("cannot finish")

    keep = Keep()
    with pytest.raises(OutputError, match="cannot finish"):
        run([frames(2)], FakePredictor(), [Stuck(), keep])
    assert keep.closed == 1


def test_pipeline__stop_writes_what_was_detected() -> None:
    stop = threading.Event()
    keep = Keep(then=lambda count: stop.set() if count == 5 else None)
    counters = run([frames(100_000)], FakePredictor(), [keep], stop)
    assert keep.indices == list(range(counters.frames))
    assert 5 <= counters.frames < 1000 and keep.closed == 1


def test_pipeline__stop_while_a_source_is_silent() -> None:
    stop, silent = threading.Event(), threading.Event()

    def camera() -> Iterator[Frame]:
        yield from frames(1)
        stop.set()
        silent.wait(20)

    keep = Keep()
    release = threading.Timer(0.3, silent.set)
    release.start()
    run([camera()], FakePredictor(), [keep], stop)
    assert keep.closed == 1
    release.join()


def test_pipeline__leaves_no_thread_behind() -> None:
    before = threading.active_count()
    run([frames(5), frames(5)], FakePredictor(), [Keep()])
    assert threading.active_count() == before


def test_pipeline__nothing_waits_at_the_end() -> None:
    counters = RunCounters([RunSource("s", "s")])
    pipeline = Pipeline(
        [frames(5)], ModelSlot(LoadedModel(FakePredictor())), [Keep()], counters, Rules(), threading.Event()
    )
    pipeline.run()
    assert set(pipeline.waiting.values()) == {0}


class Faulty:
    """Wraps a call so that it sleeps at random and fails at its n-th use."""

    def __init__(self, call: Any, chance: random.Random, fail_at: int | None) -> None:
        self.call, self.chance, self.fail_at, self.used = call, chance, fail_at, 0

    def __call__(self, *arguments: Any) -> Any:
        self.used += 1
        if self.used == self.fail_at:
            raise ValueError("planted")
        if self.chance.random() < 0.2:
            time.sleep(self.chance.random() * 0.002)
        return self.call(*arguments)


@settings(max_examples=60)
@given(st.data())
def test_pipeline__random_faults_in_random_stages_never_hang(data: st.DataObject) -> None:
    """Whatever fails: the run ends, no thread stays, every sink is closed once, and results are in order."""
    chance = random.Random(data.draw(st.integers(0, 2**32), "seed"))
    counts = data.draw(st.lists(st.integers(0, 25), min_size=1, max_size=4), "frames of each source")
    stages = ("source", "preprocess", "infer", "postprocess", "write", "close")
    faults = data.draw(st.dictionaries(st.sampled_from(stages), st.integers(1, 30), max_size=3), "stage -> failing use")
    rules = {
        "realtime": data.draw(st.booleans(), "realtime"),
        "fill": data.draw(st.sampled_from([None, 0.0, 0.001])),
    }
    stop_after = data.draw(st.one_of(st.none(), st.floats(0, 0.02)), "seconds until a signal")

    def source(number: int, count: int) -> Iterator[Frame]:
        step = Faulty(lambda frame: frame, chance, faults.get("source") if number == 0 else None)
        for frame in frames(count):
            yield step(frame)

    model, sinks = FakePredictor(batch=data.draw(st.integers(1, 5), "batch")), [Keep(), Keep()]
    for name in ("preprocess", "infer", "postprocess"):
        setattr(model, name, Faulty(getattr(model, name), chance, faults.get(name)))
    sinks[1].write = Faulty(sinks[1].write, chance, faults.get("write"))  # type: ignore[method-assign]
    if "close" in faults:
        sinks[0].close = Faulty(sinks[0].close, chance, 1)  # type: ignore[method-assign]

    before, ended = threading.active_count(), threading.Event()
    stop, outcome = threading.Event(), []

    def work() -> None:
        try:
            outcome.append(run([source(i, n) for i, n in enumerate(counts)], model, sinks, stop, **rules))
        except PtedgeError as error:
            outcome.append(error)
        ended.set()

    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    if stop_after is not None:
        time.sleep(stop_after)
        stop.set()
    assert ended.wait(30), "the pipeline hangs"
    worker.join()
    assert threading.active_count() == before
    assert sinks[1].closed == 1 and sinks[0].closed == (0 if "close" in faults else 1)
    for number in range(len(counts)):
        name = f"s{number}" if len(counts) > 1 else None
        written = [r.frame.index for r in sinks[1].results if r.source == name]
        assert written == sorted(set(written))
        if not rules["realtime"]:
            assert written == list(range(len(written)))  # a prefix: nothing is lost in the middle
    if isinstance(outcome[0], PtedgeError):
        assert faults and "planted" in str(outcome[0])
    elif stop_after is None and not rules["realtime"] and not faults:
        assert outcome[0].frames == sum(counts)
