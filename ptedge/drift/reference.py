"""What measures of frames were like at the place that a model was made for, in a few kilobytes.

A checkpoint and a bundle carry it (``reference``). Kept of each measure are quantiles of both ends, as the tests of
``ptedge.drift.monitor`` ask how much of a stream lies beyond them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ptedge.config import require, require_one_of
from ptedge.detections import Detections
from ptedge.drift.dependence import FIRST_TIME, autocorrelation_times
from ptedge.drift.measures import FloatArray, measure_frame, measure_names, split_name, weigh
from ptedge.errors import InputError

# shares of the reference beyond the quantiles that are kept, at either end
SHARES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.7)
FEWEST = 20  # frames with a value, below which nothing is kept of a measure
MOST_CLASSES = 20  # kept, the most frequent ones
MOST_FRAMES = 300  # looked at unless asked otherwise: a few seconds of work, and quantiles of 1 % mean something
ORIGINS = ("target", "val", "train", "given")
# least spread of a measure: a change of a fraction of it is no matter, however steady the reference was
LEAST_SPREAD = {
    "brightness": 20.0,
    "contrast": 10.0,
    "sharpness": 0.3,
    "saturation": 10.0,
    "warmth": 10.0,
    "light": 0.3,
    "detail": 0.4,
    "boxes": 3.0,
    "score": 0.2,
    "size": 0.05,
    "sigma": 0.3,
    "entropy": 0.1,
}


@dataclass(frozen=True)
class Reference:
    """The distribution of every measure over frames of one place.

    Attributes:
        frames: looked at.
        input_size: (height, width) in pixels of the network's input when they were.
        low: name -> a value for each of :data:`SHARES`, below which lies at most that share.
        high: name -> the same, above.
        spread: name -> middle 80 % of the values, at least :data:`LEAST_SPREAD`.
        counts: name -> independent frames: those that had a value, over their autocorrelation time.
        origin: which frames: of the ``target``, of the validation set (``val``), those trained on (``train``), or
            ``given`` by hand.
    """

    frames: int
    input_size: tuple[int, int]
    low: dict[str, tuple[float, ...]]
    high: dict[str, tuple[float, ...]]
    spread: dict[str, float]
    counts: dict[str, int]
    origin: str = "given"

    def __post_init__(self) -> None:
        require("reference: frames", self.frames, 1)
        require_one_of("reference: origin", self.origin, ORIGINS)
        names = set(self.low)
        if not names or any(set(part) != names for part in (self.high, self.spread, self.counts)):
            raise ValueError("reference: low, high, spread and counts must be of the same measures, at least one")
        for name in names:
            if split_name(name)[0] not in LEAST_SPREAD:
                raise ValueError(f"reference: {name!r} is no measure of this version")
            ends = (self.low[name], self.high[name])
            if any(len(end) != len(SHARES) or not all(map(math.isfinite, end)) for end in ends):
                raise ValueError(f"reference: {name} must have {len(SHARES)} finite values at either end")
            require(f"reference: spread of {name}", self.spread[name], 0, open_low=True)
            require(f"reference: count of {name}", self.counts[name], 1)

    @property
    def names(self) -> tuple[str, ...]:
        """Of the measures, in one order."""
        return tuple(self.low)

    def describe(self) -> str:
        """A few words on where it comes from."""
        return f"{self.frames} frames ({self.origin})"

    def without(self, *kinds: str) -> Reference | None:
        """The same without some kinds of measures, as ``sigma`` when a calibration has changed it; ``None`` for none.

        Args:
            kinds: first parts of names.
        """
        kept = [name for name in self.names if split_name(name)[0] not in kinds]
        if not kept:
            return None
        return replace(
            self,
            low={name: self.low[name] for name in kept},
            high={name: self.high[name] for name in kept},
            spread={name: self.spread[name] for name in kept},
            counts={name: self.counts[name] for name in kept},
        )

    def usual(self, name: str) -> tuple[float, float]:
        """The middle 80 % of a measure: lower and upper end."""
        index = SHARES.index(0.1)
        return self.low[name][index], self.high[name][index]


def summarise(frames: Sequence[Mapping[str, FloatArray]], input_size: tuple[int, int], origin: str) -> Reference:
    """The reference that measured frames make.

    Args:
        frames: of :func:`ptedge.drift.measures.measure_frame`; in the order of their time where they have one, as
            neighbours say less than two frames.
        input_size: that they were measured at.
        origin: one of :data:`ORIGINS`.

    Raises:
        InputError: fewer than :data:`FEWEST` frames.
    """
    if len(frames) < FEWEST:
        raise InputError(f"{len(frames)} frames are too few to say what is usual; give at least {FEWEST}")
    low, high, spread, counts = {}, {}, {}, {}
    for name in _kept(frames):
        values, weights = weigh(frames, name)
        count = round(float(weights.sum()))
        if count < FEWEST:
            continue
        low[name] = tuple(_rounded(value) for value in lower_ends(values, weights))
        high[name] = tuple(_rounded(-value) for value in lower_ends(-values[::-1], weights[::-1]))
        index = SHARES.index(0.1)
        spread[name] = _rounded(max(high[name][index] - low[name][index], LEAST_SPREAD[split_name(name)[0]]))
        counts[name] = max(1, round(count / max(1.0, _autocorrelation_time(frames, name))))
    return Reference(len(frames), input_size, low, high, spread, counts, origin)


def lower_ends(values: FloatArray, weights: FloatArray) -> list[float]:
    """For each of :data:`SHARES` the largest value that at most this share of the weight lies below.

    Args:
        values: [N] ascending, N >= 1.
        weights: [N], above 0.
    """
    below = np.concatenate([[0.0], np.cumsum(weights)[:-1]]) / weights.sum()
    # of equal values, only what is before the first of them lies below
    below = below[np.searchsorted(values, values, side="left")]
    # a hair more, so that rounding of the sum does not move an end
    places = np.searchsorted(below, np.array(SHARES) + 1e-9, side="right") - 1
    return [float(value) for value in values[places]]


def look_at(
    images: Iterable[NDArray[np.uint8]],
    detect: Callable[[NDArray[np.uint8]], Detections],
    input_size: tuple[int, int],
    classes: int,
    origin: str,
) -> Reference:
    """The reference of frames as a model sees them.

    Args:
        images: each [H, W, 3] uint8 RGB.
        detect: the model.
        input_size: (height, width) in pixels of its input.
        classes: how many it has.
        origin: one of :data:`ORIGINS`.

    Raises:
        InputError: too few images.
    """
    return summarise([measure_frame(image, detect(image), input_size, classes) for image in images], input_size, origin)


def _kept(frames: Sequence[Mapping[str, FloatArray]]) -> list[str]:
    """Names of measures: of pictures, and of the classes that are found most often."""
    labels = sorted({split_name(name)[1] or 0 for name in frames[0] if name.startswith("boxes:")})
    found = {label: sum(bool(frame[f"boxes:{label}"][0]) for frame in frames) for label in labels}
    chosen = set(sorted(labels, key=lambda label: -found[label])[:MOST_CLASSES])
    chosen = {label for label in chosen if found[label] >= FEWEST} or set(labels[:1])
    of_pictures = measure_names(0)
    return [name for name in measure_names(len(labels)) if name in of_pictures or split_name(name)[1] in chosen]


def _autocorrelation_time(frames: Sequence[Mapping[str, FloatArray]], name: str) -> float:
    means = [frame[name].mean() if len(frame[name]) else np.nan for frame in frames]
    time = float(autocorrelation_times(np.array(means)[:, None])[0])
    return time if math.isfinite(time) else FIRST_TIME


def _rounded(value: float) -> float:
    """Four digits: quantiles of some hundred frames have no more."""
    return float(f"{value:.4g}")
