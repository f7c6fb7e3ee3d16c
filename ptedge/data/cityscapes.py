"""Cityscapes and Foggy Cityscapes: boxes around the instance polygons of ``gtFine``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ptedge.data.build import RawBox, RawImage, build_dataset
from ptedge.data.classes import ClassRules, class_table
from ptedge.data.coco import load_json
from ptedge.data.dataset import Dataset
from ptedge.errors import InputError

# the eight classes with instances that the benchmark scores, in the order of its label ids
CLASSES = ("person", "rider", "car", "truck", "bus", "train", "motorcycle", "bicycle")

_ENDING = "_gtFine_polygons.json"
FOG_BETAS = (0.005, 0.01, 0.02)


def read_cityscapes(
    path: Path,
    rules: ClassRules,
    split: str | None = None,
    beta: float | None = None,
    annotations: Path | None = None,
    images: Path | None = None,
) -> Dataset:
    """Read ``gtFine/<split>/<city>/*_polygons.json`` with ``leftImg8bit`` (or ``leftImg8bit_foggy``) beside ``gtFine``.

    A box spans its polygon's vertices, clipped to the image. Labels that end in ``group`` (``cargroup``) are ignore
    regions of their class; objects marked deleted and labels without instances (road, sky) are left out.

    Args:
        path: folder that holds ``gtFine`` and ``leftImg8bit``.
        rules: classes wanted; without a list the eight instance classes of the benchmark.
        split: ``train``, ``val`` or ``test``; ``None`` takes ``train``.
        beta: fog density of Foggy Cityscapes, 0.005, 0.01 or 0.02; ``None`` for the clear images.
        annotations: folder of the polygons; ``None`` for ``gtFine``.
        images: folder of the images; ``None`` for ``leftImg8bit`` or ``leftImg8bit_foggy``.

    Raises:
        InputError: no polygons, or an unreadable file.
    """
    kind = "cityscapes" if beta is None else "foggy_cityscapes"
    polygons = annotations or path / "gtFine"
    pictures = images or path / ("leftImg8bit" if beta is None else "leftImg8bit_foggy")
    split = split or "train"
    files = sorted((polygons / split).glob(f"*/*{_ENDING}"))
    if not files:
        known = sorted(folder.name for folder in polygons.iterdir() if folder.is_dir()) if polygons.is_dir() else []
        raise InputError(
            f"{polygons / split} holds no <city>/*{_ENDING}. Splits in {polygons}: {', '.join(known) or 'none'}"
        )
    ending = "_leftImg8bit.png" if beta is None else f"_leftImg8bit_foggy_beta_{beta:g}.png"
    things = set(rules.classes or CLASSES) | set(rules.class_map) | set(rules.ignore) | set(CLASSES)
    raw = []
    for file in files:
        stem = file.name[: -len(_ENDING)]
        width, height, boxes = _read_file(file, things)
        image = pictures / split / file.parent.name / f"{stem}{ending}"
        raw.append(RawImage(image, width, height, boxes, stem))
    if rules.classes is None and not rules.class_map:
        rules = replace(rules, classes=tuple(name for name in CLASSES if name not in rules.ignore))
    return build_dataset(path, kind, raw, class_table(CLASSES, rules, str(path)), Counter(), declared=True)


def _read_file(file: Path, things: set[str]) -> tuple[int, int, list[RawBox]]:
    document = load_json(file)
    try:
        return int(document["imgWidth"]), int(document["imgHeight"]), _boxes(document["objects"], things)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"{file} is not of Cityscapes' form (imgWidth, imgHeight, objects): {error!r}") from None


def _boxes(objects: Sequence[Any], things: set[str]) -> list[RawBox]:
    boxes = []
    for item in objects:
        label, polygon = str(item.get("label", "")), item.get("polygon") or []
        name = label.removesuffix("group")
        if name not in things or item.get("deleted") or not polygon:
            continue
        xs, ys = [float(x) for x, _ in polygon], [float(y) for _, y in polygon]
        boxes.append(RawBox(name, (min(xs), min(ys), max(xs), max(ys)), label != name))
    return boxes
