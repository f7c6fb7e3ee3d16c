"""How much the sides of a tracked box tremble: error that is new in every frame, seen without a label.

A thing moves smoothly over three frames in a row, so what its side does beside a straight line is error, or a change of
pace that is small at a camera's rate. Error that stays for many frames (an offset, a wrong outline) is in all three and
cancels. So the trembling tells how large sigma must be *at least*, and not how large it is.

Reference: method.md section 8, "Judging without labels".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptedge.detections import Detections
from ptedge.scores.robust import jackknife_error, leave_out
from ptedge.scores.sides import SIDES, box_size
from ptedge.scores.sigma_quality import EXPECTED_COVERAGE, MIN_SIGMA
from ptedge.scores.tracking import Track

FloatArray = NDArray[np.float64]

FEWEST_WINDOWS = 20  # three frames of one track; the quantile of fewer says nothing
_EDGE = 1.0  # pixels; a side this near to the picture's edge is held by it and does not tremble
_BEND = np.array([1.0, -2.0, 1.0])  # of three values in a row: how far the middle one is off the line, times -2


@dataclass(frozen=True)
class Jitter:
    """The trembling of sides in a video.

    Attributes:
        windows: three frames in a row of one track; one track gives several.
        tracks: that gave at least one.
        jitter: [4] standard deviation of what is new in each frame, of x1, y1, x2, y2 in shares of the box; ``None``
            with fewer than :data:`FEWEST_WINDOWS`, as for the next three.
        sigma: [4] median of the detector's sigma in the same boxes, in shares of the box.
        least_scale: [4] jitter in units of each box's sigma: what sigma must be multiplied by at least.
        error: [4] standard error of ``least_scale``, by leaving out tracks.
    """

    windows: int
    tracks: int
    jitter: FloatArray | None = None
    sigma: FloatArray | None = None
    least_scale: FloatArray | None = None
    error: FloatArray | None = None

    def too_small(self) -> tuple[str, ...]:
        """Sides whose sigma is too small beyond doubt: by more than two standard errors."""
        if self.least_scale is None or self.error is None:
            return ()
        sure = self.least_scale - 2 * self.error > 1.0
        return tuple(side for side, small in zip(SIDES, sure, strict=True) if small)

    def to_json(self) -> dict[str, Any]:
        """Plain values, by side."""
        columns = {name: getattr(self, name) for name in ("jitter", "sigma", "least_scale", "error")}
        sides = {
            side: {name: None if values is None else float(values[i]) for name, values in columns.items()}
            for i, side in enumerate(SIDES)
        }
        return {"tracks": self.tracks, "windows": self.windows, "sides": sides, "too_small": list(self.too_small())}


def measure_jitter(detections: Sequence[Detections], tracks: Sequence[Track], width: int, height: int) -> Jitter:
    """The trembling of tracked sides.

    Of each three frames in a row the second difference of a side, x1 - 2 x2 + x3, has the variance
    sigma1^2 + 4 sigma2^2 + sigma3^2 if errors are independent from frame to frame and sigma is true. Its 68.3 %
    quantile in these units is taken, which single wrong links hardly move.

    Args:
        detections: one a frame, evenly spaced in time, in pixels of pictures of one size.
        tracks: of them.
        width: of the pictures.
        height: of the pictures.
    """
    found = [_windows(detections, track, width, height) for track in tracks]
    boxes = np.concatenate([np.zeros((0, 3, 4)), *(boxes for boxes, _ in found)])  # [W, 3, 4]
    sigma = np.concatenate([np.zeros((0, 3, 4)), *(sigma for _, sigma in found)])
    owner = np.repeat(np.arange(len(found)), [len(boxes) for boxes, _ in found])
    counts = len(boxes), len(np.unique(owner))
    if counts[0] < FEWEST_WINDOWS:
        return Jitter(*counts)
    bend = np.abs(np.tensordot(_BEND, boxes, (0, 1)))  # [W, 4]
    due = np.sqrt(np.tensordot(_BEND**2, np.maximum(sigma, MIN_SIGMA) ** 2, (0, 1)))
    size = box_size(boxes[:, 1])
    without, _ = leave_out(bend / due, owner, _one_sigma)
    return Jitter(
        *counts,
        jitter=_one_sigma(bend / size) / np.sqrt((_BEND**2).sum()),
        sigma=np.median(sigma[:, 1] / size, axis=0),
        least_scale=_one_sigma(bend / due),
        error=jackknife_error(without),
    )


def _windows(detections: Sequence[Detections], track: Track, width: int, height: int) -> tuple[FloatArray, FloatArray]:
    """Boxes and sigma [W, 3, 4] of every three frames in a row whose boxes lie free of the picture's edge."""
    frames, rows = track.frames.tolist(), track.rows.tolist()
    boxes = np.array([detections[i].boxes[row] for i, row in zip(frames, rows, strict=True)], np.float64)
    sigma = np.array([detections[i].sigma[row] for i, row in zip(frames, rows, strict=True)], np.float64)
    free = (boxes > _EDGE).all(axis=1) & (boxes[:, 2] < width - _EDGE) & (boxes[:, 3] < height - _EDGE)
    first = [i for i in range(len(track) - 2) if frames[i + 2] == frames[i] + 2 and free[i : i + 3].all()]
    picks = np.array(first, np.int64)[:, None] + np.arange(3)  # [W, 3]
    return boxes[picks], sigma[picks]


def _one_sigma(values: FloatArray) -> FloatArray:
    quantile: FloatArray = np.quantile(values, EXPECTED_COVERAGE[1], axis=0)
    return quantile
