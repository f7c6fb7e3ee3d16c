"""BDD100k label files: one JSON list of frames with their labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ptedge.data.build import RawBox, RawImage, build_dataset, number_box
from ptedge.data.classes import ClassRules, class_table
from ptedge.data.coco import load_json
from ptedge.data.dataset import Dataset
from ptedge.data.locate import ImageFinder
from ptedge.errors import InputError

# categories of the label files that the benchmark itself leaves out of its score
_IGNORED = frozenset({"other person", "other vehicle", "trailer"})
# areas and lines, not objects
_NO_OBJECTS = ("area/", "lane/", "drivable area", "lane")


def read_bdd100k(path: Path, rules: ClassRules, images: Path | None = None) -> Dataset:
    """Read a BDD100k label file.

    ``box2d`` is taken as xyxy pixels; a label with closed polygons only gets the box around them. ``crowd`` and the
    categories outside the benchmark (other person, other vehicle, trailer) become ignore regions. Classes are those
    that occur, sorted, unless the rules list them.

    Args:
        path: json file.
        rules: classes wanted.
        images: folder of the images; ``None`` looks beside the json, in ``images/``, and the same one level up.

    Raises:
        InputError: unreadable, or not of this form.
    """
    frames = frames_of(load_json(path))
    if frames is None:
        raise InputError(f"{path} is no BDD100k label file: expected a list of frames with name and labels")
    here, above = path.parent, path.parent.parent
    finder = ImageFinder([images] if images else [here, here / "images", above, above / "images"])
    dropped: Counter[str] = Counter()
    raw = []
    for frame in frames:
        name, video = str(frame["name"]), frame.get("videoName")
        file = finder.find(name)
        if not file.is_file() and video:  # tracking images lie in a folder a video
            inside = finder.find(f"{video}/{name}")
            file = inside if inside.is_file() else file
        size = frame.get("size") or {}
        try:
            boxes = _boxes(frame.get("labels") or (), dropped)
        except (AttributeError, TypeError, ValueError) as error:
            raise InputError(f"{path}: the labels of {name} are not of BDD100k's form ({error})") from None
        raw.append(RawImage(file, int(size.get("width", 0)), int(size.get("height", 0)), boxes, name))
    rules = replace(rules, ignore=rules.ignore | _IGNORED - set(rules.classes or ()) - set(rules.class_map))
    found = sorted({box.name for image in raw for box in image.boxes})
    return build_dataset(
        path, "bdd100k", raw, class_table(found, rules, str(path)), dropped, declared=bool(rules.classes)
    )


def frames_of(document: Any) -> list[dict[str, Any]] | None:
    """The frames of a BDD100k document, or ``None`` if it is something else."""
    frames = document.get("frames") if isinstance(document, dict) else document
    if not isinstance(frames, list) or not frames:
        return None
    if not all(isinstance(frame, dict) and "name" in frame and "labels" in frame for frame in frames):
        return None
    return frames


def _boxes(labels: Sequence[Any], dropped: Counter[str]) -> list[RawBox]:
    boxes = []
    for label in labels:
        name = str(label.get("category", ""))
        if name.startswith(_NO_OBJECTS):
            continue
        corners = label.get("box2d")
        polygons = label.get("poly2d") or ()
        if corners:
            box = number_box([corners.get(side) for side in ("x1", "y1", "x2", "y2")])
        elif polygons and all(polygon.get("closed", True) for polygon in polygons):
            points = [point for polygon in polygons for point in polygon.get("vertices", ())]
            xs, ys = [x for x, _ in points], [y for _, y in points]
            box = number_box([min(xs), min(ys), max(xs), max(ys)]) if points else None
        else:
            box = None
        if box is None:
            dropped["malformed box"] += 1
        else:
            boxes.append(RawBox(name, box, bool((label.get("attributes") or {}).get("crowd", False))))
    return boxes
