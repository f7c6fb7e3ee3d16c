"""Boxes that another detector found, read from a COCO file: a document with scores, or a results list."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptedge.data.coco import xywh_to_xyxy
from ptedge.data.parsing.documents import load_json
from ptedge.data.parsing.values import entry_id, name_text, number_box, shown
from ptedge.errors import InputError

Key = int | str  # of an image: its file name, or the id that stands for one


@dataclass(frozen=True)
class FoundBoxes:
    """Boxes found in one image.

    Attributes:
        boxes: [N, 4] float32 xyxy in pixels of the image.
        scores: [N] float32 in [0, 1].
        labels: [N] int64.
        size: (width, height) of the image as the file has it; ``None`` where it does not say.
    """

    boxes: NDArray[np.float32]
    scores: NDArray[np.float32]
    labels: NDArray[np.int64]
    size: tuple[int, int] | None = None

    def __len__(self) -> int:
        return len(self.boxes)


NO_BOXES = FoundBoxes(np.zeros((0, 4), np.float32), np.zeros(0, np.float32), np.zeros(0, np.int64))


@dataclass(frozen=True)
class ForeignFile:
    """What a file of another detector's boxes holds.

    Attributes:
        path: of it.
        images: file name, or number that stands for one -> the boxes found there, which may be none.
        dropped: reasons and counts of boxes left out.
        notes: what was taken for granted, one line each.
    """

    path: Path
    images: Mapping[Key, FoundBoxes]
    dropped: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def num_boxes(self) -> int:
        """In all images."""
        return sum(len(found) for found in self.images.values())


def read_foreign(
    path: Path, class_names: Sequence[str], class_map: Mapping[str, str] | None = None, listing: Path | None = None
) -> ForeignFile:
    """Read what another detector found.

    Args:
        path: COCO json. Either a document (``images``, ``categories``, ``annotations`` with ``score``), as ``ptedge run
            --save coco`` writes it, or a results list (``image_id``, ``category_id``, ``bbox``, ``score``); an entry of
            the list may have its ``file_name``, else ``image_id`` is the file's name, its name without suffix, or a
            number that is its name without suffix.
        class_names: of the detector that is to learn; boxes of other classes are left out and counted.
        class_map: name or number of a category in the file -> name of the class.
        listing: COCO document whose ``images`` and ``categories`` a results list speaks of, such as the labels it was
            made for; its boxes are not looked at.

    Raises:
        InputError: unreadable, neither of both, a score that is none in [0, 1], or no box of any class.
    """
    document = load_json(path)
    told = document if listing is None else load_json(listing)
    if isinstance(document, dict) and not isinstance(document.get("annotations"), list):
        raise InputError(f"{path} holds no detections: a COCO document has a list annotations, results are a list")
    if not isinstance(document, (dict, list)):
        raise InputError(f"{path} holds no detections: it is neither a COCO document nor a results list")
    if listing is not None and not isinstance(told, dict):
        raise InputError(f"{listing} is no COCO document, so it names no images")
    reading = _Reading(path, class_names, class_map or {}, told if isinstance(told, dict) else {})
    for i, entry in enumerate(document["annotations"] if isinstance(document, dict) else document):
        reading.add(i, entry)
    return reading.file()


class _Reading:
    """Entries by image, while a file is read."""

    def __init__(
        self, path: Path, class_names: Sequence[str], class_map: Mapping[str, str], told: Mapping[str, Any]
    ) -> None:
        self.path = path
        self.class_names = class_names
        self.class_map = class_map
        self.images = {entry_id(i["id"]): i for i in _entries(told.get("images"))}
        self.categories = {entry_id(c["id"]): c.get("name") for c in _entries(told.get("categories"))}
        self.rows: dict[Key, list[tuple[tuple[float, ...], float, int]]] = {}
        self.sizes: dict[Key, tuple[int, int] | None] = {}
        self.dropped: Counter[str] = Counter()
        self.others: Counter[str] = Counter()
        for image in self.images.values():
            self._image(image.get("file_name"), image)

    def add(self, i: int, entry: Any) -> None:
        """Take an entry, or count why not.

        Raises:
            InputError: it is none, or its score is none.
        """
        if not isinstance(entry, dict) or not {"image_id", "category_id", "bbox"} <= entry.keys():
            raise InputError(f"{self.path}: entry {i} needs image_id, category_id, bbox and score, got {shown(entry)}")
        score = entry.get("score")
        if isinstance(score, bool) or not isinstance(score, (int, float)) or not 0 <= score <= 1:
            raise InputError(
                f"{self.path}: entry {i} has the score {shown(score)}; it must be a number from 0 to 1 (a probability, "
                f"no logit and no per cent)"
            )
        box = number_box(entry["bbox"])
        if box is None:
            given = shown(entry["bbox"])
            raise InputError(f"{self.path}: entry {i} has the bbox {given}; it must be x, y, width, height")
        key = self._key(i, entry)
        if key is None:
            self.dropped["image id not listed"] += 1
        elif (label := self._label(i, entry["category_id"])) is None:
            return
        elif box[2] <= 0 or box[3] <= 0:
            self.dropped["no area"] += 1
        else:
            self.rows.setdefault(key, []).append((xywh_to_xyxy(box), float(score), label))

    def file(self) -> ForeignFile:
        """All that was read.

        Raises:
            InputError: not one box.
        """
        if self.others:
            names = ", ".join(f"{count} {name}" for name, count in self.others.most_common(6))
            more = ", ..." if len(self.others) > 6 else ""
            self.dropped[f"of classes that the checkpoint has not ({names}{more})"] = sum(self.others.values())
        if not any(self.rows.values()):
            why = "; ".join(f"{count} {reason}" for reason, count in self.dropped.items()) or "it is empty"
            raise InputError(
                f"{self.path} holds no box of {', '.join(self.class_names)}: {why}. Connect other names with "
                f"teacher_boxes.class_map"
            )
        notes = []
        if not self.categories:
            names = ", ".join(f"{i} {name}" for i, name in enumerate(self.class_names, start=1))
            notes.append(f"{self.path} names no categories: their numbers are taken as COCO counts, {names}")
        images = {key: _found(rows, self.sizes.get(key)) for key, rows in self.rows.items()}
        return ForeignFile(self.path, images, dict(self.dropped), tuple(notes))

    def _image(self, name: object, image: Mapping[str, Any]) -> Key | None:
        key = name_text(name)
        if key is not None and key not in self.rows:
            width, height = image.get("width"), image.get("height")
            known = isinstance(width, int) and isinstance(height, int) and width > 0 and height > 0
            self.rows[key] = []
            self.sizes[key] = (width, height) if known else None  # type: ignore[assignment]
        return key

    def _key(self, i: int, entry: Mapping[str, Any]) -> Key | None:
        image_id = entry_id(entry["image_id"])
        if image_id in self.images:
            return name_text(self.images[image_id].get("file_name"))
        if self.images:
            return None
        if (name := name_text(entry.get("file_name"))) is not None:
            return name
        if image_id is None:
            given = shown(entry["image_id"])
            raise InputError(f"{self.path}: entry {i} has the image_id {given}; it must be a number or text")
        return image_id

    def _label(self, i: int, category: Any) -> int | None:
        number = entry_id(category)
        name = self.categories.get(number)
        if name is None and number is not None:
            if self.categories:
                self.dropped["category id not listed"] += 1
                return None
            counted = isinstance(number, int) and 1 <= number <= len(self.class_names)
            name = self.class_names[int(number) - 1] if counted else str(number)
        ours = self.class_map.get(str(number), self.class_map.get(str(name), name))
        if ours in self.class_names:
            return self.class_names.index(ours)
        if name is None:
            given = shown(category)
            raise InputError(f"{self.path}: entry {i} has the category_id {given}; it must be a number or text")
        self.others[str(name)] += 1
        return None


def _entries(values: Any) -> Iterable[dict[str, Any]]:
    return [value for value in values if isinstance(value, dict) and "id" in value] if isinstance(values, list) else []


def _found(rows: Sequence[tuple[tuple[float, ...], float, int]], size: tuple[int, int] | None) -> FoundBoxes:
    return FoundBoxes(
        np.array([box for box, _, _ in rows], np.float32).reshape(-1, 4),
        np.array([score for _, score, _ in rows], np.float32),
        np.array([label for _, _, label in rows], np.int64),
        size,
    )
