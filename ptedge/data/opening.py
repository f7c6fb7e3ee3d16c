"""Opening a labelled data set: which format it is, told by its content."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from ptedge.data.classes import ANY_CLASS, ClassRules, label_order
from ptedge.data.coco import is_coco, load_json, read_coco
from ptedge.data.dataset import Dataset
from ptedge.errors import InputError


def open_dataset(path: Path | str, class_names: Sequence[str] | None = None, split: str | None = None) -> Dataset:
    """Open labelled data of any supported format; no pixels are read.

    Args:
        path: COCO json, BDD100k json, Pascal VOC folder, YOLO ``data.yaml`` or folder, KITTI folder, or a TOML
            description.
        class_names: classes of a checkpoint or another data set. The data must have the same ones; a different order
            is no fault, labels are then remapped by name.
        split: which part to take (``train``, ``val``) where the data have several and a description does not say.

    Returns:
        The data set; its ``class_names`` equal ``class_names`` where given.

    Raises:
        InputError: missing, unreadable, or no known format; the text lists what was found.
        ClassMismatchError: the classes differ from ``class_names``.
        ConfigError: a wrong key or value in a TOML description.
    """
    path = Path(path)
    dataset = _read(path, split)
    if class_names is not None:
        dataset = with_class_names(dataset, class_names)
    return dataset


def with_class_names(dataset: Dataset, class_names: Sequence[str]) -> Dataset:
    """The same data with labels that count in another class list of the same names.

    Raises:
        ClassMismatchError: the names differ.
    """
    order = label_order(dataset.class_names, class_names, str(dataset.root), dataset.declared)
    if order == tuple(range(len(class_names))):
        return dataset
    table = np.array([*order, ANY_CLASS], dtype=np.int64)  # label -1 finds the last entry and stays -1
    samples = tuple(replace(sample, labels=table[sample.labels]) for sample in dataset.samples)
    return replace(dataset, class_names=tuple(class_names), samples=samples)


def _read(path: Path, split: str | None) -> Dataset:
    if not path.exists():
        raise InputError(f"data {path} does not exist")
    if path.suffix.lower() == ".json" and is_coco(load_json(path)):
        return read_coco(path, ClassRules())
    raise InputError(f"{path} is no data set this version can read")
