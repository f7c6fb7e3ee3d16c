"""The lines of YOLO label files: boxes, polygons, keypoints, scores and track ids, told apart or refused.

All are ``class`` and numbers, and some kinds have equally many: 7 columns are a polygon of three points, or a box with
a score and a track id. What the lines of a whole data set do not settle is an error, not a guess.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptedge.data.build import MALFORMED, Counts
from ptedge.data.parsing.documents import read_lines
from ptedge.data.parsing.values import LARGEST, Box, is_number_text
from ptedge.errors import InputError

_SCORED = 7  # columns of a box with score and track id, and of a triangle
_PIXELS = 2.0  # a relative coordinate above this lies a whole image outside; it is in pixels
_SCORE_NOTE = "label line with a score or track id (not used)"
_KEYPOINT_NOTE = "label line with keypoints (not used)"


class Line(NamedTuple):
    """A line that holds numbers: all of its columns, the class among them, and where it stands."""

    values: tuple[float, ...]
    label: Path
    number: int

    def fault(self, text: str) -> InputError:
        """The error that this line is not what it should be."""
        told = " ".join(f"{value:g}" for value in self.values)[:60]
        return InputError(f"{self.label} line {self.number} is no YOLO label: {text}, got {told!r}")


@dataclass(frozen=True)
class Forms:
    """What lines of some lengths are in this data set.

    Attributes:
        keypoints: columns of a line with keypoints; ``None`` where there are none.
        tracks: lines of 7 columns are boxes with a score and a track id, not triangles.
    """

    keypoints: int | None = None
    tracks: bool = False


def read_label(label: Path, counts: Counts) -> list[Line]:
    """Lines of a label file; one with a number that is not finite is left out and counted.

    Raises:
        InputError: unreadable, or a line with less than 5 columns or with one that is no number.
    """
    lines = []
    for number, text in enumerate(read_lines(label), start=1):
        columns = text.split()
        if not columns:
            continue
        if len(columns) < 5 or not all(map(is_number_text, columns)):
            raise InputError(f"{label} line {number} is no YOLO label: expected class cx cy w h, got {text[:60]!r}")
        line = Line(tuple(map(float, columns)), label, number)
        if not all(-LARGEST <= value <= LARGEST for value in line.values):
            counts.dropped[MALFORMED] += 1
        elif line.values[0] < 0 or line.values[0] != int(line.values[0]):
            raise line.fault("the class is a whole number from 0")
        else:
            lines.append(line)
    return lines


def is_label_file(file: Path) -> bool:
    """Whether the first line of a text file that is not empty starts with a class and four numbers."""
    try:
        line = next((line.split() for line in read_lines(file) if line), [])
    except InputError:
        return False
    return len(line) >= 5 and all(map(is_number_text, line))


def find_forms(lines: Iterable[Line], kpt_shape: object, where: Path) -> Forms:
    """Tell what the lines of a data set are.

    Args:
        lines: all of them.
        kpt_shape: what the ``data.yaml`` says: number of keypoints, and 2 or 3 numbers for each; ``None`` if nothing.
        where: file or folder, for messages.

    Raises:
        InputError: ``kpt_shape`` is of another form, or lines can be read in two ways.
    """
    if kpt_shape is not None:
        return Forms(keypoints=5 + _columns_of(kpt_shape, where))
    lines = list(lines)
    long = [line for line in lines if len(line.values) > _SCORED]
    return Forms(_keypoint_columns(long, where), _has_tracks([x for x in lines if len(x.values) == _SCORED], where))


def relative_box(line: Line, forms: Forms, counts: Counts) -> Box:
    """Centre, width and height of a line's object, relative to the image.

    Raises:
        InputError: its columns are none of the forms, or it is in pixels.
    """
    values, columns = line.values, len(line.values)
    outline = columns >= _SCORED and columns != forms.keypoints and not (columns == _SCORED and forms.tracks)
    if max(values[1:] if outline else values[1:5]) > _PIXELS:
        raise InputError(
            f"{line.label} line {line.number} is in pixels; YOLO labels are relative to the image (0 to 1)"
        )
    if forms.keypoints is not None and columns not in (5, forms.keypoints):
        raise line.fault(f"expected {forms.keypoints} columns, as every line with keypoints has")
    if columns == 6 and not (0 <= values[5] <= 1 or _is_id(values[5])):
        raise line.fault("the column after class cx cy w h is a score (0 to 1) or a track id")
    if outline:
        if columns % 2 == 0:
            raise line.fault("a polygon has class x y x y ..., so an odd number of columns")
        xs, ys = values[1::2], values[2::2]
        return (min(xs) + max(xs)) / 2, (min(ys) + max(ys)) / 2, max(xs) - min(xs), max(ys) - min(ys)
    counts.notes[_KEYPOINT_NOTE] += columns == forms.keypoints
    counts.notes[_SCORE_NOTE] += columns == 6 or (columns == _SCORED and forms.tracks)
    return values[1], values[2], values[3], values[4]


def _columns_of(kpt_shape: object, where: Path) -> int:
    if isinstance(kpt_shape, list) and len(kpt_shape) == 2:
        count, each = (int(x) if isinstance(x, str) and x.isascii() and x.isdecimal() else 0 for x in kpt_shape)
        if 0 < count < 10_000 and each in (2, 3):
            return count * each
    raise InputError(f"{where}: kpt_shape is {kpt_shape!r}; it is the number of keypoints and 2 or 3, as in [17, 3]")


def _has_tracks(lines: Sequence[Line], where: Path) -> bool:
    """Whether lines of 7 columns end with a track id: all are whole numbers, and one is beyond any coordinate."""
    if not lines or not all(_is_id(line.values[6]) and 0 <= line.values[5] <= 1 for line in lines):
        return False
    if any(line.values[6] > 1 for line in lines):
        return True
    raise InputError(
        f"{where}: the lines of 7 columns ({lines[0].label.name} line {lines[0].number}) may be polygons of three "
        "points, or boxes with a score and a track id. Leave only class cx cy w h where they are boxes"
    )


def _keypoint_columns(lines: Sequence[Line], where: Path) -> int | None:
    """Columns of lines with keypoints where no ``kpt_shape`` names them, or ``None`` where the lines are polygons."""
    if not lines or len({len(line.values) for line in lines}) > 1:
        return None  # polygons have as many points as they need
    columns = len(lines[0].values)
    values = np.array([line.values for line in lines])  # [N, columns]
    seen = values[:, 7::3]  # of keypoints x y v: 0 not labelled, 1 hidden, 2 seen
    flags = (columns - 5) % 3 == 0 and bool(np.isin(seen, (0, 1, 2)).all())
    if flags and (columns % 2 == 0 or (seen == 2).any()):
        return columns
    if columns % 2 and (flags or _look_like_keypoints(values)):
        raise InputError(
            f"{where}: the lines of {columns} columns ({lines[0].label.name} line {lines[0].number}) may be polygons "
            "or boxes with keypoints. Name kpt_shape in a data.yaml, or leave only class cx cy w h"
        )
    return None


def _look_like_keypoints(values: NDArray[np.float64]) -> bool:
    """Whether every line is a box inside the image with all further points in it, and some line is no good outline."""
    slack = 1e-3
    centre, half = values[:, 1:3], values[:, 3:5] / 2  # [N, 2]
    points = values[:, 5:].reshape(len(values), -1, 2)  # [N, K, 2]
    inside = (np.abs(points - centre[:, None]) <= half[:, None] + slack).all()
    whole = (half > 0).all() and (centre - half >= -slack).all() and (centre + half <= 1 + slack).all()
    return bool(inside and whole) and any(_crosses_itself(line[1:].reshape(-1, 2)) for line in values)


def _crosses_itself(points: NDArray[np.float64]) -> bool:
    """Whether two sides of a closed polygon, given by its vertices [K, 2], cross."""
    after = np.roll(points, -1, axis=0)

    def side(p: int, q: int) -> tuple[float, float]:
        """On which sides of side p the ends of side q lie."""
        (dx, dy), a, b = after[p] - points[p], points[q] - points[p], after[q] - points[p]
        return float(dx * a[1] - dy * a[0]), float(dx * b[1] - dy * b[0])

    for i in range(len(points)):
        for j in range(i + 2, len(points)):
            (a, b), (c, d) = side(i, j), side(j, i)
            if a * b < 0 and c * d < 0:
                return True
    return False


def _is_id(value: float) -> bool:
    return value >= 0 and value == int(value)
