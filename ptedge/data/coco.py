"""COCO json, read and written: the only file that knows boxes as (x, y, width, height)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ptedge.data.build import RawBox, RawImage, build_dataset, number_box
from ptedge.data.classes import ANY_CLASS, ClassRules, class_table
from ptedge.data.dataset import Dataset
from ptedge.data.locate import ImageFinder
from ptedge.errors import InputError
from ptedge.files import write_json


def read_coco(path: Path, rules: ClassRules, images: Path | None = None) -> Dataset:
    """Read COCO annotations.

    Classes keep the order of the category ids, which may have gaps. ``iscrowd`` boxes become ignore regions. Images
    without annotations stay in.

    Args:
        path: json file.
        rules: classes wanted.
        images: folder of the images; ``None`` looks in the json's folder, its ``images/``, and the same one level up.

    Raises:
        InputError: unreadable, or not COCO.
    """
    document = load_json(path)
    if not is_coco(document):
        raise InputError(f"{path} is no COCO file: it needs the lists images, annotations and categories")
    categories = sorted(_typed(document["categories"], path, ("id", "name")), key=lambda category: category["id"])
    names = {category["id"]: str(category["name"]) for category in categories}
    table = class_table(names.values(), rules, str(path))

    finder = ImageFinder(_folders(path, images))
    raw: dict[Any, RawImage] = {}
    for entry in _typed(document["images"], path, ("id", "file_name")):
        if entry["id"] in raw:
            raise InputError(f"{path}: two images have the id {entry['id']}")
        file = finder.find(str(entry["file_name"]))
        raw[entry["id"]] = RawImage(file, _pixels(entry, "width"), _pixels(entry, "height"), [], entry["id"])

    dropped: Counter[str] = Counter()
    for entry in _typed(document["annotations"], path, ("image_id", "category_id")):
        image, name, box = raw.get(entry["image_id"]), names.get(entry["category_id"]), number_box(entry.get("bbox"))
        if image is None:
            dropped["image id not listed"] += 1
        elif name is None:
            dropped["category id not listed"] += 1
        elif box is None:
            dropped["malformed box"] += 1
        else:
            image.boxes.append(RawBox(name, _xywh_to_xyxy(box), bool(entry.get("iscrowd", 0))))
    return build_dataset(path, "coco", raw.values(), table, dropped, declared=True)


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
        OutputError: the file cannot be written.
    """
    folder = path.resolve().parent
    images: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    for number, sample in enumerate(dataset.samples, start=1):
        file = sample.path.resolve()
        name = file.relative_to(folder).as_posix() if file.is_relative_to(folder) else str(file)
        images.append(coco_image(number, name, sample.width, sample.height))
        for box, label, ignore in zip(
            sample.boxes.tolist(), sample.labels.tolist(), sample.ignore.tolist(), strict=True
        ):
            labels: Sequence[int] = range(len(dataset.class_names)) if label == ANY_CLASS else [label]
            for each in labels:
                annotations.append(coco_annotation(len(annotations) + 1, number, each, box, ignore))
    head = coco_head(dataset.class_names, {"id": 1, "name": licence}, {"description": description})
    write_json(path, {**head, "images": images, "annotations": annotations})


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


def coco_category_ids(path: Path, class_names: Sequence[str]) -> list[int] | None:
    """Ids that a COCO json gives to classes, by label; ``None`` where it is no COCO json or lacks one of them."""
    if path.suffix.lower() != ".json":
        return None
    document = load_json(path)
    if not is_coco(document):
        return None
    ids = {str(category["name"]): int(category["id"]) for category in document["categories"]}
    return [ids[name] for name in class_names] if all(name in ids for name in class_names) else None


def is_coco(document: Any) -> bool:
    """Whether a JSON document has COCO's three lists."""
    keys = ("images", "annotations", "categories")
    return isinstance(document, dict) and all(isinstance(document.get(key), list) for key in keys)


def load_json(path: Path) -> Any:
    """Read a JSON file the user named.

    Raises:
        InputError: unreadable or no JSON.
    """
    try:
        return json.loads(path.read_bytes())
    except OSError as error:
        raise InputError(f"annotations {path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise InputError(f"{path} is not valid JSON: {error}") from None


def _folders(path: Path, images: Path | None) -> list[Path]:
    if images is not None:
        return [images]
    here, above = path.parent, path.parent.parent
    # annotations/instances_val2017.json goes with val2017/ beside the folder annotations/
    split = path.stem.rpartition("_")[2]
    return [here, here / "images", here / split, above, above / "images", above / split]


def _typed(entries: list[Any], path: Path, keys: Sequence[str]) -> list[dict[str, Any]]:
    for i, entry in enumerate(entries):
        if not isinstance(entry, dict) or any(key not in entry for key in keys):
            raise InputError(f"{path}: entry {i} needs the keys {', '.join(keys)}, got {str(entry)[:80]}")
    return entries


def _pixels(entry: dict[str, Any], key: str) -> int:
    value = entry.get(key)
    return int(value) if isinstance(value, (int, float)) and value > 0 else 0


def _xywh_to_xyxy(box: tuple[float, float, float, float]) -> tuple[float, float, float, float]:
    x, y, width, height = box
    return x, y, x + width, y + height


def xyxy_to_xywh(box: Sequence[float]) -> tuple[float, float, float, float]:
    """A box (x1, y1, x2, y2) in COCO's form (x, y, width, height), pixels."""
    x1, y1, x2, y2 = box
    return x1, y1, x2 - x1, y2 - y1
