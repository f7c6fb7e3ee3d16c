"""Calibration of box sides: what boxes and sigma are corrected by, where that comes from, and how wide intervals are.

A checkpoint keeps it beside its weights, a bundle in its manifest and as two constants of its graph. It is applied to
detections alone, after non-maximum suppression, in this order: each side moves by ``-offset`` of the box's size, the
box is cut at the input's edge, sigma is multiplied by ``scale``. Training never sees it.

Reference: method.md, "Calibrated sides"; docs/calibrate.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from ptedge.config import require, require_one_of

Sides = tuple[float, float, float, float]  # of x1, y1, x2, y2

NO_OFFSET: Sides = (0.0, 0.0, 0.0, 0.0)
NO_SCALE: Sides = (1.0, 1.0, 1.0, 1.0)
MOST_OFFSET = 0.45  # of the box; below one half no box can be turned inside out or leave the picture
HOW = ("labels", "label_free")


@dataclass(frozen=True)
class CalibrationOrigin:
    """What a calibration was measured on.

    Attributes:
        how: ``labels`` (labelled boxes that the model found) or ``label_free`` (frames without labels).
        boxes: boxes it was measured on.
        images: images they came from.
        data: sha256 of these images and their labels.
        model: sha256 of the file that was calibrated.
    """

    how: str = "labels"
    boxes: int = 0
    images: int = 0
    data: str = ""
    model: str = ""

    def __post_init__(self) -> None:
        require_one_of("calibration: how", self.how, HOW)
        require("calibration: boxes", self.boxes, 0)
        require("calibration: images", self.images, 0)


@dataclass(frozen=True)
class SideCalibration:
    """Correction of the four sides of every box, the same for all classes.

    Attributes:
        offset: how far sides lie off, as a share of the detected box: its width for x1 and x2, its height for y1 and
            y2. Above 0 they are too far right or down; what is applied is the opposite.
        scale: what sigma is multiplied by, above 0.
        intervals: coverage ("0.9") -> factor of each side: that share of labelled sides lies within side +- factor *
            sigma, sigma after ``scale``. Empty where nothing was measured.
        origin: what it was measured on.
    """

    offset: Sides = NO_OFFSET
    scale: Sides = NO_SCALE
    intervals: dict[str, Sides] = field(default_factory=dict)
    origin: CalibrationOrigin = field(default_factory=CalibrationOrigin)

    def __post_init__(self) -> None:
        check_offset(self.offset)
        check_scale(self.scale)
        check_intervals(self.intervals)


def check_offset(offset: Sides) -> None:
    """Refuse an offset that no calibration gives.

    Raises:
        ValueError: not finite, or larger than :data:`MOST_OFFSET`.
    """
    for value in offset:
        require("side_offset", value, -MOST_OFFSET, MOST_OFFSET)


def check_scale(scale: Sides) -> None:
    """Refuse a factor of sigma that is no positive finite number.

    Raises:
        ValueError: names it.
    """
    _require_finite("sigma_scale", scale, positive=True)


def check_intervals(intervals: dict[str, Sides]) -> None:
    """Refuse intervals whose coverage is no share, or whose factors are negative or not finite.

    Raises:
        ValueError: names what is wrong.
    """
    for coverage, factors in intervals.items():
        try:
            share = float(coverage)
        except ValueError:
            raise ValueError(f"intervals has {coverage[:40]!r}, which is no coverage, for example 0.9") from None
        if not 0 < share < 1:
            raise ValueError(f"intervals has a coverage of {coverage[:40]}; it must be above 0 and below 1")
        _require_finite(f"intervals of {coverage[:40]}", factors)


def _require_finite(name: str, values: Sides, *, positive: bool = False) -> None:
    for value in values:
        require(name, value, 0, open_low=positive)
        if not math.isfinite(value):
            raise ValueError(f"{name} is {value!r}; it must be a finite number")


__all__ = [
    "HOW",
    "MOST_OFFSET",
    "NO_OFFSET",
    "NO_SCALE",
    "CalibrationOrigin",
    "SideCalibration",
    "Sides",
    "check_intervals",
    "check_offset",
    "check_scale",
]
