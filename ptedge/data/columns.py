"""Boxes of a whole data set as columns, so that a million of them is checked by a few calls of NumPy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptedge.data.classes import ANY_CLASS, ClassTable

CUT = "box cut at the image's border (more than 1 pixel over)"
THIN = "box less than 1 pixel wide or high"
DUPLICATE = "duplicate box"
NOT_LISTED = "class not listed: "

_CUT_FROM = 1.0  # pixels over the border; less is rounding, as in a last pixel that counts as part of the box


@dataclass(frozen=True)
class BoxColumns:
    """Boxes of many images before classes become labels, one a row.

    Attributes:
        image: [N] int64, position of the box's image in the list of images.
        name: [N] int64, position of its class in ``names``.
        names: class names as the annotations have them.
        boxes: [N, 4] float64 xyxy pixels.
        ignore: [N] bool.
    """

    image: NDArray[np.int64]
    name: NDArray[np.int64]
    names: Sequence[str]
    boxes: NDArray[np.float64]
    ignore: NDArray[np.bool_]


@dataclass(frozen=True)
class UsableBoxes:
    """Boxes that can be used, sorted by image.

    Attributes:
        ends: [M + 1] int64; the boxes of image i are rows ``ends[i]`` to ``ends[i + 1]``.
        boxes: [K, 4] float32 xyxy pixels, clipped to their images.
        labels: [K] int64.
        ignore: [K] bool.
    """

    ends: NDArray[np.int64]
    boxes: NDArray[np.float32]
    labels: NDArray[np.int64]
    ignore: NDArray[np.bool_]


def usable_boxes(
    columns: BoxColumns,
    places: NDArray[np.int64],
    sizes: NDArray[np.int64],
    table: ClassTable,
    dropped: Counter[str],
    notes: Counter[str],
) -> UsableBoxes:
    """Turn names into labels, clip boxes to their images and leave out, counted, those that cannot be used.

    Args:
        columns: boxes as the annotations have them.
        places: [images listed] int64, which image each entry is; entries of one image have the same.
        sizes: [M, 2] int64, width and height by image; 0, 0 where unknown.
        table: names to labels.
        dropped: reasons and counts, added to.
        notes: likewise.
    """
    columns = _by_image(columns, places)
    image, boxes = columns.image, columns.boxes
    labels, ignored, listed = _labels_of(columns.names, table)
    unlisted = ~listed[columns.name]
    per_name = np.bincount(columns.name[unlisted], minlength=len(columns.names)).tolist()
    for name, count in zip(columns.names, per_name, strict=True):
        dropped[f"{NOT_LISTED}{name}"] += count
    borders = np.where(sizes > 0, sizes, np.inf)[image]  # [N, 2]; where the size is unknown there is no border
    clipped = _clip(boxes, borders)
    flat = ~unlisted & ~_has_area(boxes)
    outside = ~(unlisted | flat) & ~_has_area(clipped)
    dropped["no area"] += int(flat.sum())
    dropped["outside the image"] += int(outside.sum())

    whole = ~(unlisted | flat | outside)
    label, ignore = labels[columns.name], columns.ignore | ignored[columns.name]
    kept = whole & _first_of_equals(whole, image, boxes, label, ignore)
    dropped[DUPLICATE] += int(whole.sum()) - int(kept.sum())
    counted = kept & ~ignore  # an ignore region may well be thin or reach over the border
    notes[CUT] += int((counted & _is_cut(boxes, borders)).sum())
    notes[THIN] += int((counted & _is_thin(clipped)).sum())
    ends = np.searchsorted(image[kept], np.arange(len(sizes) + 1))
    return UsableBoxes(ends, clipped[kept], label[kept], ignore[kept])


def _by_image(columns: BoxColumns, places: NDArray[np.int64]) -> BoxColumns:
    """Rows sorted by image, with the places of the images; boxes of an image, and of its entries, keep their order."""
    image = places[columns.image]
    order: NDArray[np.intp] | slice = slice(None)
    if (columns.image[1:] < columns.image[:-1]).any():
        order = _stable_order(columns.image)
    if (image[order][1:] < image[order][:-1]).any():  # an image listed twice
        order = np.argsort(columns.image, kind="stable")
        order = order[np.argsort(image[order], kind="stable")]
    return BoxColumns(image[order], columns.name[order], columns.names, columns.boxes[order], columns.ignore[order])


def _stable_order(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """As a stable argsort of small whole numbers; sorting the numbers themselves is several times as fast."""
    rows = max(len(keys), 1)
    ordered: NDArray[np.int64] = np.sort(keys * rows + np.arange(len(keys))) % rows
    return ordered


def _has_area(boxes: NDArray[Any]) -> NDArray[np.bool_]:
    return (boxes[:, 2] > boxes[:, 0]) & (boxes[:, 3] > boxes[:, 1])


def _is_cut(boxes: NDArray[np.float64], borders: NDArray[np.float64]) -> NDArray[np.bool_]:
    far = [boxes[:, side] < -_CUT_FROM for side in (0, 1)]
    far += [boxes[:, side] - borders[:, side - 2] > _CUT_FROM for side in (2, 3)]
    return far[0] | far[1] | far[2] | far[3]


def _is_thin(clipped: NDArray[np.float32]) -> NDArray[np.bool_]:
    x1, y1, x2, y2 = (clipped[:, side].astype(np.float64) for side in range(4))
    return (x2 - x1 < 1) | (y2 - y1 < 1)


def _labels_of(
    names: Sequence[str], table: ClassTable
) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.bool_]]:
    """By position in ``names``: the label, whether it is ignored, and whether it is listed at all."""
    found = [table.label(name) for name in names]
    labels = np.array([ANY_CLASS if label is None else label[0] for label in found], dtype=np.int64)
    ignored = np.array([label is not None and label[1] for label in found], dtype=np.bool_)
    return labels, ignored, np.array([label is not None for label in found], dtype=np.bool_)


def _clip(boxes: NDArray[np.float64], borders: NDArray[np.float64]) -> NDArray[np.float32]:
    """The part of each box inside its image, in float32's steps; borders are whole numbers, so these hold them."""
    inside = boxes.astype(np.float32)
    np.maximum(inside[:, :2], 0.0, out=inside[:, :2])
    np.minimum(inside[:, 2:], borders, out=inside[:, 2:], casting="same_kind")
    return inside


def _first_of_equals(
    whole: NDArray[np.bool_],
    image: NDArray[np.int64],
    boxes: NDArray[np.float64],
    labels: NDArray[np.int64],
    ignore: NDArray[np.bool_],
) -> NDArray[np.bool_]:
    """[N] whether no whole row before has the same image, box, label and mark."""
    # rows are told apart by a hash; only those that share one are compared
    mixed = image.astype(np.uint64)
    factor = np.uint64(0x9E3779B97F4A7C15)
    sides = (boxes[:, side] + 0.0 for side in range(4))  # -0.0 is 0.0
    for column in (*sides, labels, ignore.astype(np.int64)):
        mixed ^= mixed >> np.uint64(29)
        mixed *= factor
        mixed ^= np.ascontiguousarray(column).view(np.uint64)
    first = np.ones(len(mixed), dtype=np.bool_)
    ordered = np.sort(mixed)
    if not (ordered[1:] == ordered[:-1]).any():
        return first
    order = np.argsort(mixed)
    same = mixed[order[1:]] == mixed[order[:-1]]
    seen: set[tuple[int | float | bool, ...]] = set()
    for row in np.unique(np.concatenate((order[1:][same], order[:-1][same]))).tolist():
        if whole[row]:
            key = (int(image[row]), *boxes[row].tolist(), int(labels[row]), bool(ignore[row]))
            first[row] = key not in seen
            seen.add(key)
    return first
