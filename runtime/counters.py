"""What a run counts while it goes: for the report, the live page and Prometheus.

Each number is written by one thread only and read by any, so nothing here is locked but the histograms.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ptedge.detections import Detections
from ptedge.frames.source import Frame, FrameSource

from .drift.baseline import Drift
from .drift.watch import DriftWatch

RECENT = 1000  # times behind the percentiles of the live page
RATE_SECONDS = 10.0  # span over which the live page counts frames a second

# upper bounds in seconds: 1, 2.5 and 5 of each power of ten from 1 ms, as Prometheus' own clients have them
BOUNDS = tuple(base * 10.0**power for power in range(-3, 2) for base in (1.0, 2.5, 5.0))


class Times:
    """A distribution of durations: buckets over the whole run, percentiles over the last ones.

    Attributes:
        count: durations so far.
        total: their sum in seconds.
        most: the longest in seconds.
    """

    def __init__(self) -> None:
        self.count, self.total, self.most = 0, 0.0, 0.0
        self._buckets = [0] * (len(BOUNDS) + 1)
        self._recent: deque[float] = deque(maxlen=RECENT)
        self._lock = threading.Lock()

    def add(self, seconds: float) -> None:
        """Count a duration."""
        with self._lock:
            self.count += 1
            self.total += seconds
            self.most = max(self.most, seconds)
            self._buckets[bisect_left(BOUNDS, seconds)] += 1
            self._recent.append(seconds)

    def buckets(self) -> tuple[list[int], int, float]:
        """Durations up to each of ``BOUNDS``, then all of them; their count; their sum in seconds."""
        with self._lock:
            return [int(v) for v in np.cumsum(self._buckets)], self.count, self.total

    def milliseconds(self) -> dict[str, float] | None:
        """Percentiles of the last 1,000 and the longest of all; ``None`` before the first."""
        with self._lock:
            recent, most = list(self._recent), self.most
        if not recent:
            return None
        p50, p99 = (float(v) * 1000 for v in np.percentile(recent, (50, 99)))
        return {"p50": round(p50, 2), "p99": round(p99, 2), "max": round(most * 1000, 2)}


class Rate:
    """Events a second over the last ten seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._marks: deque[float] = deque(maxlen=5000)
        self._since = clock()

    def add(self) -> None:
        """Count an event."""
        self._marks.append(self._clock())

    @property
    def value(self) -> float:
        """Events a second now."""
        now = self._clock()
        span = min(RATE_SECONDS, max(now - self._since, 1e-3))
        marks = list(self._marks)
        if len(marks) == self._marks.maxlen and now - marks[0] < span:
            span = max(now - marks[0], 1e-3)
        return sum(1 for mark in marks if now - mark <= span) / span


@dataclass
class RunSource:
    """What became of the frames of one source.

    Attributes:
        name: short and unique among the sources of the run.
        shown: what the user named, without credentials.
        kind: as :class:`ptedge.frames.source.FrameSource`.
        source: where the frames come from; ``None`` when it could not be opened.
        read: frames that arrived here.
        frames: detected and written.
        detections: in those frames.
        replaced: frames dropped for a newer one (realtime only).
        error: why the source ended early, empty if it did not.
        ended: no further frame comes.
    """

    name: str
    shown: str
    kind: str = "not opened"
    source: FrameSource | None = None
    read: int = 0
    frames: int = 0
    detections: int = 0
    replaced: int = 0
    error: str = ""
    ended: bool = False

    @property
    def dropped(self) -> int:
        """Frames passed over to keep up, here and in the source's own reader."""
        return self.replaced + int(self.live.get("dropped", 0))

    @property
    def skipped(self) -> list[tuple[str, str]]:
        """(name, reason) of unreadable frames."""
        return list(self.source.skipped) if self.source is not None else []

    @property
    def dim(self) -> int:
        """Image files of 16 bits that use only the lowest twelve, and so came out nearly black."""
        status = getattr(self.source, "status", None)
        return int(status.dim) if status is not None else 0

    @property
    def live(self) -> dict[str, Any]:
        """Counters of a live source: state, reconnects, stalls, corrupt frames; empty for files."""
        status = getattr(self.source, "status", None)
        return dict(status.to_json()) if status is not None and self.kind == "live" else {}

    def to_json(self) -> dict[str, Any]:
        """For the report and ``/status.json``."""
        about = {"name": self.name, "source": self.shown, "kind": self.kind, "read": self.read, "frames": self.frames}
        about |= {"detections": self.detections, "dropped": self.dropped, "skipped": len(self.skipped), "dim": self.dim}
        about |= {"ended": self.ended, "error": self.error}
        return about | ({"live": self.live} if self.live else {})


@dataclass
class RunCounters:
    """Everything counted in a run.

    Attributes:
        sources: one entry a source, in the order the user named them.
        clock: seconds, increasing.
        ages: from a frame's arrival to its detections, in seconds.
        infer: the model alone, in seconds a call.
        drift: running means against the beginning.
        watch: of drift against the place the model was made for; ``None`` for none.
        classes: detections by class name.
        started: clock when the run began.
        first: clock at the first frame; ``None`` before.
        seconds: from the first frame to the end of the run.
    """

    sources: list[RunSource]
    clock: Callable[[], float] = time.monotonic
    ages: Times = field(default_factory=Times)
    infer: Times = field(default_factory=Times)
    classes: Counter[str] = field(default_factory=Counter)
    watch: DriftWatch | None = None
    first: float | None = None
    seconds: float = 0.0

    def __post_init__(self) -> None:
        self.started = self.clock()
        self.drift = Drift(self.clock)
        self.rate_in, self.rate_out = Rate(self.clock), Rate(self.clock)

    @property
    def frames(self) -> int:
        """Frames detected and written, of all sources."""
        return sum(source.frames for source in self.sources)

    @property
    def detections(self) -> int:
        """Detections in those frames."""
        return sum(source.detections for source in self.sources)

    @property
    def dropped(self) -> int:
        """Frames passed over to keep up."""
        return sum(source.dropped for source in self.sources)

    @property
    def fps(self) -> float:
        """Frames a second over the whole run, decoding and writing included."""
        return self.frames / self.seconds if self.seconds > 0 else 0.0

    def arrived(self, number: int, frame: Frame) -> float:
        """Count a frame that a source gave; the time of its arrival."""
        now = self.clock() if frame.arrived is None else frame.arrived
        if self.first is None:
            self.first = now
        self.sources[number].read += 1
        self.rate_in.add()
        return now

    def drift_json(self) -> dict[str, Any]:
        """What is known of drift: against the beginning of the run, and against the place the model was made for."""
        return {**self.drift.to_json(), **(self.watch.to_json() if self.watch is not None else {})}

    def detected(self, found: Detections, class_names: Sequence[str], age: float) -> None:
        """Count the detections of a frame, ``age`` seconds after it arrived."""
        self.ages.add(age)
        self.rate_out.add()
        self.drift.add(found)
        for label in found.labels.tolist():
            self.classes[class_names[label]] += 1
