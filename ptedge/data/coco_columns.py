"""The annotations of a COCO file as columns: all of them checked at once, one by one only where a value is unusual."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, compress, repeat
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptedge.data.build import MALFORMED, Counts, RawImage
from ptedge.data.columns import BoxColumns
from ptedge.data.parsing.values import LARGEST, Box, entry_id, flag, number_box, outline_box, shown
from ptedge.errors import InputError

CORNERS = "box that could be x1 y1 x2 y2, as all here; COCO has x y width height"

# image id, category id, iscrowd, and bbox; where there is no bbox, (box around the outlines, None) or (None, reason)
Annotation = tuple[Any, Any, Any, Any]


def keep_annotation(entry: dict[str, Any]) -> dict[str, Any] | Annotation:
    """What is read of an annotation, so that a file's outlines are not held; any other object as it is."""
    if "category_id" in entry and "image_id" in entry and "file_name" not in entry and "name" not in entry:
        box = entry.get("bbox")
        if box is None or box == []:
            box = _outlined(entry.get("segmentation"))
        return entry["image_id"], entry["category_id"], entry.get("iscrowd"), box
    return entry


def annotation_columns(
    entries: Sequence[Any],
    images: Mapping[int | str, int],
    names: Mapping[int | str, str],
    path: Path,
    counts: Counts,
) -> BoxColumns:
    """The boxes of all annotations; those that cannot be used are counted.

    Args:
        entries: as :func:`keep_annotation` leaves them.
        images: position of each image by its id.
        names: class names by id.
        path: the file, for messages.
        counts: what was left out is added.

    Raises:
        InputError: an entry is no annotation.
    """
    rows = _annotations(entries, path)
    image = _positions([row[0] for row in rows], images)
    name = _positions([row[1] for row in rows], {key: i for i, key in enumerate(names)})
    crowd = _flags([row[2] for row in rows])
    boxes, reasons = _boxes([row[3] for row in rows])
    whole = np.ones(len(rows), dtype=np.bool_)
    for text, wrong in (
        ("image id not listed", image < 0),
        ("category id not listed", name < 0),
        ("iscrowd is neither 0 nor 1", crowd < 0),
        *((reason, where) for reason, where in reasons.items()),
    ):
        counts.dropped[text] += int((whole & wrong).sum())
        whole &= ~wrong
    return BoxColumns(image[whole], name[whole], tuple(names.values()), boxes[whole], crowd[whole] > 0)


def count_corners(columns: BoxColumns, images: Sequence[RawImage]) -> int:
    """How many boxes there are, if all of them would be boxes inside their images as x1, y1, x2, y2, too; else 0.

    A few boxes may be so by chance; a whole data set is not.
    """
    start, side = columns.boxes[:, :2], columns.boxes[:, 2:] - columns.boxes[:, :2]
    if not ((start > 0) & (start < side)).all():
        return 0
    borders = np.array([(image.width or np.inf, image.height or np.inf) for image in images]).reshape(-1, 2)
    return len(side) if (side <= borders[columns.image]).all() else 0


def _annotations(entries: Sequence[Any], path: Path) -> list[Annotation]:
    rows = []
    for i, entry in enumerate(entries):
        row = entry
        if type(entry) is not tuple:
            if not isinstance(entry, dict) or "image_id" not in entry or "category_id" not in entry:
                raise InputError(f"{path}: annotation {i} needs the keys image_id, category_id, got {shown(entry)}")
            row = keep_annotation({key: entry.get(key) for key in _KEYS})
        rows.append(row)
    return rows


_KEYS = ("image_id", "category_id", "iscrowd", "bbox", "segmentation")


def _positions(ids: list[Any], known: Mapping[int | str, int]) -> NDArray[np.int64]:
    """[N] where each id leads; -1 for nowhere."""
    if set(map(type, ids)) <= {int}:
        try:
            wanted = np.fromiter(ids, np.int64, len(ids))
            return _found(wanted, {key: place for key, place in known.items() if isinstance(key, int)})
        except OverflowError:  # beyond 64 bits
            pass
    keys = (entry_id(value) for value in ids)
    return np.fromiter((-1 if key is None else known.get(key, -1) for key in keys), np.int64, len(ids))


def _found(wanted: NDArray[np.int64], known: Mapping[int, int]) -> NDArray[np.int64]:
    """[N] the value of each key; -1 where it has none. Asking a dict a million times takes longer."""
    if not known or not len(wanted):
        return np.full(len(wanted), -1)
    keys, values = np.fromiter(known, np.int64, len(known)), np.fromiter(known.values(), np.int64, len(known))
    first, last = int(keys.min()), int(keys.max())
    if last - first < 8 * len(keys) + len(wanted):  # nearly without gaps, as most ids are
        table = np.full(last - first + 1, -1)
        table[keys - first] = values
        inside = (wanted >= first) & (wanted <= last)
        return np.where(inside, table[np.where(inside, wanted - first, 0)], -1)
    order = np.argsort(keys)
    keys, values = keys[order], values[order]
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[at] == wanted, values[at], -1)


def _flags(values: list[Any]) -> NDArray[np.int8]:
    """[N] 0 or 1 as each value says; -1 where it is neither."""
    if set(map(type, values)) <= {int, bool, type(None)}:
        return np.fromiter(map({None: 0, 0: 0, 1: 1}.get, values, repeat(-1)), np.int8, len(values))
    said = (flag(value) for value in values)
    return np.fromiter((-1 if yes is None else int(yes) for yes in said), np.int8, len(values))


def _boxes(given: list[Any]) -> tuple[NDArray[np.float64], dict[str, NDArray[np.bool_]]]:
    """Boxes xyxy, [N, 4], and by reason which of them are none."""
    boxes = np.zeros((len(given), 4))
    reasons: dict[str, NDArray[np.bool_]] = {MALFORMED: np.zeros(len(given), dtype=np.bool_)}
    plain: NDArray[np.bool_]
    if set(map(type, given)) <= {list} and set(map(len, given)) <= {4}:
        plain = np.ones(len(given), dtype=np.bool_)
    else:
        plain = np.fromiter((type(box) is list and len(box) == 4 for box in given), np.bool_, len(given))
    corners_of = _numbers(list(compress(given, plain.tolist())))
    corners_of[:, 2:] += corners_of[:, :2]
    boxes[plain] = corners_of
    reasons[MALFORMED][plain] = np.isnan(corners_of).any(axis=1)
    for row in np.flatnonzero(~plain).tolist():
        box, reason = given[row] if type(given[row]) is tuple else (None, MALFORMED)
        if box is not None:
            boxes[row] = box
        else:
            reasons.setdefault(reason, np.zeros(len(given), dtype=np.bool_))[row] = True
    return boxes, reasons


def _numbers(fours: list[list[Any]]) -> NDArray[np.float64]:
    """Lists of four as an array [N, 4]; a row with what is no number in range is NaN."""
    values = list(chain.from_iterable(fours))
    if set(map(type, values)) <= {int, float}:
        try:
            array = np.fromiter(values, np.float64, len(values)).reshape(-1, 4)
        except OverflowError:  # a whole number beyond all floats
            pass
        else:
            array[~(np.abs(array) <= LARGEST).all(axis=1)] = np.nan
            return array
    rows = [number_box(four) or (np.nan,) * 4 for four in fours]
    return np.array(rows, dtype=np.float64).reshape(-1, 4)


def _outlined(outlines: Any) -> tuple[Box | None, str | None]:
    """The box around an annotation's outlines, or why there is none."""
    if isinstance(outlines, dict):
        return None, "no bbox, and a mask in RLE"
    if not isinstance(outlines, list) or not outlines:
        return None, MALFORMED
    points: list[Any] = []
    for outline in outlines:
        if not isinstance(outline, list) or len(outline) < 6 or len(outline) % 2:
            return None, MALFORMED
        points += zip(outline[0::2], outline[1::2], strict=True)
    box = outline_box(points)
    return box, MALFORMED if box is None else None
