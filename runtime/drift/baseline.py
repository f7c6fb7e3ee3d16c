"""How far the detections of now differ from those at the beginning of the run. A hint, not a test.

Three numbers a frame are averaged: detections, their mean score, their mean entropy. The average over the first two
minutes is kept; a running average is shown beside it. A change may come from the model meeting something new, from the
hour of the day, or from traffic: the numbers do not tell which.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ptedge.detections import Detections

BASELINE_SECONDS = 120.0
BASELINE_FRAMES = 50  # a slow or thin source: the baseline lasts until there are so many
MEASURES = ("boxes", "score", "entropy")


class Drift:
    """Running means against the means of the first two minutes.

    Attributes:
        ready: the baseline is complete.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._start: float | None = None
        self._last = 0.0
        self._sums = dict.fromkeys(MEASURES, 0.0)
        self._counts = dict.fromkeys(MEASURES, 0)
        self._now: dict[str, float] = {}
        self.ready = False

    def add(self, found: Detections) -> None:
        """Take in the detections of a frame."""
        now = self._clock()
        if self._start is None:
            self._start = self._last = now
        values = {"boxes": float(len(found))}
        if len(found):  # a frame without detections has no score
            values |= {"score": float(found.scores.mean()), "entropy": float(found.entropy.mean())}
        if not self.ready:
            self.ready = now - self._start >= BASELINE_SECONDS and self._counts["boxes"] >= BASELINE_FRAMES
        if not self.ready:
            for name, value in values.items():
                self._sums[name] += value
                self._counts[name] += 1
            self._last = now
            return
        # weight of the old mean falls to 1/e in BASELINE_SECONDS, however many frames a second there are
        keep = math.exp(-max(now - self._last, 1e-6) / BASELINE_SECONDS)
        self._last = now
        for name, value in values.items():
            before = self._now.get(name, self._baseline(name))
            self._now[name] = value if before is None else keep * before + (1 - keep) * value

    def to_json(self) -> dict[str, Any]:
        """``baseline_seconds``, ``ready``, and for each measure its ``first``, ``now`` and relative ``change``.

        ``now`` and ``change`` are ``None`` until the baseline is complete.
        """
        about: dict[str, Any] = {"baseline_seconds": BASELINE_SECONDS, "ready": self.ready}
        for name in MEASURES:
            first = self._baseline(name)
            now = self._now.get(name) if self.ready else None
            change = now / first - 1 if now is not None and first else None
            about[name] = {"first": _rounded(first), "now": _rounded(now), "change": _rounded(change)}
        return about

    def _baseline(self, name: str) -> float | None:
        return self._sums[name] / self._counts[name] if self._counts[name] else None


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
