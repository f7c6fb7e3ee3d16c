"""Opening a labelled data set: which format it is, told by its content."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from ptedge.data.bdd100k import frames_of, read_bdd100k
from ptedge.data.classes import ANY_CLASS, ClassRules, label_order
from ptedge.data.coco import coco_dataset, is_coco, load_coco
from ptedge.data.dataset import Dataset
from ptedge.data.description import read_description
from ptedge.data.kitti import kitti_folder, read_kitti
from ptedge.data.parsing.documents import collector_paused, load_json
from ptedge.data.parsing.values import shown
from ptedge.data.parsing.yaml_file import load_yaml
from ptedge.data.splits import Use, choose_split, is_part, refuse_split
from ptedge.data.voc import read_voc
from ptedge.data.yolo import read_yolo, read_yolo_folder
from ptedge.data.yolo_lines import is_label_file
from ptedge.data.yolo_names import find_names
from ptedge.errors import InputError

_KINDS = (
    "a COCO or BDD100k json, a Pascal VOC folder, a YOLO data.yaml or folder, a KITTI folder (image_2, label_2), "
    "or a TOML description (format = ...)"
)
_AS_FOUND = ClassRules()


def open_dataset(
    path: Path | str, class_names: Sequence[str] | None = None, split: str | None = None, use: Use = "look"
) -> Dataset:
    """Open labelled data of any supported format; no pixels are read.

    Args:
        path: COCO json, BDD100k json, Pascal VOC folder, YOLO ``data.yaml`` or folder, KITTI folder, or a TOML
            description.
        class_names: classes of a checkpoint or another data set. The data must have the same ones; a different order
            is no fault, labels are then remapped by name.
        split: which part to take (``train``, ``val``) where the data have several; goes before that of a description.
        use: what for, where the data have several parts and nobody names one: ``score`` takes ``val`` or ``test`` and
            never ``train``, ``train`` the reverse.

    Returns:
        The data set; its ``class_names`` equal ``class_names`` where given.

    Raises:
        InputError: missing, unreadable, no known format (the text lists what was found), or without such a part.
        ClassMismatchError: the classes differ from ``class_names``.
        ConfigError: a wrong key or value in a TOML description.
    """
    path = Path(path)
    with collector_paused():
        dataset = _read(path, split, use)
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


def _read(path: Path, split: str | None, use: Use) -> Dataset:
    if not os.path.exists(path):
        raise InputError(f"data {path} does not exist")
    if path.is_dir():
        return _read_folder(path, split, use)
    suffix = path.suffix.lower()
    if suffix == ".json":
        document = load_coco(path)
        if is_coco(document):
            refuse_split(split, path, "coco")
            return coco_dataset(document, path, _AS_FOUND)
        if frames_of(document) is not None:
            refuse_split(split, path, "bdd100k")
            return read_bdd100k(path, _AS_FOUND)
        found = (
            f"the keys {shown(sorted(document)[:8])}" if isinstance(document, dict) else f"a {type(document).__name__}"
        )
        raise InputError(
            f"{path} is neither COCO (images, annotations, categories) nor BDD100k (a list of frames): it holds {found}"
        )
    if suffix in (".yaml", ".yml", ".data"):
        return read_yolo(path, _AS_FOUND, split, use)
    if suffix == ".toml":
        return read_description(path, split, use)
    raise InputError(f"{path} is no labelled data set. Give {_KINDS}")


def _read_folder(path: Path, split: str | None, use: Use) -> Dataset:
    """Recognise a folder; the surest marks come first."""
    yamls, broken = _named_yamls(path)
    for marks in (yamls, sorted(path.glob("*.data"))):
        if len(marks) == 1:
            return read_yolo(marks[0], _AS_FOUND, split, use)
    if kitti_folder(path) is not None:
        return read_kitti(path, _AS_FOUND, split=split, use=use)
    if _any(path, "*.xml") or _any(path / "Annotations", "**/*.xml"):
        return read_voc(path, _AS_FOUND, split=split, use=use)
    if find_names(path) is not None or _any(path / "labels", "**/*.txt") or _looks_like_yolo(path):
        return read_yolo_folder(path, _AS_FOUND, split=split, use=use)
    files = [*sorted(path.glob("*.json")), *sorted((path / "annotations").glob("*.json"))]
    if files and (len(files) == 1 or _parts(files) or frames_of(load_json(files[0])) is not None):
        return _read_jsons(files, split, use)
    if (path / "gtFine").is_dir():
        raise InputError(
            f'{path} looks like Cityscapes. Write a TOML description with format = "cityscapes", root = "{path}" '
            'and split = "train", and give that file'
        )
    if broken is not None:
        raise broken
    raise InputError(f"{path} is no labelled data set; it holds {_contents(path)}. Give {_KINDS}")


def _read_jsons(files: Sequence[Path], split: str | None, use: Use) -> Dataset:
    parts = _parts(files)
    if parts:
        chosen = choose_split(list(parts), split, use, str(files[0].parent))
        return replace(_read(parts[chosen], None, use), split=chosen)
    if len(files) == 1:
        return _read(files[0], split, use)
    refuse_split(split, files[0].parent, "bdd100k")  # which may have one frame a file
    return read_bdd100k(files[0].parent, _AS_FOUND)


def _parts(files: Sequence[Path]) -> dict[str, Path]:
    """Files by part where several are called so (``instances_train2017.json``), each by another; else nothing."""
    parts = {file.stem.rpartition("_")[2].rstrip("0123456789"): file for file in files}
    return parts if 1 < len(files) == len(parts) and all(map(is_part, parts)) else {}


def _named_yamls(folder: Path) -> tuple[list[Path], InputError | None]:
    """YAML files of a folder that name classes, and what is wrong with the first that cannot be read."""
    found, broken = [], None
    for file in sorted(folder.glob("*.y*ml")):
        try:
            if "names" in load_yaml(file):
                found.append(file)
        except InputError as error:  # a file for another program may hold what a data.yaml does not
            broken = broken or error
    return found, broken


def _any(folder: Path, pattern: str) -> bool:
    return next(folder.glob(pattern), None) is not None


def _looks_like_yolo(folder: Path) -> bool:
    """Whether the first text file that is not empty holds YOLO labels."""
    for file in sorted(folder.glob("*.txt"))[:20]:
        if file.stat().st_size:
            return is_label_file(file)
    return False


def _contents(folder: Path) -> str:
    entries = sorted(folder.iterdir())
    kinds = Counter(entry.suffix.lower() or "no suffix" for entry in entries if entry.is_file())
    parts = [f"{count} {suffix}" for suffix, count in kinds.most_common(5)]
    parts += [f"{entry.name}/" for entry in entries if entry.is_dir()][:5]
    jsons = [entry.name for entry in entries if entry.suffix == ".json"]
    if len(jsons) > 1:
        parts.append(f"several json files ({', '.join(jsons[:4])}): name the one you mean")
    return ", ".join(parts) or "nothing"
