"""Detections of consecutive frames as tracks of objects, by overlap with where each was going."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ptedge.boxes import box_iou
from ptedge.detections import Detections

FloatArray = NDArray[np.float32]

_PACE_HITS = 5  # last detections that say how fast a box moves; of fewer the noise of its sides would say it


@dataclass(frozen=True)
class Track:
    """One object over time.

    Attributes:
        label: class.
        frames: [T] positions in the sequence, rising; not every frame between must have a detection.
        rows: [T] row of the detection in each of them.
    """

    label: int
    frames: NDArray[np.int64]
    rows: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.frames)


@dataclass
class _Open:
    """A track that may go on."""

    label: int
    frames: list[int] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    boxes: list[FloatArray] = field(default_factory=list)

    def add(self, frame: int, row: int, box: FloatArray) -> None:
        self.frames.append(frame)
        self.rows.append(row)
        self.boxes.append(box)

    def expect(self, frame: int) -> FloatArray:
        """Where its box would be if its sides went on as over the last detections."""
        start = max(0, len(self.boxes) - _PACE_HITS)
        passed = max(1, self.frames[-1] - self.frames[start])
        pace = (self.boxes[-1] - self.boxes[start]) / np.float32(passed)
        expected: FloatArray = self.boxes[-1] + pace * np.float32(frame - self.frames[-1])
        return expected


def link_detections(
    detections: Sequence[Detections], *, least_score: float, least_iou: float = 0.5, most_missed: int = 0
) -> list[Track]:
    """Tracks of a sequence: in each frame the pair of track and detection that overlaps most goes first.

    A detection belongs to one track at most. One that no track expected begins a new track.

    Args:
        detections: one a frame, in order, of one size of picture.
        least_score: detections below take no part.
        least_iou: least overlap, of one class, with the box expected from the last few.
        most_missed: frames in a row without a detection over which a track is kept.

    Returns:
        In the order of their first frames; tracks of one detection are among them.

    Reference: Bewley et al., "Simple online and realtime tracking", 2016; here pairs are taken greedily and the pace of
        a box is that of its last detections, where it has a Kalman filter and the Hungarian method.
    """
    tracks: list[_Open] = []
    for frame, found in enumerate(detections):
        rows = np.flatnonzero(found.scores >= least_score)
        alive = [track for track in tracks if frame - track.frames[-1] <= most_missed + 1]
        taken = _pairs(alive, found, rows, frame, least_iou)
        for row in rows.tolist():
            track = taken.get(row)
            if track is None:
                track = _Open(int(found.labels[row]))
                tracks.append(track)
            track.add(frame, row, found.boxes[row])
    return [Track(one.label, np.array(one.frames, np.int64), np.array(one.rows, np.int64)) for one in tracks]


def _pairs(
    tracks: Sequence[_Open], found: Detections, rows: NDArray[np.int64], frame: int, least_iou: float
) -> dict[int, _Open]:
    """Track of each detection that has one, by its row."""
    if not tracks or not len(rows):
        return {}
    expected = np.stack([track.expect(frame) for track in tracks]).astype(np.float32)
    same = np.array([track.label for track in tracks])[:, None] == found.labels[rows][None]
    overlap = np.where(same, box_iou(expected, found.boxes[rows]), np.float32(0))
    taken: dict[int, _Open] = {}
    while overlap.max() >= least_iou:
        i, j = np.unravel_index(int(overlap.argmax()), overlap.shape)
        taken[int(rows[j])] = tracks[int(i)]
        overlap[i], overlap[:, j] = -1.0, -1.0
    return taken
