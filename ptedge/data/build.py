"""What all readers share: raw boxes in, checked :class:`~ptedge.data.dataset.Sample` out, the rest counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptedge.data.classes import ClassTable
from ptedge.data.columns import BoxColumns, usable_boxes
from ptedge.data.dataset import Dataset, Sample
from ptedge.data.parsing.values import LARGEST, Box, pixels
from ptedge.errors import InputError
from ptedge.frames.images import image_size

MALFORMED = "malformed box"
JOINED = "image listed more than once (its boxes joined)"

NO_SIZE = "image size that is no number of pixels (that of the file taken)"


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
    boxes: Sequence[RawBox]
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
    columns: BoxColumns | None = None,
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
        columns: the boxes of the images, where the reader has them so and the images come without.

    Raises:
        InputError: there is no image, or every box is in units of the image's size instead of pixels.
    """
    listed = list(images)
    joined, places = _joined(listed, counts)
    if not joined:
        raise InputError(f"{root} ({kind}) holds no image")
    if columns is None:
        columns = _columns(listed)
    _refuse_relative(root, kind, columns.boxes)
    sizes = np.array([_size(image) for image in joined], dtype=np.int64).reshape(-1, 2)
    found = usable_boxes(columns, places, sizes, table, counts.dropped, counts.notes)
    ends = found.ends.tolist()
    samples = tuple(
        Sample(image.path, width, height, found.boxes[a:b], found.labels[a:b], found.ignore[a:b], image.image_id)
        for image, (width, height), a, b in zip(joined, sizes.tolist(), ends[:-1], ends[1:], strict=True)
    )
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
    if type(width) is int and type(height) is int and 0 < width <= LARGEST and 0 < height <= LARGEST:
        return width, height  # as nearly all are
    known = pixels(width), pixels(height)
    if known[0] is None or known[1] is None:
        counts.notes[NO_SIZE] += 1
        return 0, 0
    return (known[0], known[1]) if known[0] and known[1] else (0, 0)


def _joined(images: Sequence[RawImage], counts: Counts) -> tuple[list[RawImage], NDArray[np.int64]]:
    """The images, each once, and which of them each entry is."""
    known: dict[Path, int] = {}
    places = [known.setdefault(image.path, len(known)) for image in images]
    counts.notes[JOINED] += len(images) - len(known)
    if len(known) == len(images):
        return list(images), np.arange(len(images))
    first = dict(zip(reversed(places), reversed(images), strict=True))
    return [first[place] for place in range(len(known))], np.array(places, dtype=np.int64)


def _columns(images: Sequence[RawImage]) -> BoxColumns:
    lengths = [len(image.boxes) for image in images]
    boxes = [raw for image in images for raw in image.boxes]
    names: dict[str, int] = {}
    name = [names.setdefault(raw.name, len(names)) for raw in boxes]
    return BoxColumns(
        image=np.repeat(np.arange(len(images)), lengths),
        name=np.array(name, dtype=np.int64),
        names=tuple(names),
        boxes=np.array([raw.box for raw in boxes], dtype=np.float64).reshape(-1, 4),
        ignore=np.array([raw.ignore for raw in boxes], dtype=np.bool_),
    )


def _refuse_relative(root: Path, kind: str, boxes: NDArray[np.float64]) -> None:
    """No data set has all its boxes in the corner pixel; VOC's corners, which count from 1, reach down to -1."""
    if len(boxes) and np.abs(boxes).max() <= 1:
        raise InputError(
            f"{root}: every box lies between 0 and 1, as if relative to the image; {kind} counts pixels. "
            "Multiply x by the width and y by the height of the image"
        )


def _size(image: RawImage) -> tuple[int, int]:
    if image.width and image.height:
        return image.width, image.height
    try:
        return image_size(image.path)
    except InputError:  # check_images and `ptedge data check` name the file
        return 0, 0
