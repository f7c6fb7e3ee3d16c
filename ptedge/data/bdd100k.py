"""BDD100k label files: one JSON list of frames with their labels, or the older form with one JSON a frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ptedge.data.build import MALFORMED, Counts, RawBox, RawImage, build_dataset, image_pixels
from ptedge.data.classes import ClassRules, class_table
from ptedge.data.dataset import Dataset
from ptedge.data.locate import ImageFinder
from ptedge.data.parsing.documents import load_json
from ptedge.data.parsing.values import Box, flag, name_text, number_box, outline_box, shown
from ptedge.errors import InputError

# categories of the label files that the benchmark itself leaves out of its score
_IGNORED = frozenset({"other person", "other vehicle", "trailer"})
NO_ATTRIBUTES: Mapping[str, str] = MappingProxyType({})
# areas and lines, not objects
_NO_OBJECTS = ("area/", "lane/", "drivable area", "lane")
# a frame without objects may have no labels at all; one of these keys tells it from other lists of named things
_FRAME_KEYS = frozenset({"labels", "attributes", "timestamp", "videoName", "frameIndex", "objects", "url"})


def read_bdd100k(
    path: Path, rules: ClassRules, images: Path | None = None, attributes: Mapping[str, str] = NO_ATTRIBUTES
) -> Dataset:
    """Read a BDD100k label file.

    ``box2d`` is taken as xyxy pixels; a label with closed polygons only gets the box around them. ``crowd`` and the
    categories outside the benchmark (other person, other vehicle, trailer) become ignore regions. Classes are those
    that occur, sorted, unless the rules list them.

    Args:
        path: json file, or a folder of json files with one frame each.
        rules: classes wanted.
        images: folder of the images; ``None`` looks beside the json, in ``images/``, and the same one level up.
        attributes: of the frames to read (``timeofday`` = ``daytime``); frames with others are left out, counted.

    Raises:
        InputError: unreadable, not of this form, or without a frame of these attributes.
    """
    frames = []
    for file in sorted(path.glob("*.json")) if path.is_dir() else [path]:
        own = frames_of(load_json(file))
        if own is None:
            raise InputError(f"{file} is no BDD100k label file: expected a list of frames with name and labels")
        frames += own
    here = path if path.is_dir() else path.parent
    above = here.parent
    counts = Counts()
    frames = _of_attributes(frames, attributes, path, counts)
    finder = ImageFinder([images] if images else [here, here / "images", above, above / "images"], counts)
    files = finder.find_all([_names(frame, path) for frame in frames])
    raw = []
    for frame, file in zip(frames, files, strict=True):
        size = frame.get("size")
        sides = (size.get("width"), size.get("height")) if isinstance(size, dict) else (size, size)
        width, height = image_pixels(*sides, counts)
        boxes = _boxes(_labels(frame, path), counts)
        raw.append(RawImage(file, width, height, boxes, _names(frame, path)[-1]))
    rules = replace(rules, ignore=rules.ignore | _IGNORED - set(rules.classes or ()) - set(rules.class_map))
    found = sorted({box.name for image in raw for box in image.boxes})
    table = class_table(found, rules, str(path))
    return build_dataset(path, "bdd100k", raw, table, counts, declared=bool(rules.classes))


def frames_of(document: Any) -> list[dict[str, Any]] | None:
    """The frames of a BDD100k document, or ``None`` if it is something else.

    Args:
        document: a list of frames, a dict with such a list as ``frames``, or one frame of the older form, whose
            ``frames`` hold its ``objects``.
    """
    frames = document.get("frames") if isinstance(document, dict) else document
    if not isinstance(frames, list) or not frames or not all(isinstance(frame, dict) for frame in frames):
        return None
    if isinstance(document, dict) and "name" in document and all("objects" in frame for frame in frames):
        return [{**frame, "name": document["name"]} for frame in frames] if len(frames) == 1 else None
    if not all("name" in frame and _FRAME_KEYS & set(frame) for frame in frames):
        # the config of the newer form tells what its frames are, however bare
        named = isinstance(document, dict) and "config" in document and all("name" in frame for frame in frames)
        return frames if named or _some_labelled(frames) else None
    return frames


def _of_attributes(
    frames: list[dict[str, Any]], wanted: Mapping[str, str], path: Path, counts: Counts
) -> list[dict[str, Any]]:
    kept = frames
    for name, value in wanted.items():
        found = [table.get(name) if isinstance(table := frame.get("attributes"), dict) else None for frame in kept]
        if value not in found:
            there = sorted({shown(other) for other in found if other is not None})
            raise InputError(f"{path} has no frame with {name} = {value!r}; there are {', '.join(there) or 'none'}")
        for other in found:
            if other != value:
                said = f"its {name} is {shown(other)}" if other is not None else f"it says no {name}"
                counts.notes[f"frame left out: {said}"] += 1
        kept = [frame for frame, other in zip(kept, found, strict=True) if other == value]
    return kept


def _some_labelled(frames: Sequence[dict[str, Any]]) -> bool:
    return all("name" in frame for frame in frames) and any(isinstance(frame.get("labels"), list) for frame in frames)


def _names(frame: dict[str, Any], path: Path) -> tuple[str, ...]:
    """Names of a frame's image: its own, and that in a folder for each video, as tracking has it."""
    name, video = name_text(frame["name"]), name_text(frame.get("videoName"))
    if name is None:
        raise InputError(f"{path}: a frame has the name {shown(frame['name'])}; it must be text")
    return (name,) if video is None else (f"{video}/{name}", name)


def _labels(frame: dict[str, Any], path: Path) -> Sequence[Any]:
    labels = frame.get("labels", frame.get("objects"))
    if labels is None:
        return ()
    if not isinstance(labels, list):
        raise InputError(f"{path}: the labels of {shown(frame['name'])} are no list, as BDD100k has it")
    return labels


def _boxes(labels: Sequence[Any], counts: Counts) -> list[RawBox]:
    boxes = []
    for label in labels:
        name = name_text(label.get("category")) if isinstance(label, dict) else None
        if name is None:
            counts.dropped["label without a category"] += 1
            continue
        if name.startswith(_NO_OBJECTS):
            continue
        attributes = label.get("attributes")
        crowd = flag(attributes.get("crowd")) if isinstance(attributes, dict) else False
        box = _box(label)
        if box is None:
            counts.dropped[MALFORMED] += 1
        elif crowd is None:
            counts.dropped["crowd is neither true nor false"] += 1
        else:
            boxes.append(RawBox(name, box, crowd))
    return boxes


def _box(label: dict[str, Any]) -> Box | None:
    corners, polygons = label.get("box2d"), label.get("poly2d")
    if corners:
        return number_box([corners.get(side) for side in ("x1", "y1", "x2", "y2")]) if type(corners) is dict else None
    if not isinstance(polygons, list) or not all(isinstance(polygon, dict) for polygon in polygons):
        return None
    if not all(polygon.get("closed", True) for polygon in polygons):
        return None
    points: list[Any] = []
    for polygon in polygons:
        vertices = polygon.get("vertices")
        if not isinstance(vertices, list):
            return None
        points += vertices
    return outline_box(points)
