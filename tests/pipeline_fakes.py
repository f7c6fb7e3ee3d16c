"""A model, a sink and frames for tests of the pipeline: no files, no ONNX Runtime."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ptedge.detections import Detections
from ptedge.errors import OutputError
from ptedge.frames.source import Frame
from ptedge.preprocess import Letterbox
from ptedge.runtime.counters import RunCounters, RunSource
from ptedge.runtime.pipeline import Pipeline, Rules
from ptedge.runtime.sinks.files import Result
from ptedge.runtime.slot import LoadedModel, ModelSlot

ONE = Detections(
    np.array([[0, 0, 1, 1]], np.float32),
    np.array([0.5], np.float32),
    np.array([0]),
    np.ones((1, 4), np.float32),
    np.zeros(1, np.float32),
)


class FakePredictor:
    """Finds one box, of score 0.5; waits for ``gate`` before each answer when there is one."""

    class_names = ("car",)
    record: Mapping[str, Any] = {}
    unconverged = 0

    def __init__(self, batch: int = 1, gate: threading.Semaphore | None = None, fail_at: int | None = None) -> None:
        self.batch, self.gate, self.fail_at = batch, gate, fail_at
        self.groups: list[int] = []
        self.thread: threading.Thread | None = None
        self.runner = self

    def preprocess(self, images: Sequence[np.ndarray]) -> tuple[np.ndarray, list[Letterbox]]:
        return np.array([len(images)]), [Letterbox(2, 2, 2, 2)] * len(images)  # type: ignore[return-value]

    def infer(self, feeds: Mapping[str, np.ndarray]) -> Mapping[str, Any]:
        self.thread = threading.current_thread()
        if self.gate is not None:
            self.gate.acquire()
        if len(self.groups) == self.fail_at:
            raise RuntimeError("model")
        self.groups.append(int(feeds["images"][0]))
        return {}

    def postprocess(self, outputs: Mapping[str, Any], letterboxes: Sequence[Letterbox]) -> list[Detections]:
        return [ONE] * len(letterboxes)


class Keep:
    """Remembers results; fails at one of them."""

    path = Path("nowhere")

    def __init__(self, fail_at: int | None = None, then: Callable[[int], None] | None = None) -> None:
        self.results: list[Result] = []
        self.closed = 0
        self.fail_at, self.then = fail_at, then

    def write(self, result: Result) -> None:
        if len(self.results) == self.fail_at:
            raise OutputError("disk is full")
        self.results.append(result)
        if self.then is not None:
            self.then(len(self.results))

    def close(self) -> None:
        self.closed += 1

    @property
    def indices(self) -> list[int]:
        return [result.frame.index for result in self.results]


def frames(count: int, error: Exception | None = None, source: str = "test") -> Iterator[Frame]:
    for i in range(count):
        yield Frame(np.zeros((2, 2, 3), np.uint8), i, i / 10, source, None)
    if error is not None:
        raise error


def run(
    sources: Sequence[Any], model: Any, sinks: Sequence[Any], stop: threading.Event | None = None, **rules: Any
) -> RunCounters:
    """Run a pipeline to its end; what it counted."""
    counters = RunCounters([RunSource(f"s{i}", f"source {i}") for i in range(len(sources))])
    Pipeline(sources, ModelSlot(LoadedModel(model)), sinks, counters, Rules(**rules), stop or threading.Event()).run()
    return counters


def a_result(index: int) -> Result:
    """A frame of 4 x 4 pixels with one car."""
    return Result(Frame(np.zeros((4, 4, 3), np.uint8), index, index / 10, "here", None), ONE, ["car"])


def wait_for(condition: Callable[[], bool], seconds: float = 20) -> None:
    """Until something is so."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)
