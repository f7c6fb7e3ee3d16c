"""What all readers share: raw boxes in, a checked :class:`~ptedge.data.dataset.Sample` out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ptedge.data.classes import ClassTable
from ptedge.data.dataset import Dataset, Sample
from ptedge.errors import InputError


class RawBox(NamedTuple):
    """A box as an annotation gives it: class name, xyxy pixels, whether it is to be ignored."""

    name: str
    box: tuple[float, float, float, float]
    ignore: bool = False


class RawImage(NamedTuple):
    """An image and its boxes before classes become labels. Width and height are 0 when unknown."""

    path: Path
    width: int
    height: int
    boxes: list[RawBox]
    image_id: int | str


def build_dataset(
    root: Path, kind: str, images: Iterable[RawImage], table: ClassTable, dropped: Counter[str], *, declared: bool
) -> Dataset:
    """Turn names into labels, clip boxes to their images and leave out, counted, those that cannot be used.

    Args:
        root: what the user named.
        kind: format.
        images: one an image; order is kept.
        table: names to labels.
        dropped: counts of boxes the reader has left out already; added to.
        declared: the format lists its classes (they were not collected from the boxes).

    Raises:
        InputError: there is no image.
    """
    samples = tuple(_sample(image, table, dropped) for image in images)
    if not samples:
        raise InputError(f"{root} ({kind}) holds no image")
    return Dataset(root, kind, table.names, samples, dict(dropped), declared)


def number_box(values: object) -> tuple[float, float, float, float] | None:
    """Four finite numbers, or ``None`` if it is anything else."""
    if not isinstance(values, (list, tuple)) or len(values) != 4:
        return None
    try:
        a, b, c, d = (float(value) for value in values)
    except (TypeError, ValueError):
        return None
    return (a, b, c, d) if np.isfinite([a, b, c, d]).all() else None


def _sample(image: RawImage, table: ClassTable, dropped: Counter[str]) -> Sample:
    boxes, labels, ignore = [], [], []
    for name, box, ignored in image.boxes:
        label = table.label(name)
        if label is None:
            dropped[f"class not listed: {name}"] += 1
            continue
        clipped = _clip(box, image.width, image.height)
        if isinstance(clipped, str):
            dropped[clipped] += 1
            continue
        boxes.append(clipped)
        labels.append(label[0])
        ignore.append(ignored or label[1])
    return Sample(
        path=image.path,
        width=image.width,
        height=image.height,
        boxes=np.array(boxes, dtype=np.float32).reshape(-1, 4),
        labels=np.array(labels, dtype=np.int64),
        ignore=np.array(ignore, dtype=np.bool_),
        image_id=image.image_id,
    )


def _clip(box: tuple[float, float, float, float], width: int, height: int) -> tuple[float, ...] | str:
    """The part of the box inside the image, or why there is none."""
    x1, y1, x2, y2 = box
    if x2 <= x1 or y2 <= y1:
        return "no area"
    right, bottom = (width, height) if width and height else (float("inf"), float("inf"))
    x1, y1, x2, y2 = max(x1, 0.0), max(y1, 0.0), min(x2, right), min(y2, bottom)
    if x2 <= x1 or y2 <= y1:
        return "outside the image"
    return x1, y1, x2, y2
