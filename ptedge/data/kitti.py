"""KITTI: ``image_2`` and ``label_2``, one text file an image, one object a line."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

from ptedge.data.build import RawBox, RawImage, build_dataset, number_box
from ptedge.data.classes import ClassRules, class_table
from ptedge.data.dataset import Dataset
from ptedge.data.locate import ImageFinder
from ptedge.errors import InputError

_DONT_CARE = "DontCare"


def read_kitti(path: Path, rules: ClassRules, images: Path | None = None, labels: Path | None = None) -> Dataset:
    """Read KITTI's object labels.

    Columns 5 to 8 of a line are the box, xyxy pixels from 0, taken as they are. ``DontCare`` becomes an ignore region
    for every class. The format does not tell image sizes, so widths and heights are 0. Classes are those that occur,
    sorted, unless the rules list them.

    Args:
        path: folder that holds ``image_2`` and ``label_2``, or the ``training`` folder that does.
        rules: classes wanted.
        images: folder of the images; ``None`` for ``image_2``.
        labels: folder of the label files; ``None`` for ``label_2``.

    Raises:
        InputError: no label file, or a line that is no KITTI label.
    """
    base = kitti_folder(path) or path
    labels = labels or base / "label_2"
    files = sorted(labels.glob("*.txt"))
    if not files:
        raise InputError(f"{labels} holds no KITTI label file (*.txt)")
    finder = ImageFinder([images or base / "image_2"])
    dropped: Counter[str] = Counter()
    raw = [RawImage(finder.find(f"{file.stem}.png"), 0, 0, _read_file(file, dropped), file.stem) for file in files]
    found = sorted({box.name for image in raw for box in image.boxes} - {_DONT_CARE})
    rules = replace(rules, ignore=rules.ignore | {_DONT_CARE})
    table = class_table(found, rules, str(path))
    return build_dataset(path, "kitti", raw, table, dropped, declared=bool(rules.classes))


def kitti_folder(path: Path) -> Path | None:
    """The folder with ``image_2`` and ``label_2``: ``path`` itself or its ``training``."""
    for folder in (path, path / "training"):
        if (folder / "image_2").is_dir() and (folder / "label_2").is_dir():
            return folder
    return None


def _read_file(file: Path, dropped: Counter[str]) -> list[RawBox]:
    boxes = []
    for number, line in enumerate(file.read_text("utf-8", "replace").splitlines(), start=1):
        columns = line.split()
        if not columns:
            continue
        if len(columns) < 8:
            raise InputError(f"{file} line {number} is no KITTI label: {len(columns)} columns, expected 15")
        box = number_box(columns[4:8])
        if box is None:
            dropped["malformed box"] += 1
        else:
            boxes.append(RawBox(columns[0], box))
    return boxes
