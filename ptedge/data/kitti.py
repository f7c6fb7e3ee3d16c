"""KITTI: ``image_2`` and ``label_2``, one text file an image, one object a line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ptedge.data.build import MALFORMED, Counts, RawBox, RawImage, build_dataset
from ptedge.data.classes import ClassRules, class_table
from ptedge.data.dataset import Dataset
from ptedge.data.locate import ImageFinder, pictures_in
from ptedge.data.parsing.documents import read_lines
from ptedge.data.parsing.values import is_number_text, number_box, shown
from ptedge.data.splits import Use, choose_list, listed_names
from ptedge.errors import InputError

_DONT_CARE = "DontCare"
_COLUMNS = 15
_TRACKING_COLUMNS = 17  # frame and track id come before the type, so all columns are two further right


def read_kitti(
    path: Path,
    rules: ClassRules,
    images: Path | None = None,
    labels: Path | None = None,
    split: str | None = None,
    use: Use = "look",
) -> Dataset:
    """Read KITTI's object labels.

    A line has 15 columns, or 16 with a score, which is not used. Columns 5 to 8 are the box, xyxy pixels from 0, taken
    as they are. ``DontCare`` becomes an ignore region for every class. Image sizes come from the image headers. Classes
    are those that occur, sorted, unless the rules list them.

    Args:
        path: folder that holds ``image_2`` and ``label_2``, or the ``training`` folder that does.
        rules: classes wanted.
        images: folder of the images; ``None`` for ``image_2``.
        labels: folder of the label files; ``None`` for ``label_2``.
        split: name of a list in ``ImageSets``; ``None`` takes every label file, or what ``use`` needs of the lists.
        use: what the data are for.

    Raises:
        InputError: no label file, or a line that is no KITTI label.
    """
    base = kitti_folder(path) or path
    labels = labels or base / "label_2"
    files = {file.stem: file for file in sorted(labels.glob("*.txt"))}
    if not files:
        raise InputError(f"{labels} holds no KITTI label file (*.txt)")
    listing = choose_list([base / "ImageSets", base.parent / "ImageSets"], split, use, str(path))
    names: Sequence[str] = list(files)
    if listing is not None:
        names = listed_names(listing, files)
        missing = [name for name in names if name not in files]
        if missing:
            raise InputError(f"{listing} lists {shown(missing[0])}, but {labels} has no label file of that name")
    counts = Counts()
    finder = ImageFinder([images or base / "image_2"], counts)
    found = finder.find_all([(f"{name}.png",) for name in names])
    raw = [
        RawImage(image, 0, 0, _read_file(files[name], counts), name) for name, image in zip(names, found, strict=True)
    ]
    if listing is None:
        rest = len(set(pictures_in(images or base / "image_2")) - set(found))
        counts.notes["image without a label file (no part of the data)"] += rest
    classes = sorted({box.name for image in raw for box in image.boxes} - {_DONT_CARE})
    rules = replace(rules, ignore=rules.ignore | {_DONT_CARE})
    table = class_table(classes, rules, str(path))
    named = listing.stem if listing is not None else None
    return build_dataset(path, "kitti", raw, table, counts, declared=bool(rules.classes), split=named)


def kitti_folder(path: Path) -> Path | None:
    """The folder with ``image_2`` and ``label_2``: ``path`` itself or its ``training``."""
    for folder in (path, path / "training"):
        if (folder / "image_2").is_dir() and (folder / "label_2").is_dir():
            return folder
    return None


def _read_file(file: Path, counts: Counts) -> list[RawBox]:
    boxes = []
    for number, line in enumerate(read_lines(file), start=1):
        columns = line.split()
        if not columns:
            continue
        where = f"{file} line {number}"
        if len(columns) >= _TRACKING_COLUMNS and columns[0].isdecimal():
            raise InputError(f"{where} is a label of KITTI's tracking, not of its object detection")
        if len(columns) not in (_COLUMNS, _COLUMNS + 1):
            raise InputError(
                f"{where} is no KITTI label: {len(columns)} columns, expected {_COLUMNS}, or one more with a score"
            )
        if is_number_text(columns[0]) or not all(is_number_text(column) for column in columns[1:]):
            raise InputError(
                f"{where} is no KITTI label: expected a type and {_COLUMNS - 1} numbers, got {line[:60]!r}"
            )
        counts.notes["label line with a score (not used)"] += len(columns) > _COLUMNS
        box = number_box(columns[4:8])
        if box is None:
            counts.dropped[MALFORMED] += 1
        else:
            boxes.append(RawBox(columns[0], box))
    return boxes
