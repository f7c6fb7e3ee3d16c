"""A frame with the one before and the one after it: what strategies look at. Three frames a source are held, no more.

A frame is judged when the next one is there, or when its source has ended.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ptedge.detections import Detections

from ..sinks.files import Result
from .small import small_grey

MOST_APART = 2.0  # seconds between two frames that still are neighbours
LEAST = 0.1  # score below which a candidate says nothing
SAME = 0.3  # IoU of one thing in consecutive frames: it may have moved


@dataclass(eq=False)
class Look:
    """A frame and what was found in it.

    Attributes:
        result: as sinks get it.
        candidates: all that the graph gives, down to its own least score, outside masks.
        objects: those of them that count as objects, at the policy's threshold and above.
        written: it is in the folder already, as itself or as a neighbour.
    """

    result: Result
    candidates: Detections
    objects: Detections
    written: bool = False

    @cached_property
    def small(self) -> NDArray[np.uint8]:
        """The frame in 8 x 9 grey pixels."""
        return small_grey(self.result.frame.image)

    @cached_property
    def light(self) -> tuple[float, float]:
        """Mean and standard deviation of every eighth pixel of every eighth row, in shares of white."""
        some = self.result.frame.image[::8, ::8]
        return float(some.mean()) / 255, float(some.std()) / 255


@dataclass(frozen=True, eq=False)
class Window:
    """A frame that is judged, between its neighbours.

    Attributes:
        now: it.
        before: the frame before it; ``None`` where there is none of that size within two seconds.
        after: the same, after it.
        threshold: score from which a candidate counts as an object.
        num_classes: K, background not counted.
    """

    now: Look
    before: Look | None = None
    after: Look | None = None
    threshold: float = 0.3
    num_classes: int = 1

    @property
    def neighbours(self) -> list[Look]:
        """Those that are there, in order."""
        return [look for look in (self.before, self.after) if look is not None]


@dataclass
class _Held:
    """The last two frames of a source."""

    before: Look | None = None
    now: Look | None = None


class Windows:
    """Frames in, windows out, one frame later."""

    def __init__(self, threshold: float, num_classes: int) -> None:
        """Begin without any frame.

        Args:
            threshold: as :class:`Window`.
            num_classes: as :class:`Window`.
        """
        self._held: dict[str, _Held] = {}
        self._threshold, self._num_classes = threshold, num_classes

    def add(self, look: Look) -> Iterator[Window]:
        """Take a frame; the window of the one before it in its source comes out, if there was one."""
        source = look.result.frame.source
        held = self._held[source] = self._held.pop(source, _Held())  # last, as it has the newest frame
        if held.now is not None:
            after = look if are_neighbours(held.now, look) else None
            yield Window(held.now, held.before, after, self._threshold, self._num_classes)
            held.before = held.now if after is not None else None
        held.now = look

    def rest(self) -> Iterator[Window]:
        """The windows of the last frames, in the order in which those came."""
        for held in self._held.values():
            if held.now is not None:
                yield Window(held.now, held.before, None, self._threshold, self._num_classes)
        self._held.clear()


def are_neighbours(first: Look, second: Look) -> bool:
    """Whether a frame follows another closely enough to show the same things: later, of one size, within 2 s."""
    one, two = first.result.frame, second.result.frame
    if one.image.shape != two.image.shape or two.index <= one.index:
        return False
    return one.time is None or two.time is None or 0 <= two.time - one.time <= MOST_APART


def paired(overlap: NDArray[np.float32], least: float) -> list[tuple[int, int]]:
    """Rows and columns that belong together, each in one pair at most; those that overlap most come first.

    Args:
        overlap: [N, M], not changed.
        least: overlap that a pair must have.
    """
    left, pairs = overlap.copy(), list[tuple[int, int]]()
    while left.size and left.max() >= least:
        i, j = (int(v) for v in np.unravel_index(int(left.argmax()), left.shape))
        pairs.append((i, j))
        left[i], left[:, j] = -1.0, -1.0
    return pairs
