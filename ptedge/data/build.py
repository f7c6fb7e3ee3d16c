"""What all readers share: raw boxes in, checked :class:`~ptedge.data.dataset.Sample` out, the rest counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ptedge.data.classes import ClassTable
from ptedge.data.dataset import Dataset, Sample
from ptedge.data.values import Box, pixels
from ptedge.errors import InputError
from ptedge.frames.images import image_size

MALFORMED = "malformed box"
DUPLICATE = "duplicate box"
CUT = "box cut at the image's border (more than 1 pixel over)"
THIN = "box less than 1 pixel wide or high"
NOT_LISTED = "class not listed: "
JOINED = "image listed more than once (its boxes joined)"

NO_SIZE = "image size that is no number of pixels (that of the file taken)"

_CUT_FROM = 1.0  # pixels over the border; less is rounding, as in a last pixel that counts as part of the box


class RawBox(NamedTuple):
    """A box as an annotation gives it: class name, xyxy pixels, whether it is to be ignored."""

    name: str
    box: Box
    ignore: bool = False


class RawImage(NamedTuple):
    """An image and its boxes before classes become labels. Width and height are 0 when unknown."""

    path: Path
    width: int
    height: int
    boxes: list[RawBox]
    image_id: int | str


@dataclass
class Counts:
    """What a reader meets on its way; see the fields of the same names in :class:`~ptedge.data.dataset.Dataset`."""

    dropped: Counter[str] = field(default_factory=Counter)
    passed_over: Counter[str] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)


def build_dataset(
    root: Path,
    kind: str,
    images: Iterable[RawImage],
    table: ClassTable,
    counts: Counts,
    *,
    declared: bool,
    split: str | None = None,
) -> Dataset:
    """Turn names into labels, clip boxes to their images and leave out, counted, those that cannot be used.

    Equal boxes of one image are one object, and an image listed twice is one image. Where the format is silent about an
    image's size, the header of the file tells it.

    Args:
        root: what the user named.
        kind: format.
        images: one an image; order is kept.
        table: names to labels.
        counts: what the reader has counted already; added to.
        declared: the format lists its classes (they were not collected from the boxes).
        split: part of the data that was read, where they have parts.

    Raises:
        InputError: there is no image, or every box is in units of the image's size instead of pixels.
    """
    joined = _joined(images, counts)
    if not joined:
        raise InputError(f"{root} ({kind}) holds no image")
    _refuse_relative(root, kind, joined)
    samples = tuple(_sample(image, table, counts) for image in joined)
    return Dataset(
        root,
        kind,
        table.names,
        samples,
        dropped=dict(+counts.dropped),
        passed_over=dict(+counts.passed_over),
        notes=dict(+counts.notes),
        declared=declared,
        split=split,
    )


def image_pixels(width: object, height: object, counts: Counts) -> tuple[int, int]:
    """Width and height as an annotation gives them; 0, 0 where it is silent, or (noted) says what no image has."""
    known = pixels(width), pixels(height)
    if known[0] is None or known[1] is None:
        counts.notes[NO_SIZE] += 1
        return 0, 0
    return (known[0], known[1]) if known[0] and known[1] else (0, 0)


def _joined(images: Iterable[RawImage], counts: Counts) -> list[RawImage]:
    known: dict[Path, RawImage] = {}
    for image in images:
        first = known.setdefault(image.path, image)
        if first is not image:
            first.boxes.extend(image.boxes)
            counts.notes[JOINED] += 1
    return list(known.values())


def _refuse_relative(root: Path, kind: str, images: Sequence[RawImage]) -> None:
    """No data set has all its boxes in the corner pixel; VOC's corners, which count from 1, reach down to -1."""
    lists = [raw.box for image in images for raw in image.boxes]
    if lists and all(-1 <= value <= 1 for box in lists for value in box):
        raise InputError(
            f"{root}: every box lies between 0 and 1, as if relative to the image; {kind} counts pixels. "
            "Multiply x by the width and y by the height of the image"
        )


def _sample(image: RawImage, table: ClassTable, counts: Counts) -> Sample:
    width, height = _size(image)
    kept: dict[tuple[Box, int, bool], tuple[float, ...]] = {}  # as given -> clipped
    for name, box, ignored in image.boxes:
        label = table.label(name)
        if label is None:
            counts.dropped[f"{NOT_LISTED}{name}"] += 1
            continue
        clipped = _clip(box, width, height)
        if isinstance(clipped, str):
            counts.dropped[clipped] += 1
            continue
        key = (box, label[0], ignored or label[1])
        if key in kept:
            counts.dropped[DUPLICATE] += 1
            continue
        kept[key] = clipped
        # an ignore region may well be thin or reach over the border
        if not key[2]:
            counts.notes[CUT] += max(abs(a - b) for a, b in zip(box, clipped, strict=True)) > _CUT_FROM
            counts.notes[THIN] += min(clipped[2] - clipped[0], clipped[3] - clipped[1]) < 1
    return Sample(
        path=image.path,
        width=width,
        height=height,
        boxes=np.array(list(kept.values()), dtype=np.float32).reshape(-1, 4),
        labels=np.array([label for _, label, _ in kept], dtype=np.int64),
        ignore=np.array([ignore for _, _, ignore in kept], dtype=np.bool_),
        image_id=image.image_id,
    )


def _size(image: RawImage) -> tuple[int, int]:
    if image.width and image.height:
        return image.width, image.height
    try:
        return image_size(image.path)
    except InputError:  # check_images and `ptedge data check` name the file
        return 0, 0


def _clip(box: Box, width: int, height: int) -> tuple[float, ...] | str:
    """The part of the box inside the image, in float32's steps, or why there is none."""
    x1, y1, x2, y2 = box
    if x2 <= x1 or y2 <= y1:
        return "no area"
    right, bottom = (width, height) if width and height else (float("inf"), float("inf"))
    inside = max(x1, 0.0), max(y1, 0.0), min(x2, right), min(y2, bottom)
    x1, y1, x2, y2 = np.array(inside, dtype=np.float32).tolist()
    if x2 <= x1 or y2 <= y1:
        return "outside the image"
    return x1, y1, x2, y2
