"""COCO json, read and written: the only file that knows boxes as (x, y, width, height)."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ptedge.data.build import Counts, RawImage, build_dataset, image_pixels
from ptedge.data.classes import ANY_CLASS, ClassRules, class_table
from ptedge.data.coco_columns import CORNERS, annotation_columns, count_corners, keep_annotation
from ptedge.data.dataset import Dataset
from ptedge.data.locate import ImageFinder
from ptedge.data.parsing.documents import load_json
from ptedge.data.parsing.values import entry_id, name_text, shown
from ptedge.errors import InputError
from ptedge.files import write_json


def load_coco(path: Path) -> Any:
    """A JSON file; where it is COCO, without what is not read of its annotations.

    Raises:
        InputError: as :func:`~ptedge.data.parsing.documents.load_json`.
    """
    return load_json(path, keep_annotation)


def read_coco(path: Path, rules: ClassRules, images: Path | None = None) -> Dataset:
    """Read a COCO file; as :func:`coco_dataset`. Raises InputError."""
    return coco_dataset(load_coco(path), path, rules, images)


def coco_dataset(document: Any, path: Path, rules: ClassRules, images: Path | None = None) -> Dataset:
    """COCO annotations as a data set.

    Classes keep the order of the category ids, which may have gaps. ``iscrowd`` boxes become ignore regions. Images
    without annotations stay in. An annotation without ``bbox`` gets the box around its polygons.

    Args:
        document: as :func:`load_coco` gives it.
        path: json file.
        rules: classes wanted.
        images: folder of the images; ``None`` looks in the json's folder, its ``images/``, that folder's part of the
            json's name (``instances_train.json``: ``train``), and the same one level up.

    Raises:
        InputError: not COCO.
    """
    if not is_coco(document):
        raise InputError(f"{path} is no COCO file: it needs the lists images, annotations and categories")
    counts = Counts()
    names = _category_names(document["categories"], path)
    table = class_table(names.values(), rules, str(path))
    raw = _images(document["images"], path, images, counts)
    places = {key: i for i, key in enumerate(raw)}
    columns = annotation_columns(document["annotations"], places, names, path, counts)
    listed = list(raw.values())
    counts.notes[CORNERS] += count_corners(columns, listed)
    return build_dataset(path, "coco", listed, table, counts, declared=True, columns=columns)


def write_coco(dataset: Dataset, path: Path, *, description: str = "", licence: str = "unknown") -> None:
    """Write a data set as COCO json, whole or not at all.

    Paths inside the json's folder are written relative to it, others absolute. An ignore box is written as
    ``iscrowd`` 1; one that stands for every class is written once a class.

    Args:
        dataset: what to write; widths and heights must be known.
        path: json file.
        description: text for ``info``.
        licence: name for ``licenses``.

    Raises:
        InputError: an image's name is no UTF-8 text.
        OutputError: the file cannot be written.
    """
    images: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    for number, sample in enumerate(dataset.samples, start=1):
        name = _name_beside(path.parent, sample.path)
        if not name.isprintable() and name.encode("utf-8", "replace").decode() != name:
            raise InputError(f"image {shown(name)} has a name that is no UTF-8 text, so no JSON can hold it. Rename it")
        images.append(coco_image(number, name, sample.width, sample.height))
        for box, label, ignore in zip(
            sample.boxes.tolist(), sample.labels.tolist(), sample.ignore.tolist(), strict=True
        ):
            labels: Sequence[int] = range(len(dataset.class_names)) if label == ANY_CLASS else [label]
            for each in labels:
                annotations.append(coco_annotation(len(annotations) + 1, number, each, box, ignore))
    head = coco_head(dataset.class_names, {"id": 1, "name": licence}, {"description": description})
    write_json(path, {**head, "images": images, "annotations": annotations})


def _name_beside(folder: Path, file: Path) -> str:
    """A file's path below a folder, whether it is there itself or as a link; elsewhere the whole path."""
    for base, place in (
        (Path(os.path.abspath(folder)), Path(os.path.abspath(file))),
        (folder.resolve(), file.resolve()),
    ):
        if place.is_relative_to(base):
            return place.relative_to(base).as_posix()
    return str(file.resolve())


def coco_head(class_names: Sequence[str], licence: Mapping[str, Any], info: Mapping[str, Any]) -> dict[str, Any]:
    """What a COCO document says before its images and annotations; category ids are label + 1, as COCO counts.

    Args:
        class_names: names by label.
        licence: of all images, with ``id`` and ``name``.
        info: of the document.
    """
    categories = [{"id": i + 1, "name": name} for i, name in enumerate(class_names)]
    return {"info": dict(info), "licenses": [dict(licence)], "categories": categories}


def coco_image(number: int, file_name: str, width: int, height: int) -> dict[str, Any]:
    """An entry of ``images``, under the only licence.

    Args:
        number: its id, from 1.
        file_name: as the reader is to find it.
        width: pixels.
        height: pixels.
    """
    return {"id": number, "file_name": file_name, "width": width, "height": height, "license": 1}


def coco_annotation(
    number: int, image_id: int, label: int, box: Sequence[float], ignore: bool = False, digits: int | None = None
) -> dict[str, Any]:
    """An entry of ``annotations``.

    Args:
        number: its id, from 1.
        image_id: of its image.
        label: from 0.
        box: x1, y1, x2, y2 in pixels.
        ignore: the box stands for a crowd.
        digits: after the point; ``None`` for all.
    """
    x, y, width, height = xyxy_to_xywh(box)
    parts, area = [x, y, width, height], width * height
    if digits is not None:
        parts, area = [round(part, digits) for part in parts], round(area, digits)
    common = {"id": number, "image_id": image_id, "category_id": label + 1}
    return {**common, "bbox": parts, "area": area, "iscrowd": int(ignore)}


def coco_category_ids(path: Path, class_names: Sequence[str]) -> list[int | str] | None:
    """Ids that a COCO json gives to classes, by label; ``None`` where it is no COCO json or lacks one of them."""
    if path.suffix.lower() != ".json":
        return None
    document = load_json(path)
    if not is_coco(document):
        return None
    ids: dict[str, int | str] = {}
    for key, name in _category_names(document["categories"], path).items():
        ids.setdefault(name, key)
    return [ids[name] for name in class_names] if all(name in ids for name in class_names) else None


def is_coco(document: Any) -> bool:
    """Whether a JSON document has COCO's three lists."""
    keys = ("images", "annotations", "categories")
    return isinstance(document, dict) and all(isinstance(document.get(key), list) for key in keys)


def _category_names(categories: list[Any], path: Path) -> dict[int | str, str]:
    """Names by id, in the order of the ids, numbers before text."""
    names: dict[int | str, str] = {}
    for i, entry in enumerate(_typed(categories, "category", path, ("id", "name"))):
        key, name = _id_of(entry, "category", i, path), name_text(entry["name"])
        if name is None:
            raise InputError(f"{path}: category {i} has the name {shown(entry['name'])}; it must be text")
        if key in names:
            raise InputError(f"{path}: two categories have the id {key!r}")
        names[key] = name
    return dict(sorted(names.items(), key=lambda item: (isinstance(item[0], str), item[0])))


def _images(entries: list[Any], path: Path, folder: Path | None, counts: Counts) -> dict[int | str, RawImage]:
    entries = _typed(entries, "image", path, ("id", "file_name"))
    named = []
    for i, entry in enumerate(entries):
        name = name_text(entry["file_name"])
        if name is None:
            raise InputError(f"{path}: image {i} has the file_name {shown(entry['file_name'])}; it must be text")
        named.append((name,))
    files = ImageFinder(_folders(path, folder), counts, _below(path, folder)).find_all(named)
    raw: dict[int | str, RawImage] = {}
    for i, (entry, file) in enumerate(zip(entries, files, strict=True)):
        key = _id_of(entry, "image", i, path)
        if key in raw:
            raise InputError(f"{path}: two images have the id {key!r}")
        width, height = image_pixels(entry.get("width"), entry.get("height"), counts)
        raw[key] = RawImage(file, width, height, (), entry["id"] if isinstance(entry["id"], str) else key)
    return raw


def _folders(path: Path, images: Path | None) -> list[Path]:
    here, above = path.parent, path.parent.parent
    # annotations/instances_val2017.json goes with val2017/ or images/val2017/ beside the folder annotations/
    split = path.stem.rpartition("_")[2]
    if images is not None:
        return [images, images / split]
    return [base / part for base in (here, above) for part in ("", "images", split, f"images/{split}")]


def _below(path: Path, images: Path | None) -> list[Path]:
    if images is not None:
        return [images]
    return [path.parent.parent if path.parent.name in ("annotations", "labels") else path.parent]


def _typed(entries: list[Any], what: str, path: Path, keys: Sequence[str]) -> list[dict[str, Any]]:
    for i, entry in enumerate(entries):
        if not isinstance(entry, dict) or any(key not in entry for key in keys):
            raise InputError(f"{path}: {what} {i} needs the keys {', '.join(keys)}, got {shown(entry)}")
    return entries


def _id_of(entry: dict[str, Any], what: str, i: int, path: Path) -> int | str:
    key = entry_id(entry["id"])
    if key is None:
        raise InputError(f"{path}: {what} {i} has the id {shown(entry['id'])}; it must be a number or text")
    return key


def xywh_to_xyxy(box: tuple[float, float, float, float]) -> tuple[float, float, float, float]:
    """A box in COCO's form (x, y, width, height) as (x1, y1, x2, y2), pixels."""
    x, y, width, height = box
    return x, y, x + width, y + height


def xyxy_to_xywh(box: Sequence[float]) -> tuple[float, float, float, float]:
    """A box (x1, y1, x2, y2) in COCO's form (x, y, width, height), pixels."""
    x1, y1, x2, y2 = box
    return x1, y1, x2 - x1, y2 - y1
