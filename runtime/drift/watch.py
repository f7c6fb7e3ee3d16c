"""The sources of a run, each watched against the place that the model was made for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from ptedge.backends.bundle_predictor import BundlePredictor
from ptedge.detections import Detections
from ptedge.drift.measures import measure_frame
from ptedge.drift.monitor import BEAT, Alarm, Monitor, MovedSince
from ptedge.drift.reference import Reference
from ptedge.drift.words import advice, describe, to_json
from ptedge.frames.source import Frame

DAYS_KEPT = 14
ALARMS_SHOWN = 10  # of each source
NO_REFERENCE = (
    "the bundle does not say what frames looked like where its model was made; what follows is against the first two "
    "minutes of this run. Let it learn that: ptedge drift BUNDLE FRAMES --learn"
)


@dataclass
class _Source:
    """One source."""

    name: str
    live: bool
    monitor: Monitor | None = None
    last: float | None = None  # time of the last frame that was measured
    alarm: Alarm | None = None  # that was told


@dataclass
class _Day:
    """A day, UTC: frames measured, alarms begun, frames measured while one was on."""

    frames: int = 0
    alarms: int = 0
    frames_in_alarm: int = 0
    moved: dict[str, None] = field(default_factory=dict)  # in words, without numbers, in order


class DriftWatch:
    """Measures a frame a second of each source; told on stderr when an alarm begins or ends.

    What is measured is what the model found before ``--min-score``. Another model begins anew, as it is made for
    another place or sees it otherwise.
    """

    def __init__(
        self,
        sources: Sequence[tuple[str, bool]],
        seconds_between: float,
        tell: Callable[[str], None],
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Begin; nothing is watched before the first frame tells the model.

        Args:
            sources: name of each, and whether it is live.
            seconds_between: mean time between two false alarms of all sources together, at least.
            tell: takes a line for a person.
            clock: Unix seconds.
        """
        self._sources = [_Source(name, live) for name, live in sources]
        self._between, self._tell, self._clock = seconds_between, tell, clock
        self._reference: Reference | None = None
        self._predictor: BundlePredictor | None = None
        self._days: dict[str, _Day] = {}
        self._lock = threading.Lock()

    def take_model(self, predictor: BundlePredictor) -> None:
        """Frames come from this model now; nothing happens where it is the one of before."""
        if predictor is self._predictor:
            return
        with self._lock:
            self._predictor, self._reference = predictor, predictor.manifest.reference
            for source in self._sources:
                source.monitor = source.alarm = None
                if self._reference is not None:
                    source.monitor = Monitor(self._reference, self._between, len(self._sources))

    def add(self, number: int, frame: Frame, found: Detections) -> None:
        """Take in a frame of a source, if its last one was :data:`BEAT` ago.

        Args:
            number: of the source.
            frame: of it; one without a time counts as a second.
            found: everything that the model found.
        """
        source = self._sources[number]
        if source.monitor is None or self._predictor is None:
            return
        now = self._clock() if source.live else frame.time
        if now is None:
            now = source.last + BEAT if source.last is not None else 0.0
        if source.last is not None and 0 <= now - source.last < BEAT:
            return
        source.last = now
        measured = measure_frame(frame.image, found, self._predictor.input_size, len(self._class_names))
        with self._lock:
            before = source.monitor.total
            source.monitor.add(now, measured)
            self._count(source, source.monitor, source.monitor.total - before)
            lines = self._news(source, source.monitor)
        for line in lines:
            self._tell(line)

    def to_json(self) -> dict[str, Any]:
        """``reference`` in words, ``found``: an alarm is on, ``alarms``, ``sources`` and ``days`` (docs/drift.md)."""
        with self._lock:
            sources = [self._source_json(source) for source in self._sources]
            days = [
                {"day": day, "frames": row.frames, "alarms": row.alarms, "frames_in_alarm": row.frames_in_alarm}
                | {"moved": list(row.moved)}
                for day, row in self._days.items()
            ]
            known = self._reference
        return {
            "reference": known.describe() if known is not None else None,
            "note": NO_REFERENCE if known is None else "",
            "found": any(source["alarm"] is not None for source in sources),
            "alarms": sum(source["alarms"] for source in sources),
            "seconds_between_false_alarms": self._between,
            "sources": sources,
            "days": days,
        }

    @property
    def _class_names(self) -> tuple[str, ...]:
        return self._predictor.class_names if self._predictor is not None else ()

    def _count(self, source: _Source, monitor: Monitor, begun: int) -> None:
        day = self._days.setdefault(datetime.fromtimestamp(self._clock(), timezone.utc).date().isoformat(), _Day())
        day.frames += 1
        day.alarms += begun
        if monitor.alarm is not None:
            day.frames_in_alarm += 1
            day.moved |= dict.fromkeys(self._said(source, moved) for moved in monitor.alarm.moved.values())
        for old in list(self._days)[:-DAYS_KEPT]:
            del self._days[old]

    def _said(self, source: _Source, moved: MovedSince) -> str:
        words = describe(moved, self._class_names).partition(":")[0]
        return f"{source.name}: {words}" if len(self._sources) > 1 else words

    def _news(self, source: _Source, monitor: Monitor) -> list[str]:
        """What is to be told: an alarm that begins, or one that is over."""
        if monitor.alarm is source.alarm:
            return []
        source.alarm, over = monitor.alarm, source.alarm
        lines = []
        if over is not None:
            lines.append(f"drift of {source.name} is over")
        if monitor.alarm is not None:
            moved = list(monitor.alarm.moved.values())
            told = "; ".join(describe(one, self._class_names) for one in moved)
            lines += [f"drift of {source.name} since {self._when(source, monitor.alarm.since)}: {told}", advice(moved)]
        return lines

    def _when(self, source: _Source, seconds: float) -> str:
        """A time of a source's clock: of a live one in UTC, of a file from its beginning."""
        if source.live:
            return datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="seconds")
        return f"{seconds:.0f} s"

    def _source_json(self, source: _Source) -> dict[str, Any]:
        monitor = source.monitor
        alarms = list(monitor.alarms)[-ALARMS_SHOWN:] if monitor is not None else []
        shown = [self._alarm_json(source, alarm) for alarm in alarms]
        return {
            "name": source.name,
            "frames": monitor.beats if monitor is not None else 0,
            "alarm": shown[-1] if monitor is not None and monitor.alarm is not None else None,
            "alarms": monitor.total if monitor is not None else 0,
            "last": shown,
        }

    def _alarm_json(self, source: _Source, alarm: Alarm) -> dict[str, Any]:
        shown = list((alarm.moved if alarm.ended is None else alarm.told).values())
        return {
            "since": self._when(source, alarm.since),
            "began": self._when(source, alarm.began),
            "ended": self._when(source, alarm.ended) if alarm.ended is not None else None,
            "moved": [
                {**to_json(moved, self._class_names), "since": self._when(source, moved.since)} for moved in shown
            ],
            "advice": advice(shown),
        }
