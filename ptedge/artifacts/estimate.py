"""Estimates without labels, as they are kept: the regressions of a model, and what they said of a place.

A checkpoint keeps both beside its weights, a bundle the estimate in its manifest. How they are made stands in
``ptedge.scores.label_free_fit``.

Reference: method.md section 8, "Judging without labels".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ptedge.calibration import Sides
from ptedge.config import require

FEWEST_PAIRS = 5  # of frames without labels; a quantile of fewer says nothing
AP_SIGNS = ("score", "consistency")  # more of them fitted noise: nearly all say the same


@dataclass(frozen=True)
class Ridge:
    """``intercept + sum_i slopes_i x_i``, with x cut to the range that was seen.

    Attributes:
        intercept: value where all x are 0.
        slopes: one a regressor.
        low: lowest x seen, one a regressor.
        high: highest x seen.
        error: root mean squared error of points whose group was left out of the fit.
        points: how many the fit is of.
    """

    intercept: float
    slopes: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    error: float
    points: int

    def __post_init__(self) -> None:
        if not len(self.slopes) == len(self.low) == len(self.high):
            raise ValueError(f"slopes, low and high must be of one length, got {self.slopes}, {self.low}, {self.high}")
        if not all(map(math.isfinite, (self.intercept, *self.slopes, *self.low, *self.high, self.error))):
            raise ValueError("a regression holds a number that is not finite")

    def predict(self, x: Sequence[float]) -> float:
        """The value at x.

        Args:
            x: one a regressor; beyond the range that was seen its edge is taken, as a straight line holds no farther.
        """
        cut = np.clip(np.asarray(x, np.float64), self.low, self.high)
        return self.intercept + float(cut @ np.asarray(self.slopes))

    def outside(self, x: Sequence[float]) -> bool:
        """Whether any x lies beyond the range that was seen."""
        return bool((np.asarray(x) < self.low).any() or (np.asarray(x) > self.high).any())


@dataclass(frozen=True)
class LabelFreeFit:
    """The regressions, learned at the source.

    Attributes:
        x1, y1, x2, y2: log of the scale on log of the disagreement of the side.
        ap50: AP50 on :data:`AP_SIGNS`.
        ap75: AP75 on the same.
        sets: corrupted sets.
        images: pictures in them, each corruption of one counted.
        sigma_rule: of the model; the scale is of sigma by this rule and no other.
    """

    x1: Ridge
    y1: Ridge
    x2: Ridge
    y2: Ridge
    ap50: Ridge
    ap75: Ridge
    sets: int
    images: int
    sigma_rule: str = "own"

    @property
    def sides(self) -> tuple[Ridge, Ridge, Ridge, Ridge]:
        """Of x1, y1, x2, y2."""
        return self.x1, self.y1, self.x2, self.y2


@dataclass(frozen=True)
class LabelFreeEstimate:
    """What is thought of a model on frames without labels.

    Attributes:
        frames: looked at.
        pairs: objects that two views of a frame agreed on.
        ap50: estimate, in [0, 1].
        ap50_error: root mean squared error of such estimates on kinds of corruption left out of the fit.
        ap75: as ``ap50``.
        ap75_error: as ``ap50_error``.
        scale_error: of the logarithm of the scale of each side, measured as ``ap50_error``.
        scale: what sigma of x1, y1, x2, y2 would be multiplied by; ``None`` with fewer than :data:`FEWEST_PAIRS`.
        outside: signs beyond what any corrupted set showed; the edge was taken for them, so trust the rest less.
    """

    frames: int
    pairs: int
    ap50: float
    ap50_error: float
    ap75: float
    ap75_error: float
    scale_error: Sides
    scale: Sides | None = None
    outside: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        require("estimate: frames", self.frames, 0)
        require("estimate: pairs", self.pairs, 0)
        for name in ("ap50", "ap75"):
            require(f"estimate: {name}", getattr(self, name), 0, 1)
            require(f"estimate: {name}_error", getattr(self, f"{name}_error"), 0)

    def describe(self) -> str:
        """One line for the terminal."""
        text = (
            f"without labels: AP50 about {self.ap50:.2f} (error {self.ap50_error:.2f} on corrupted source images), "
            f"AP75 about {self.ap75:.2f} ({self.ap75_error:.2f}), from {self.frames} frames"
        )
        return text + (f"; beyond what was seen: {', '.join(self.outside)}" if self.outside else "")
