"""Limits on the label-free monitors, and what happens when one is crossed. No models here: numbers in, verdicts out."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from ptedge.config import require, require_one_of

GOOD = 0.75  # a state is worth going back to when no limit is used up further than this, or it would soon trip again
HISTORY = 64  # gradient norms that a new one is compared with
ENOUGH = 16  # of them, before it is


@dataclass(frozen=True)
class GuardConfig:
    """Limits that an adaptation must keep, each against the model it started from.

    Attributes:
        enabled: watch the limits.
        action: on a crossed limit, ``rollback`` to the last good state and go on at a lower learning rate, or ``stop``
            there.
        patience: readings in a row over a limit (for the gradient: steps in a row) before it counts.
        max_rollbacks: after so many the run stops at the last good state.
        lr_factor: factor on all learning rates at a rollback.
        max_boxes_ratio: pseudo boxes an image, against the start.
        min_objects_ratio: sum of scores an image, against the start.
        max_objects_ratio: sum of scores an image, against the start.
        min_source_coverage: share of what the start found that the teacher finds still.
        min_side_ratio: widths, or heights, of the teacher's boxes over the start's: boxes that tighten step by step.
        max_side_ratio: the same, for boxes that grow.
        min_student_agreement: agreement of teacher and student.
        min_consistency_ratio: agreement of the teacher's answers to weak and strong views, against the start.
        min_entropy_ratio: class entropy, against the start: over-confidence.
        min_sigma_ratio: relative standard deviation, against the start: over-confidence of boxes.
        max_histogram_distance: total variation of the class histogram from the start's.
        max_gradient_ratio: gradient norm, against the median of the steps before.
    """

    enabled: bool = True
    action: str = "rollback"
    patience: int = 1
    max_rollbacks: int = 3
    lr_factor: float = 0.2
    max_boxes_ratio: float = 4.0
    min_objects_ratio: float = 0.25
    max_objects_ratio: float = 4.0
    min_source_coverage: float = 0.2
    min_side_ratio: float = 0.9
    max_side_ratio: float = 1.5
    min_student_agreement: float = 0.1
    min_consistency_ratio: float = 0.8
    min_entropy_ratio: float = 0.25
    min_sigma_ratio: float = 0.25
    max_histogram_distance: float = 0.5
    max_gradient_ratio: float = 1000.0

    def __post_init__(self) -> None:
        require_one_of("guard.action", self.action, ("rollback", "stop"))
        require("guard.patience", self.patience, 1)
        require("guard.max_rollbacks", self.max_rollbacks, 0)
        require("guard.lr_factor", self.lr_factor, 0, 1, open_low=True)
        for name in ("max_boxes_ratio", "max_objects_ratio", "max_side_ratio", "max_gradient_ratio"):
            require(f"guard.{name}", getattr(self, name), 1, open_low=True)
        for name in ("source_coverage", "side_ratio", "student_agreement", "consistency_ratio", "objects_ratio"):
            require(f"guard.min_{name}", getattr(self, f"min_{name}"), 0, 0.99)
        for name in ("entropy_ratio", "sigma_ratio"):
            require(f"guard.min_{name}", getattr(self, f"min_{name}"), 0, 0.99)
        require("guard.max_histogram_distance", self.max_histogram_distance, 0, 1, open_low=True)


@dataclass(frozen=True)
class Reading:
    """One monitor against its limit.

    Attributes:
        name: of the limit in ``[guard]``.
        value: what was measured.
        limit: what is allowed.
    """

    name: str
    value: float
    limit: float

    @property
    def strain(self) -> float:
        """How much of the way from an unchanged model (0) to the limit (1) is used up; never negative."""
        healthy = 0.0 if self.name == "max_histogram_distance" else 1.0
        return max(0.0, (self.value - healthy) / (self.limit - healthy))


def readings(signals: Mapping[str, Any], start: Mapping[str, Any], config: GuardConfig) -> list[Reading]:
    """Every limit that can be judged.

    A ratio to something that the start does not have (no boxes, no variances) says nothing and is left out.

    Args:
        signals: of :meth:`~ptedge.training.watch.monitor_set.MonitorSet.read`.
        start: the same, of the first reading.
        config: limits.
    """
    sides = [side for side in (signals["width_ratio"], signals["height_ratio"]) if side is not None]
    values: dict[str, float | None] = {
        # one box is added to both, so that a start with next to none does not make the second box a flood
        "max_boxes_ratio": (signals["boxes"] + 1.0) / (start["boxes"] + 1.0),
        "min_objects_ratio": _ratio(signals["objects"], start["objects"]),
        "max_objects_ratio": (signals["objects"] + 1.0) / (start["objects"] + 1.0),
        "min_source_coverage": signals["source_coverage"],
        "min_side_ratio": min(sides, default=None),
        "max_side_ratio": max(sides, default=None),
        "min_student_agreement": signals["student_agreement"],
        "min_consistency_ratio": _ratio(signals["consistency"], start["consistency"]),
        "min_entropy_ratio": _ratio(signals["entropy"], start["entropy"]),
        "min_sigma_ratio": _ratio(signals["sigma"], start["sigma"]),
        "max_histogram_distance": signals["histogram_distance"],
    }
    return [Reading(name, value, getattr(config, name)) for name, value in values.items() if value is not None]


def worst(found: list[Reading]) -> Reading:
    """The reading nearest to its limit, or furthest beyond it."""
    return max(found, key=lambda reading: reading.strain)


@dataclass(frozen=True)
class Trip:
    """A limit that was crossed, and what followed.

    Attributes:
        step: steps done.
        name: of the limit in ``[guard]``, or ``finite``.
        value: what was measured; ``None`` when not finite.
        limit: what is allowed; ``None`` when not finite.
        action: ``rollback`` or ``stop``.
        back_to: step of the state that was put back.
        lr_factor: on the configured learning rates from here on.
        note: what was not finite.
    """

    step: int
    name: str
    value: float | None
    limit: float | None
    action: str
    back_to: int
    lr_factor: float
    note: str = ""

    @property
    def sentence(self) -> str:
        """For the screen."""
        if self.value is None or self.limit is None:
            what = self.note
        else:
            side = "below" if self.name.startswith("min") else "above"
            what = f"{self.name} is {self.value:.3g}, {side} its limit {self.limit:.3g}"
        where = "the start" if self.back_to == 0 else f"step {self.back_to}"
        done = f"guard at step {self.step}: {what}; back to the model of {where}"
        if self.action == "stop":
            return f"{done}, and stopped there"
        return f"{done}, learning rate from here x {self.lr_factor:g}"


@dataclass
class Guard:
    """Counts crossings and decides. Everything it remembers is plain values, for last.pt.

    Attributes:
        config: limits.
        good_step: step of the last good state.
        strikes: readings in a row over a limit.
        jolts: steps in a row with an exploding gradient.
        norms: the last gradient norms.
        rollbacks: so far.
        trips: so far.
    """

    config: GuardConfig
    good_step: int = 0
    strikes: int = 0
    jolts: int = 0
    norms: list[float] = field(default_factory=list)
    rollbacks: int = 0
    trips: list[Trip] = field(default_factory=list)

    @property
    def lr_factor(self) -> float:
        """On the configured learning rates."""
        return float(self.config.lr_factor**self.rollbacks)

    @property
    def stopped(self) -> bool:
        """Whether the run has come to its end."""
        return self.config.enabled and bool(self.trips) and self.trips[-1].action == "stop"

    def judge(self, step: int, found: list[Reading]) -> tuple[Trip | None, bool]:
        """Look at one set of readings.

        Returns:
            What follows, if anything, and whether the present state is a good one.
        """
        if not self.config.enabled or not found:
            return None, self.config.enabled
        reading = worst(found)
        if reading.strain <= 1.0:
            self.strikes = 0
            return None, reading.strain <= GOOD
        self.strikes += 1
        if self.strikes < self.config.patience:
            return None, False
        return self._trip(step, reading.name, reading.value, reading.limit), False

    def gradient(self, step: int, norm: float) -> Trip | None:
        """Look at the gradient norm of one step."""
        if not self.config.enabled or not math.isfinite(norm):  # fp16 leaves such a step out by itself
            return None
        usual = statistics.median(self.norms) if len(self.norms) >= ENOUGH else 0.0
        if usual > 0.0 and norm > self.config.max_gradient_ratio * usual:
            self.jolts += 1
            if self.jolts >= self.config.patience:
                return self._trip(step, "max_gradient_ratio", norm / usual, self.config.max_gradient_ratio)
            return None
        self.jolts = 0
        self.norms = [*self.norms, norm][-HISTORY:]
        return None

    def not_finite(self, step: int, note: str) -> Trip | None:
        """A loss or gradient that is not finite; nothing when guards are off."""
        return self._trip(step, "finite", None, None, note) if self.config.enabled else None

    def _trip(self, step: int, name: str, value: float | None, limit: float | None, note: str = "") -> Trip:
        over = self.config.action == "stop" or self.rollbacks >= self.config.max_rollbacks
        if not over:
            self.rollbacks += 1
        self.strikes, self.jolts, self.norms = 0, 0, []
        action = "stop" if over else "rollback"
        trip = Trip(step, name, value, limit, action, self.good_step, self.lr_factor, note)
        self.trips.append(trip)
        return trip

    def state(self) -> dict[str, Any]:
        """Plain values for last.pt."""
        return {
            "good_step": self.good_step,
            "strikes": self.strikes,
            "jolts": self.jolts,
            "norms": list(self.norms),
            "rollbacks": self.rollbacks,
            "trips": [asdict(trip) for trip in self.trips],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take back what :meth:`state` gave."""
        for name, value in state.items():
            setattr(self, name, [Trip(**trip) for trip in value] if name == "trips" else value)


def _ratio(value: float | None, start: float | None) -> float | None:
    if value is None or not start or not math.isfinite(start):
        return None
    return value / start
