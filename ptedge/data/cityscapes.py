"""Cityscapes and Foggy Cityscapes: boxes around the instance polygons of ``gtFine``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ptedge.data.build import MALFORMED, Counts, RawBox, RawImage, build_dataset, image_pixels
from ptedge.data.classes import ClassRules, class_table
from ptedge.data.columns import NOT_LISTED
from ptedge.data.dataset import Dataset
from ptedge.data.locate import ImageFinder
from ptedge.data.parsing.documents import load_json
from ptedge.data.parsing.values import flag, name_text, outline_box
from ptedge.data.splits import Use, choose_split
from ptedge.errors import InputError

# the eight classes with instances that the benchmark scores, in the order of its label ids
CLASSES = ("person", "rider", "car", "truck", "bus", "train", "motorcycle", "bicycle")

# its other labels; what is none of either is another data set's, or a slip of the pen
_OTHER_LABELS = frozenset(
    """unlabeled, ego vehicle, rectification border, out of roi, static, dynamic, ground, road, sidewalk, parking,
    rail track, building, wall, fence, guard rail, bridge, tunnel, pole, polegroup, traffic light, traffic sign,
    vegetation, terrain, sky, caravan, trailer, license plate""".replace("\n    ", " ").split(", ")
)

_ENDING = "_gtFine_polygons.json"
FOG_BETAS = (0.005, 0.01, 0.02)


def read_cityscapes(
    path: Path,
    rules: ClassRules,
    split: str | None = None,
    betas: Sequence[float] = (),
    annotations: Path | None = None,
    images: Path | None = None,
    use: Use = "look",
) -> Dataset:
    """Read ``gtFine/<split>/<city>/*_polygons.json`` with ``leftImg8bit`` (or ``leftImg8bit_foggy``) beside ``gtFine``.

    A box spans its polygon's vertices, clipped to the image. Labels that end in ``group`` (``cargroup``) are ignore
    regions of their class; objects marked deleted and labels without instances (road, sky) are left out.

    Args:
        path: folder that holds ``gtFine`` and ``leftImg8bit``.
        rules: classes wanted; without a list the eight instance classes of the benchmark.
        split: ``train``, ``val`` or ``test``; ``None`` takes ``train``, or for scoring ``val``.
        betas: fog densities of Foggy Cityscapes, of 0.005, 0.01 and 0.02; none for the clear images. Several give every
            scene in each of them.
        annotations: folder of the polygons; ``None`` for ``gtFine``.
        images: folder of the images; ``None`` for ``leftImg8bit`` or ``leftImg8bit_foggy``.
        use: what the data are for.

    Raises:
        InputError: no polygons, or an unreadable file.
    """
    kind = "foggy_cityscapes" if betas else "cityscapes"
    polygons = annotations or path / "gtFine"
    pictures = images or path / ("leftImg8bit_foggy" if betas else "leftImg8bit")
    splits = sorted(folder.name for folder in polygons.iterdir() if folder.is_dir()) if polygons.is_dir() else []
    split = choose_split(splits, split, use, str(polygons))
    files = sorted((polygons / split).glob(f"*/*{_ENDING}"))
    if not files:
        raise InputError(f"{polygons / split} holds no <city>/*{_ENDING}")
    views = [f"_foggy_beta_{beta:g}" for beta in betas] or [""]
    counts = Counts()
    entries = [(file, file.name[: -len(_ENDING)], view) for file in files for view in views]
    names = [(f"{file.parent.name}/{stem}_leftImg8bit{view}.png",) for file, stem, view in entries]
    found = iter(ImageFinder([pictures / split], counts, [pictures]).find_all(names))
    things = set(rules.classes or CLASSES) | set(rules.class_map) | set(rules.ignore) | set(CLASSES)
    raw = []
    for file in files:
        width, height, boxes = _read_file(file, things, counts)
        stem = file.name[: -len(_ENDING)]
        raw += [RawImage(next(found), width, height, list(boxes), f"{stem}{view}") for view in views]
    if rules.classes is None and not rules.class_map:
        rules = replace(rules, classes=tuple(name for name in CLASSES if name not in rules.ignore))
    return build_dataset(path, kind, raw, class_table(CLASSES, rules, str(path)), counts, declared=True, split=split)


def _read_file(file: Path, things: set[str], counts: Counts) -> tuple[int, int, list[RawBox]]:
    document = load_json(file)
    objects = document.get("objects") if isinstance(document, dict) else None
    if not isinstance(objects, list) or "imgWidth" not in document or "imgHeight" not in document:
        raise InputError(f"{file} is not of Cityscapes' form (imgWidth, imgHeight, and a list of objects)")
    boxes = []
    for item in objects:
        box = _raw_box(item, things, counts)
        if box is not None:
            boxes.append(box)
    return *image_pixels(document["imgWidth"], document["imgHeight"], counts), boxes


def _raw_box(item: Any, things: set[str], counts: Counts) -> RawBox | None:
    label = name_text(item.get("label")) if isinstance(item, dict) else None
    if label is None:
        counts.dropped["object without a label"] += 1
        return None
    deleted, name = flag(item.get("deleted")), label.removesuffix("group")
    if deleted or (label in _OTHER_LABELS and name not in things):
        return None
    box = outline_box(item.get("polygon"))
    if name not in things:
        counts.dropped[f"{NOT_LISTED}{label}"] += 1
    elif deleted is None:
        counts.dropped["deleted is neither 0 nor 1"] += 1
    elif box is None:
        counts.dropped[MALFORMED] += 1
    else:
        return RawBox(name, box, label != name)
    return None
