"""One function a format: the annotations of a data set whose images have their new names."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path, PurePosixPath

import numpy as np

from ptedge.data.classes import ANY_CLASS
from ptedge.data.coco import write_coco
from ptedge.data.dataset import Dataset, Sample
from ptedge.data.splits import usual_name
from ptedge.data.writing.names import one_word_classes
from ptedge.files import write_error

EVERY_CLASS = "ignore region of every class, written once for each class"
NO_IGNORE = "ignore region, which YOLO cannot hold"
WIDENED = "ignore region of one class, written as DontCare, which stands for every class"

_CORNERS = ("xmin", "ymin", "xmax", "ymax")
_DONT_CARE = "DontCare"
# as the development kit has them where nothing is known: truncation, occlusion, alpha; size, place, rotation
_UNKNOWN = ("-1 3 -10", "-1 -1 -1 -1000 -1000 -1000 -10")
_UNKNOWN_REGION = ("-1 -1 -10", _UNKNOWN[1])


def write_coco_folder(dataset: Dataset, names: list[str], out: Path, lost: Counter[str]) -> None:
    """``annotations.json``; images in ``images``."""
    for sample in dataset.samples:
        lost[EVERY_CLASS] += int((sample.labels == ANY_CLASS).sum())
    write_coco(dataset, out / "annotations.json", description=f"{dataset.root.name}, converted from {dataset.format}")


def write_voc_folder(dataset: Dataset, names: list[str], out: Path, lost: Counter[str]) -> None:
    """``Annotations/*.xml``, and the part's list in ``ImageSets/Main``; images in ``JPEGImages``.

    VOC counts pixels from 1 and includes the last one; corners between pixels are written with decimals.
    """
    if not any((sample.labels == ANY_CLASS).any() for sample in dataset.samples):  # which is written for each class
        _count_silent_classes(dataset, "VOC", lost, ignored_count=True)
    for sample, name in zip(dataset.samples, names, strict=True):
        root = ET.Element("annotation")
        path = PurePosixPath(name)
        _texts(root, {"folder": "JPEGImages", "filename": path.name})
        _texts(ET.SubElement(root, "size"), {"width": sample.width, "height": sample.height, "depth": 3})
        for box, label, ignore in _boxes(sample):
            lost[EVERY_CLASS] += label == ANY_CLASS
            for each in range(len(dataset.class_names)) if label == ANY_CLASS else (label,):
                item = ET.SubElement(root, "object")
                _texts(item, {"name": dataset.class_names[each], "pose": "Unspecified", "truncated": 0})
                _texts(item, {"difficult": int(ignore)})
                corners = [_decimal(value, more) for value, more in zip(box, (1, 1, 0, 0), strict=True)]
                _texts(ET.SubElement(item, "bndbox"), dict(zip(_CORNERS, corners, strict=True)))
        ET.indent(root)
        _write(out / "Annotations" / path.with_suffix(".xml"), ET.tostring(root, encoding="unicode") + "\n")
    if dataset.split is not None:
        stems = [str(PurePosixPath(name).with_suffix("")) for name in names]
        _write(out / "ImageSets" / "Main" / f"{dataset.split}.txt", "".join(f"{stem}\n" for stem in stems))


def write_yolo_folder(dataset: Dataset, names: list[str], out: Path, lost: Counter[str]) -> None:
    """``labels/*.txt`` and ``data.yaml``; images in ``images``."""
    for sample, name in zip(dataset.samples, names, strict=True):
        lines = []
        for box, label, ignore in _boxes(sample):
            if ignore:
                lost[NO_IGNORE] += 1
                continue
            x1, y1, x2, y2 = box
            centre, size = ((x1 + x2) / 2, (y1 + y2) / 2), (x2 - x1, y2 - y1)
            values = [part / side for pair in (centre, size) for part, side in zip(pair, _sides(sample), strict=True)]
            lines.append(" ".join([str(label), *(f"{value:.10f}" for value in values)]))
        _write(out / "labels" / PurePosixPath(name).with_suffix(".txt"), "".join(f"{line}\n" for line in lines))
    part = usual_name(dataset.split) if dataset.split is not None else "train"
    key = part if part in ("train", "val", "test") else "train"
    head = [f"path: .\n{key}: images\nnames:\n"]
    # a JSON text is a YAML text as well, whatever the name holds
    lines = [f"  {i}: {json.dumps(name, ensure_ascii=False)}\n" for i, name in enumerate(dataset.class_names)]
    _write(out / "data.yaml", "".join(head + lines))


def write_kitti_folder(dataset: Dataset, names: list[str], out: Path, lost: Counter[str]) -> None:
    """``label_2/*.txt`` in ``training``, and the part's list in ``ImageSets``; images in ``image_2`` beside."""
    _count_silent_classes(dataset, "KITTI", lost, ignored_count=False)
    types = one_word_classes(dataset.class_names, _DONT_CARE, lost)
    for sample, name in zip(dataset.samples, names, strict=True):
        lines = []
        for box, label, ignore in _boxes(sample):
            lost[WIDENED] += ignore and label != ANY_CLASS
            kind, (before, after) = (_DONT_CARE, _UNKNOWN_REGION) if ignore else (types[label], _UNKNOWN)
            lines.append(f"{kind} {before} {' '.join(map(_decimal, box))} {after}\n")
        _write(out / "training" / "label_2" / PurePosixPath(name).with_suffix(".txt"), "".join(lines))
    if dataset.split is not None:
        stems = [PurePosixPath(name).stem for name in names]
        _write(out / "ImageSets" / f"{dataset.split}.txt", "".join(f"{stem}\n" for stem in stems))


def _boxes(sample: Sample) -> Iterator[tuple[list[float], int, bool]]:
    return zip(sample.boxes.tolist(), sample.labels.tolist(), sample.ignore.tolist(), strict=True)


def _sides(sample: Sample) -> tuple[int, int]:
    return sample.width, sample.height


def _count_silent_classes(dataset: Dataset, title: str, lost: Counter[str], ignored_count: bool) -> None:
    """A format without a list of classes knows only those of its boxes; KITTI's ignore regions name none."""
    used: set[int] = set()
    for sample in dataset.samples:
        used |= set(sample.labels[~sample.ignore | ignored_count].tolist())
    for label, name in enumerate(dataset.class_names):
        if label not in used:
            lost[f"class {name}, which has no box; {title} has no list of classes"] += 1


def _texts(parent: ET.Element, values: Mapping[str, object]) -> None:
    for key, value in values.items():
        ET.SubElement(parent, key).text = str(value)


def _decimal(value: float, more: int = 0) -> str:
    """A coordinate in as few digits as tell it from any other, plus a whole number; 30 and not 30.0, as VOC has it."""
    text = np.format_float_positional(np.float32(value), trim="-")
    return format(Decimal(text) + more, "f")


def _write(path: Path, text: str) -> None:
    """A new file; not synced one by one, since a folder without its last file is no data set yet."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise write_error(path, error) from None
