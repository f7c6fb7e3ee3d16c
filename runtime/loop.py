"""The runtime loop: frames are decoded on one thread, detected on the caller's, written on a third.

Queues between them are bounded. ``lossless`` waits for the slower stage; ``realtime`` keeps the newest frame and counts
those it drops. An error on any thread ends the loop and is raised to the caller, after every sink was closed.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ptedge.detections import Detections
from ptedge.frames import Frame

from .sinks import Result, Sink

DECODED = 4  # frames that wait for the model
RESULTS = 8  # results that wait to be written
POLL = 0.1  # seconds after which a waiting thread looks whether it should end


class BatchPredictor(Protocol):
    """What the loop asks of a model; :class:`ptedge.runner.BundlePredictor` is one."""

    class_names: tuple[str, ...]
    batch: int

    def detect_batch(self, images: Sequence[NDArray[np.uint8]]) -> list[Detections]:
        """Detections of each image."""
        ...


@dataclass
class Counters:
    """What a run did.

    Attributes:
        frames: detected and written.
        detections: in those frames.
        dropped: frames passed over to keep up (realtime only).
        seconds: wall time from the first decoded frame to the last written one.
    """

    frames: int = 0
    detections: int = 0
    dropped: int = 0
    seconds: float = 0.0

    @property
    def fps(self) -> float:
        """Frames a second over the whole run, decoding and writing included."""
        return self.frames / self.seconds if self.seconds > 0 else 0.0


@dataclass
class _Stage:
    """A thread's outlet: a bounded queue that ends with ``None``, and the error that ended it."""

    size: int
    stop: threading.Event
    error: BaseException | None = None
    queue: queue.Queue[object] = field(init=False)

    def __post_init__(self) -> None:
        self.queue = queue.Queue(self.size)

    def put(self, item: object) -> bool:
        """Wait for room; False when the loop ends meanwhile."""
        while not self.stop.is_set():
            try:
                self.queue.put(item, timeout=POLL)
                return True
            except queue.Full:
                continue
        return False

    def put_newest(self, item: object) -> int:
        """Replace what waits; the number of items thrown out."""
        thrown = 0
        while True:
            try:
                self.queue.put_nowait(item)
                return thrown
            except queue.Full:
                try:
                    self.queue.get_nowait()
                    thrown += 1
                except queue.Empty:
                    continue


def run_loop(
    frames: Iterable[Frame],
    predictor: BatchPredictor,
    sinks: Sequence[Sink],
    *,
    stop: threading.Event,
    realtime: bool = False,
    pace: bool = False,
    min_score: float = 0.0,
    draw_score: float = 0.0,
    progress: Callable[[Counters], None] | None = None,
) -> Counters:
    """Detect on all frames.

    Args:
        frames: iterated on a thread of its own.
        predictor: used on the calling thread only.
        sinks: get every result in order, on one thread; closed in any case.
        stop: ends the loop when set; results made so far are still written.
        realtime: drop frames that the model is too slow for.
        pace: deliver frames at their own times, as a camera would (for a video in realtime).
        min_score: detections below are left out.
        draw_score: detections below are left out of pictures.
        progress: called after each frame.

    Returns:
        The counters.

    Raises:
        PtedgeError: whatever a stage raised.
    """
    counters = Counters()
    ended = threading.Event()  # ends the threads, also when the model fails
    decoded = _Stage(1 if realtime else DECODED, ended)
    results = _Stage(RESULTS, ended)
    reader = threading.Thread(
        target=_read, args=(_paced(frames, ended) if pace else frames, decoded, realtime, counters), daemon=True
    )
    writer = threading.Thread(target=_write, args=(results, sinks), daemon=True)
    writer.start()
    reader.start()
    started = None
    try:
        for group in _groups(decoded, 1 if realtime else predictor.batch, stop, results):
            started = started or time.perf_counter()
            found = predictor.detect_batch([frame.image for frame in group])
            for frame, detections in zip(group, found, strict=True):
                kept = detections.select(detections.scores >= min_score)
                if not results.put(Result(frame, kept, predictor.class_names, draw_score)):
                    break
                counters.frames += 1
                counters.detections += len(kept)
            if progress is not None:
                progress(counters)
    finally:
        _end(results, writer)
        ended.set()
        reader.join(timeout=2.0)  # a camera may block in its read; the thread dies with the process
        errors = _close(sinks)
        if started is not None:
            counters.seconds = time.perf_counter() - started
    for error in (decoded.error, results.error, *errors):
        if error is not None:
            raise error
    return counters


def _read(frames: Iterable[Frame], out: _Stage, realtime: bool, counters: Counters) -> None:
    try:
        for frame in frames:
            if out.stop.is_set():
                return
            if realtime:
                counters.dropped += out.put_newest(frame)
            elif not out.put(frame):
                return
    except BaseException as error:
        out.error = error
    finally:
        out.put(None)


def _write(results: _Stage, sinks: Sequence[Sink]) -> None:
    try:
        while (result := results.queue.get()) is not None:
            assert isinstance(result, Result)
            for sink in sinks:
                sink.write(result)
    except BaseException as error:
        results.error = error
        results.stop.set()


def _groups(decoded: _Stage, size: int, stop: threading.Event, results: _Stage) -> Iterator[list[Frame]]:
    """Frames in groups of up to ``size``, until the source ends, someone asks to stop or the writer fails."""
    group: list[Frame] = []
    while not stop.is_set() and results.error is None:
        try:
            item = decoded.queue.get(timeout=POLL)
        except queue.Empty:
            continue
        if item is None:
            break
        assert isinstance(item, Frame)
        group.append(item)
        if len(group) == size:
            yield group
            group = []
    if group and results.error is None:
        yield group


def _paced(frames: Iterable[Frame], ended: threading.Event) -> Iterator[Frame]:
    """Frames at the speed of their own clock."""
    start = None
    for frame in frames:
        if frame.time is not None:
            now = time.perf_counter()
            start = now - frame.time if start is None else start
            if ended.wait(max(0.0, start + frame.time - now)):
                return
        yield frame


def _end(results: _Stage, writer: threading.Thread) -> None:
    """Let the writer finish what waits."""
    while writer.is_alive():
        try:
            results.queue.put(None, timeout=POLL)
            break
        except queue.Full:
            continue
    writer.join()


def _close(sinks: Sequence[Sink]) -> list[BaseException]:
    """Close every sink, also after one fails."""
    errors: list[BaseException] = []
    for sink in sinks:
        try:
            sink.close()
        except Exception as error:
            errors.append(error)
    return errors
