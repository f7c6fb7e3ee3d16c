"""Limits on the label-free monitors, and how near to them a model is. No models here: numbers in, strain out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ptedge.config import require, require_one_of


@dataclass(frozen=True)
class Limit:
    """A limit of ``[guard]``: on which side it lies of an unchanged model.

    Attributes:
        name: of its setting.
        side: ``lower`` is crossed from above, ``upper`` from below.
        unchanged: what a model that is as at the start measures.
        most: highest value the setting of an upper one may have.
    """

    name: str
    side: Literal["lower", "upper"]
    unchanged: float = 1.0
    most: float = math.inf

    def check(self, value: float) -> None:
        """Refuse a setting that an unchanged model would not keep.

        Raises:
            ValueError: out of range.
        """
        if self.side == "upper":
            require(f"guard.{self.name}", value, self.unchanged, self.most, open_low=True)
        else:
            require(f"guard.{self.name}", value, 0, 0.99 * self.unchanged)


LIMITS = {
    limit.name: limit
    for limit in (
        Limit("max_boxes_ratio", "upper"),
        Limit("min_objects_ratio", "lower"),
        Limit("max_objects_ratio", "upper"),
        Limit("min_source_coverage", "lower"),
        Limit("min_side_ratio", "lower"),
        Limit("max_side_ratio", "upper"),
        Limit("min_student_agreement", "lower"),
        Limit("min_consistency_ratio", "lower"),
        Limit("min_entropy_ratio", "lower"),
        Limit("min_sigma_ratio", "lower"),
        Limit("max_histogram_distance", "upper", unchanged=0.0, most=1.0),
        Limit("max_gradient_ratio", "upper"),
    )
}


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
            The way to the sides that labelled frames tell counts for nothing.
        max_side_ratio: the same, for boxes that grow.
        min_student_agreement: agreement of teacher and student.
        min_consistency_ratio: agreement of the teacher's answers to weak and strong views, against the start; it is no
            loss where more is found again (:func:`found_again`), and that ratio counts if it is higher.
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
        for limit in LIMITS.values():
            limit.check(getattr(self, limit.name))


@dataclass(frozen=True)
class Measure:
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
        unchanged = LIMITS[self.name].unchanged
        return max(0.0, (self.value - unchanged) / (self.limit - unchanged))


def measures_of(signals: Mapping[str, Any], start: Mapping[str, Any], config: GuardConfig) -> list[Measure]:
    """Every limit that can be judged.

    A ratio to something that the start does not have (no boxes, no variances) says nothing and is left out.

    Args:
        signals: of :meth:`~ptedge.training.watch.monitor_set.MonitorSet.read`.
        start: the same, of the first reading.
        config: limits.
    """
    sides = [_beyond_labels(signals, side) for side in ("width", "height") if signals[f"{side}_ratio"] is not None]
    values: dict[str, float | None] = {
        # one box is added to both, so that a start with next to none does not make the second box a flood
        "max_boxes_ratio": (signals["boxes"] + 1.0) / (start["boxes"] + 1.0),
        "min_objects_ratio": _ratio(signals["objects"], start["objects"]),
        "max_objects_ratio": (signals["objects"] + 1.0) / (start["objects"] + 1.0),
        "min_source_coverage": signals["source_coverage"],
        "min_side_ratio": min(sides, default=None),
        "max_side_ratio": max(sides, default=None),
        "min_student_agreement": signals["student_agreement"],
        "min_consistency_ratio": _consistency_ratio(signals, start),
        "min_entropy_ratio": _ratio(signals["entropy"], start["entropy"]),
        "min_sigma_ratio": _ratio(signals["sigma"], start["sigma"]),
        "max_histogram_distance": signals["histogram_distance"],
    }
    return [Measure(name, value, getattr(config, name)) for name, value in values.items() if value is not None]


def found_again(signals: Mapping[str, Any]) -> float:
    """Objects an image that the teacher finds again when the picture is disturbed: ``objects`` times ``consistency``.

    The share alone misjudges a teacher that learns. One that sees a few easy objects, and those in every view, has a
    high share, which falls as soon as it finds more; what it finds again rises then. A flood raises it, which
    ``max_boxes_ratio`` and ``max_objects_ratio`` are for.

    Args:
        signals: of :meth:`~ptedge.training.watch.monitor_set.MonitorSet.read`.
    """
    return float(signals["objects"] * signals["consistency"])


def worst(measures: list[Measure]) -> Measure:
    """The one nearest to its limit, or furthest beyond it."""
    return max(measures, key=lambda measure: measure.strain)


def _beyond_labels(signals: Mapping[str, Any], side: str) -> float:
    """Ratio of a side to the start's, or to the labels' where it is beyond those: 1 anywhere between the two."""
    ratio, labelled = float(signals[f"{side}_ratio"]), float(signals.get(f"labelled_{side}_ratio", 1.0))
    return ratio / min(max(ratio, min(1.0, labelled)), max(1.0, labelled))


def _consistency_ratio(signals: Mapping[str, Any], start: Mapping[str, Any]) -> float | None:
    """Of the share that is found again or of how much that is, whichever is higher: a fall of both is needed."""
    share = _ratio(signals["consistency"], start["consistency"])
    amount = _ratio(found_again(signals), found_again(start))
    return share if share is None or amount is None else max(share, amount)


def _ratio(value: float | None, start: float | None) -> float | None:
    if value is None or not start or not math.isfinite(start):
        return None
    return value / start
