"""A set of frames against a reference, at once: a folder, the collected frames of a day."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ptedge.drift.dependence import FIRST_TIME, autocorrelation_times
from ptedge.drift.measures import FloatArray
from ptedge.drift.reference import Reference
from ptedge.drift.windows import SIDES, Edges, Moved, excess, log_chance

FALSE_ALARMS = 0.001  # of sets that are like the reference, at most
SHARE = 0.5  # of the reference that a set may be like: a day is not all days
FEWEST = 10  # frames, below which nothing is said


@dataclass(frozen=True)
class Comparison:
    """What a set of frames says.

    Attributes:
        frames: looked at.
        moved: what is not as in the reference, largest statistic first.
    """

    frames: int
    moved: tuple[Moved, ...]

    @property
    def enough(self) -> bool:
        """Whether there are frames enough to say anything."""
        return self.frames >= FEWEST


def compare_frames(frames: Sequence[Mapping[str, FloatArray]], reference: Reference) -> Comparison:
    """Test whether a set of frames is like a reference, at :data:`FALSE_ALARMS`, divided by the number of tests.

    Args:
        frames: of :func:`ptedge.drift.measures.measure_frame`, in the order of their time.
        reference: to compare with.
    """
    if len(frames) < FEWEST:
        return Comparison(len(frames), ())
    edges = Edges(reference)
    looks = [edges.look(frame) for frame in frames]
    means = np.array([mean for _, mean in looks])  # [T, M]
    counts = np.isfinite(means).sum(axis=0).astype(np.float64)
    beyond = np.array([share for share, _ in looks])  # [T, M, 2, K]
    beyond = np.nansum(beyond, axis=0) / np.maximum(counts, 1.0)[:, None, None]
    times = autocorrelation_times(means)
    distance = excess(beyond, SHARE)
    chance = log_chance(distance, counts, np.where(np.isfinite(times), times, FIRST_TIME), edges.counts)
    limit = math.log(FALSE_ALARMS / chance.size)
    rows = sorted(np.argwhere(chance < limit).tolist(), key=lambda place: -distance[tuple(place)])
    moved = [
        Moved(
            name=(name := edges.names[row]),
            side=SIDES[side],
            share=float(beyond[row, side].max()),
            now=float(np.nansum(means[:, row]) / counts[row]),
            usual=reference.usual(name),
        )
        for row, side in rows
    ]
    return Comparison(len(frames), tuple(moved))
