"""A stream watched against a reference: tests over minutes, hours and a day, alarms that begin and end.

Evidence is gathered second by second (``BEAT``) in windows of four lengths. Each test is done whenever a part of its
window is full. The user names how many false alarms there may be in which time; every test gets an equal part of that
(Bonferroni, over measures, ends, window lengths and the tests in that time). As windows overlap and the bound of each
test is an upper one, false alarms are rarer than that where frames are as dependent as they look.

Why not one number that sums up all: who is told that something moved wants to know what. Why windows and no martingale:
their size says how long a change must last, and how much of the usual variation is let pass (``share``).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from ptedge.config import require
from ptedge.drift.dependence import FIRST_TIME, autocorrelation_times
from ptedge.drift.measures import FloatArray
from ptedge.drift.reference import SHARES, Reference
from ptedge.drift.windows import SIDES, Edges, Moved, excess, log_chance

BEAT = 1.0  # seconds from one frame that is measured to the next, at least
TIMED = 60  # beats that an autocorrelation time is measured over
TIMES_KEPT = 16  # of which the median counts, so that the moment of a change does not look like dependence
DAY = 86400.0


@dataclass(frozen=True)
class Scale:
    """A length of window.

    Attributes:
        part: beats of a part.
        parts: in a window.
        share: of the reference that such a window may be like, see ``ptedge.drift.windows``.
        fewest: parts from which it is tested. A long window that has just begun is a short one: its first hour may
            well be the darkest of the day, and is no half of it.
    """

    part: int
    parts: int
    share: float
    fewest: int

    @property
    def beats(self) -> int:
        """In a window."""
        return self.part * self.parts


# two hours are a twelfth of a day, so what is usual may be like its darkest twelfth for so long
SCALES = (Scale(10, 12, 0.02, 1), Scale(60, 15, 0.02, 1), Scale(300, 24, 0.08, 24), Scale(3600, 24, 0.5, 24))


@dataclass(frozen=True)
class MovedSince(Moved):
    """What moved in a stream.

    Attributes:
        since: time from which on, an estimate, as given to :meth:`Monitor.add`; ``share`` and ``now`` are from there.
        seconds: length of the window that told.
    """

    since: float
    seconds: float


@dataclass
class Alarm:
    """A time in which something is not as it was.

    Attributes:
        began: time of the test that told.
        since: from when on, an estimate.
        ended: when the stream was as usual again; ``None`` while it is not.
        moved: what is not as it was now, by (name, side).
        told: all that was not as it was at some time of it, as told last.
    """

    began: float
    since: float
    ended: float | None = None
    moved: dict[tuple[str, str], MovedSince] = field(default_factory=dict)
    told: dict[tuple[str, str], MovedSince] = field(default_factory=dict)


class _Window:
    """The newest parts of one scale, each a sum over its beats."""

    def __init__(self, scale: Scale, measures: int) -> None:
        self.scale = scale
        self.parts: deque[tuple[float, FloatArray, FloatArray, FloatArray]] = deque(maxlen=scale.parts)
        self.held = np.zeros(measures, np.int64)  # parts of each measure since it was forgotten
        self._shape = (measures, 2, len(SHARES))
        self._reset()

    def _reset(self) -> None:
        self._beats, self._start = 0, 0.0
        self._beyond = np.zeros(self._shape)
        self._means = np.zeros(self._shape[0])
        self._counts = np.zeros(self._shape[0])

    def add(self, time: float, beyond: FloatArray, means: FloatArray, counts: FloatArray, beats: int) -> bool:
        """Sums over some beats; whether a part is full now."""
        if not self._beats:
            self._start = time
        self._beats += beats
        self._beyond += beyond
        self._means += means
        self._counts += counts
        if self._beats < self.scale.part:
            return False
        self.parts.append((self._start, self._beyond, self._means, self._counts))
        self.held += 1
        self._reset()
        return True

    def forget(self, row: int) -> None:
        """Forget all of one measure."""
        self.held[row] = 0
        own = (self._beyond, self._means, self._counts)
        for sums in (own, *(part[1:] for part in self.parts)):
            for values in sums:
                values[row] = 0.0

    def sums(self, last: int | None = None) -> tuple[FloatArray, FloatArray]:
        """[M, 2, K] mean share beyond the bounds and [M] frames, over the last parts; share 0 where no frame is."""
        parts = list(self.parts)[-(last or len(self.parts)) :]
        counts = np.sum([part[3] for part in parts], axis=0)
        beyond = np.sum([part[1] for part in parts], axis=0) / np.maximum(counts, 1.0)[:, None, None]
        return beyond, counts


class Monitor:
    """One stream against one reference.

    Attributes:
        times: [M] autocorrelation times in beats.
        beats: frames measured so far.
        alarm: that is on; ``None`` for none.
        alarms: all so far, the present one included; of long runs the last 100.
        total: how many there were.
    """

    def __init__(self, reference: Reference, seconds_between: float, streams: int = 1) -> None:
        """Begin.

        Args:
            reference: of the place the model was made for.
            seconds_between: mean time between two false alarms, at least, of all streams together; above 0.
            streams: that are watched beside one another.
        """
        require("seconds_between", seconds_between, 0, open_low=True)
        self._reference = reference
        self._edges = Edges(reference)
        self._windows = [_Window(scale, len(self._edges.names)) for scale in SCALES]
        tests = 2 * len(self._edges.names) * len(SCALES) * streams
        self._limits = [math.log(min(1.0, BEAT * scale.part / seconds_between / tests)) for scale in SCALES]
        self._series: list[FloatArray] = []
        self._times: deque[FloatArray] = deque(maxlen=TIMES_KEPT)
        self.times: FloatArray = np.full(len(self._edges.names), FIRST_TIME)
        self.beats = 0
        self.alarm: Alarm | None = None
        self.alarms: deque[Alarm] = deque(maxlen=100)
        self.total = 0

    def add(self, time: float, frame: Mapping[str, FloatArray]) -> None:
        """Take in a frame, at least :data:`BEAT` after the one before.

        Args:
            time: seconds, on any clock.
            frame: of :func:`ptedge.drift.measures.measure_frame`.
        """
        self.look(time, *self._edges.look(frame))

    def look(self, time: float, beyond: FloatArray, means: FloatArray) -> None:
        """As :meth:`add`, with what :meth:`ptedge.drift.windows.Edges.look` says of the frame."""
        self.beats += 1
        self._series.append(means)
        if len(self._series) == TIMED:
            self._measure_times()
        has = np.isfinite(means)
        step = (time, np.where(has[:, None, None], beyond, 0.0), np.where(has, means, 0.0), has.astype(np.float64))
        beats = 1
        for window, limit in zip(self._windows, self._limits, strict=True):
            if not window.add(*step, beats):
                return
            self._test(window, limit, time)
            step, beats = window.parts[-1], window.scale.part

    def _measure_times(self) -> None:
        """Autocorrelation times from now on: the median of the last :data:`TIMES_KEPT` minutes."""
        self._times.append(autocorrelation_times(np.array(self._series)))
        self._series = []
        known = np.array(self._times)
        self.times = np.nanmedian(np.where(np.isfinite(known).any(axis=0), known, FIRST_TIME), axis=0)

    def _test(self, window: _Window, limit: float, time: float) -> None:
        """Look for what moved in a window, and whether what had moved is back."""
        beyond, counts = window.sums()
        distance = excess(beyond, window.scale.share)
        chance = log_chance(distance, counts, self.times, self._edges.counts)
        ready = window.held >= window.scale.fewest
        places = [(int(row), int(side)) for row, side in np.argwhere((chance < limit) & ready[:, None])]
        found = [self._moved(window, *place) for place in places if self._goes_on(window, beyond, *place)]
        if found and self.alarm is None:
            self.alarm = Alarm(time, min(moved.since for moved in found))
            self.alarms.append(self.alarm)
            self.total += 1
        if self.alarm is None:
            return
        for moved in found:
            key = (moved.name, moved.side)
            before = self.alarm.moved.get(key, moved)  # the shorter window sees the end sooner, the first the beginning
            told = replace(moved, since=before.since, seconds=min(before.seconds, moved.seconds))
            self.alarm.moved[key] = self.alarm.told[key] = told
        for key, moved in list(self.alarm.moved.items()):
            if moved.seconds == BEAT * window.scale.beats and self._is_back(window, limit, key):
                del self.alarm.moved[key]
                for one in self._windows:  # what is over is no evidence of what comes
                    one.forget(self._edges.names.index(moved.name))
        if not self.alarm.moved:
            self.alarm.ended = time
            self.alarm = None

    def _is_back(self, window: _Window, limit: float, key: tuple[str, str]) -> bool:
        """Whether the newer half of a window lies within half of what would be an alarm in a whole one."""
        row, side = self._edges.names.index(key[0]), SIDES.index(key[1])
        beyond, counts = window.sums(max(1, window.scale.parts // 2))
        if not counts[row]:
            return False
        distance = excess(beyond[row, side], window.scale.share)
        _, all_counts = window.sums()
        n = -log_chance(np.ones((1, 1)), all_counts[[row]], self.times[[row]], self._edges.counts[[row]])
        return bool(distance < 0.5 * min(1.0, math.sqrt(-limit / max(float(n[0, 0]), 1e-9))))

    def _goes_on(self, window: _Window, beyond: FloatArray, row: int, side: int) -> bool:
        """Whether the newest minutes are as the window says, so that nobody is told of what is long over."""
        newest, counts = self._windows[0].sums()
        bound, room = _tells_most(beyond[row, side], window.scale.share)
        return not counts[row] or bool(newest[row, side, bound] > 0.5 * (room + beyond[row, side, bound]))

    def _moved(self, window: _Window, row: int, side: int) -> MovedSince:
        """What is to be told: the beginning is where the excess of all later parts is largest (CUSUM)."""
        name = self._edges.names[row]
        beyond, _ = window.sums()
        bound, room = _tells_most(beyond[row, side], window.scale.share)
        middle = 0.5 * (room + beyond[row, side, bound])
        parts = list(window.parts)
        gains = [float(part[1][row, side, bound] - middle * part[3][row]) for part in parts]
        later = np.cumsum(gains[::-1])[::-1]
        first = int(later.argmax())
        counts = sum(float(part[3][row]) for part in parts[first:])
        share = sum(float(part[1][row, side, bound]) for part in parts[first:]) / max(counts, 1.0)
        now = sum(float(part[2][row]) for part in parts[first:]) / max(counts, 1.0)
        usual = self._reference.usual(name)
        return MovedSince(name, SIDES[side], share, now, usual, parts[first][0], BEAT * window.scale.beats)


def _tells_most(beyond: FloatArray, share: float) -> tuple[int, float]:
    """The bound that has most beyond it, and what there is room for there."""
    room = np.minimum(1.0, np.array(SHARES) / share)
    bound = int((beyond - room).argmax())
    return bound, float(room[bound])
