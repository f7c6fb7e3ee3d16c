"""Which frames of a source are given out, when not all are, and how they are numbered when it begins again."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Frame:
    """One frame.

    Attributes:
        image: [H, W, 3] uint8 RGB.
        index: position in the source, from 0, before ``start``, ``stride``, ``rate``, drops or unreadable files thin it
            out; when the source begins again it counts on.
        time: seconds. Of files as the source tells them (container timestamp, or what the field folder recorded);
            ``None`` where it does not, unless ``rate`` sets them. Of live sources since the first frame, on a clock
            that never jumps, also over reconnections.
        source: what the user named, without user name and password.
        file: image file, bytes of its name that are no UTF-8 written as ``\xe9``; ``None`` for video and live sources.
        arrived: ``time.monotonic()`` when a live source gave it; ``None`` for files.
        wall: Unix seconds when a live source gave it; ``None`` for files.
    """

    image: NDArray[np.uint8]
    index: int
    time: float | None
    source: str
    file: str | None
    arrived: float | None = None
    wall: float | None = None


class Thinning:
    """Leaves out the first frames, takes every so-many-th, and keeps to a rate.

    The rate divides time into intervals and takes the first frame of each, so that a camera of 30 frames a second gives
    exactly 10 where 10 are wanted, whatever the jitter of its frames.
    """

    def __init__(self, start: int, stride: int, rate: float | None) -> None:
        """Begin with the first frame.

        Args:
            start: frames passed over.
            stride: every so-many-th from there.
            rate: frames a second at most; ``None`` for all.
        """
        self._start, self._stride, self._rate = start, stride, rate
        self._interval: int | None = None

    def wants(self, number: int, seconds: float) -> bool:
        """Whether to take a frame.

        Args:
            number: from 0.
            seconds: its time.
        """
        if number < self._start or (number - self._start) % self._stride:
            return False
        if self._rate is None:
            return True
        # a frame a quarter early counts for the coming interval: a source of just this rate has jitter, too
        interval = math.floor(seconds * self._rate + 0.25)
        if interval == self._interval:
            return False
        self._interval = interval
        return True


def join_rounds(rounds: Iterable[Iterable[Frame]], gap: float) -> Iterator[Frame]:
    """Rounds of a source one after the other, numbers and times going on; a round without any frame is the last.

    Args:
        rounds: each from the beginning of the source.
        gap: seconds between the last frame of a round and the first of the next, where a round has only one frame;
            otherwise it is that between the last two.
    """
    base, ends = 0, None
    for frames in rounds:
        last: Frame | None = None
        offset = 0.0
        for frame in frames:
            if last is None and ends is not None and frame.time is not None:
                offset = ends - frame.time
            moved = replace(frame, index=base + frame.index, time=None if frame.time is None else frame.time + offset)
            if last is not None and last.time is not None and moved.time is not None:
                gap = moved.time - last.time
            last = moved
            yield moved
        if last is None:
            return
        base, ends = last.index + 1, None if last.time is None else last.time + gap
