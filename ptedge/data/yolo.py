"""YOLO text labels, ``class cx cy w h`` relative to the image; classes and splits in a ``data.yaml``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ptedge.data.build import Counts, RawBox, RawImage, build_dataset
from ptedge.data.classes import ClassRules, class_table
from ptedge.data.dataset import Dataset
from ptedge.data.locate import ImageFinder, count_unreadable, files_below, is_picture, pictures_in
from ptedge.data.parsing.documents import read_lines
from ptedge.data.parsing.values import shown
from ptedge.data.splits import Use, choose_split, is_part
from ptedge.data.yolo_lines import Line, find_forms, is_label_file, read_label, relative_box
from ptedge.data.yolo_names import (
    NAME_FILES,
    find_names,
    find_place,
    folder_names,
    is_image_list,
    read_data_file,
    text_value,
)
from ptedge.errors import InputError
from ptedge.frames.files import natural_key
from ptedge.frames.images import image_size

_SPLITS = ("train", "val", "valid", "test")


@dataclass(frozen=True)
class _Set:
    """What a YOLO data set holds, before its lines are read: images with their label files, names by id, the part."""

    root: Path
    pairs: Sequence[tuple[Path, Path | None]]
    names: dict[int, str]
    split: str | None = None
    kpt_shape: object = None


def read_yolo(path: Path, rules: ClassRules, split: str | None = None, use: Use = "look") -> Dataset:
    """Read a ``data.yaml`` with the keys ``names``, ``train``, ``val`` (or ``test``) and ``path``, or an ``obj.data``.

    A part is a folder of images, a text file with one image a line, an image, or a list of these. Label files lie where
    ``labels`` stands for ``images`` in an image's path, or beside the image. Images without a label file are images
    without objects. Sizes come from the image headers, because the boxes are relative.

    Args:
        path: yaml file, or a Darknet file of ``key = value`` lines.
        rules: classes wanted.
        split: ``train``, ``val`` or ``test``; ``None`` takes what ``use`` needs.
        use: what the data are for.

    Raises:
        InputError: unreadable, without names, a missing split, or a broken label line.
    """
    counts = Counts()
    content, names = read_data_file(path)
    split = choose_split([key for key in _SPLITS if content.get(key)], split, use, str(path))
    base = path.parent / text_value(content.get("path") or "", "path", path)
    if not os.path.isdir(base):  # often the path on the machine where the file was written
        base = path.parent
    listed = content[split]
    places = [text_value(place, split, path) for place in (listed if isinstance(listed, list) else [listed])]
    images = _images_at(places, base, path.parent, counts)
    if not images:
        raise InputError(f"{path}: split {split!r} ({shown(listed)}) holds no image below {base}")
    pairs = [(image, _label_file(image)) for image in images]
    return _build(_Set(path, pairs, names, split, content.get("kpt_shape")), rules, counts)


def read_yolo_folder(
    path: Path,
    rules: ClassRules,
    images: Path | None = None,
    names: Path | None = None,
    split: str | None = None,
    use: Use = "look",
) -> Dataset:
    """Read a folder of label files without a ``data.yaml``, its sub-folders included.

    Images without a label file count as images without objects where images lie beside the labels, or in ``images``
    beside ``labels``; in other layouts they are no part of the data. Sub-folders ``train``, ``val`` and ``test`` of
    ``labels``, or with a ``labels`` of their own, are parts.

    Class names come from ``classes.txt``, ``labels.txt`` or ``obj.names`` in the folder or the one above; else
    ``rules.classes`` are the names by id, or, with a ``class_map``, the ids themselves are the names ("0", "1", ...).

    Args:
        path: folder of ``.txt`` label files, or one that holds ``labels/``.
        rules: classes wanted.
        images: folder of the images; ``None`` looks beside the labels and in ``images`` around.
        names: file with one class name a line; ``None`` looks for it.
        split: name of a part; ``None`` takes what ``use`` needs, where there are parts.
        use: what the data are for.

    Raises:
        InputError: no label file, no class names, or a broken label line.
    """
    counts = Counts()
    folder = path / "labels" if (path / "labels").is_dir() else path
    lists = {file.stem: file for file in sorted(path.glob("*.txt")) if is_image_list(file)}
    parts = {place.name: place for place in sorted(folder.iterdir()) if place.is_dir() and is_part(place.name)}
    parts |= {p.name: p / "labels" for p in sorted(path.iterdir()) if is_part(p.name) and (p / "labels").is_dir()}
    listed = folder_names(path, names or find_names(path), rules)
    chosen = None
    if lists or parts or split is not None:
        chosen = choose_split([*lists, *parts], split, use, str(path))
    if chosen in lists:
        found = _images_at([str(lists[chosen].resolve())], path, path, counts)
        return _build(_Set(path, [(image, _label_file(image)) for image in found], listed, chosen), rules, counts)
    labels = parts[chosen] if chosen is not None else folder
    others = {*lists.values(), *(labels / name for name in NAME_FILES)}
    files = [file for file in sorted(labels.rglob("*.txt")) if file not in others]
    if not files:
        raise InputError(f"{path} holds no YOLO label file (*.txt)")
    pairs = _folder_pairs(labels, files, images, counts)
    return _build(_Set(path, pairs, listed, chosen), rules, counts)


def _build(found: _Set, rules: ClassRules, counts: Counts) -> Dataset:
    names = found.names
    read: dict[Path, list[Line]] = {}
    for _, label in found.pairs:
        if label is not None and label not in read:
            read[label] = read_label(label, counts)
    forms = find_forms((line for lines in read.values() for line in lines), found.kpt_shape, found.root)
    raw = []
    for image, label in found.pairs:
        lines = read[label] if label is not None else []
        counts.notes["image without a label file (taken as without objects)"] += label is None
        try:
            width, height = image_size(image)
        except InputError:
            # the file is reported by check_images or `ptedge data check`; without its size there is no box in pixels
            counts.dropped["image unreadable"] += len(lines)
            raw.append(RawImage(image, 0, 0, [], image.stem))
            continue
        boxes = []
        for line in lines:
            number = int(line.values[0])
            if names and number not in names:
                raise line.fault(f"class {number} has no name; there are {len(names)} names")
            cx, cy, w, h = relative_box(line, forms, counts)
            box = ((cx - w / 2) * width, (cy - h / 2) * height, (cx + w / 2) * width, (cy + h / 2) * height)
            boxes.append(RawBox(names.get(number, str(number)), box))
        raw.append(RawImage(image, width, height, boxes, image.stem))
    counts.notes["class name given to two ids"] += len(names) - len(set(names.values()))
    occurring = list(names.values()) or sorted({box.name for image in raw for box in image.boxes}, key=natural_key)
    declared = bool(names) or bool(rules.classes)
    if not names and rules.classes is None:
        rules = replace(rules, classes=tuple(dict.fromkeys(rules.class_map.values())))
    table = class_table(occurring, rules, str(found.root))
    return build_dataset(found.root, "yolo", raw, table, counts, declared=declared, split=found.split)


def _folder_pairs(
    labels: Path, files: Sequence[Path], images: Path | None, counts: Counts
) -> list[tuple[Path, Path | None]]:
    """Each image with its label file; a label file whose image is missing keeps the place where it was expected."""
    beside = [Path(*parts) for parts in _swapped(labels.parts, "labels", "images")]
    folders = [images] if images else [labels, *beside, labels.parent / "images", labels / "images", labels.parent]
    stems = [file.relative_to(labels).as_posix().removesuffix(file.suffix) for file in files]
    found = ImageFinder(folders, counts).find_all([(f"{stem}.jpg",) for stem in stems])
    pairs: list[tuple[Path, Path | None]] = list(zip(found, files, strict=True))
    known, by_stem = set(found), dict(zip(stems, files, strict=True))
    # in YOLO's own layouts an image without a label file has no objects; elsewhere it may just not be labelled
    own = [labels, *(beside or ([labels.parent / "images"] if labels.name == "labels" else []))]
    for place in dict.fromkeys(own) if images is None else ():
        below = [place, *(sub for sub in sorted(place.rglob("*")) if sub.is_dir())] if place.is_dir() else []
        for sub in below:
            rest = [file for file in pictures_in(sub) if file not in known]
            pairs += [(file, by_stem.get(os.path.splitext(file.relative_to(place).as_posix())[0])) for file in rest]
            count_unreadable(list(sub.iterdir()), counts)
    return sorted(pairs, key=lambda pair: natural_key(str(pair[0])))


def _images_at(places: Sequence[str], base: Path, beside: Path, counts: Counts) -> list[Path]:
    """Images of a part: those below a folder, those that a text file lists, or single ones."""
    images: list[Path] = []
    for place in places:
        found = find_place(place, [base, beside])
        if found is not None and found.is_dir():
            images += _images_below(found, counts)
        elif is_picture(place.replace("\\", "/").rpartition("/")[2]):
            images.append(ImageFinder([base, beside], counts).find(place))
        elif found is not None:
            images += _images_listed(found, base, beside, counts)
        else:
            raise InputError(f"{shown(place)} does not exist below {base}")
    unique = list(dict.fromkeys(images))
    counts.notes["image listed more than once (read once)"] += len(images) - len(unique)
    return unique


def _images_listed(listing: Path, base: Path, beside: Path, counts: Counts) -> list[Path]:
    names = [line for line in dict.fromkeys(read_lines(listing)) if line]
    # "./x" counts from the list's folder; of other names that folder is the second place
    dotted = [name.startswith(("./", ".\\")) for name in names]
    orders = {True: [listing.parent, base, beside], False: [base, listing.parent, beside]}
    found: dict[str, Path] = {}
    for kind, folders in orders.items():
        own = [name for name, here in zip(names, dotted, strict=True) if here is kind]
        files = ImageFinder(folders, counts).find_all([(name,) for name in own])
        found |= dict(zip(own, files, strict=True))
    return [found[name] for name in names]


def _images_below(folder: Path, counts: Counts) -> list[Path]:
    files = files_below(folder)
    images = sorted((file for file in files if is_picture(file.name)), key=lambda file: natural_key(str(file)))
    count_unreadable(files, counts)
    used = {_label_file(image) for image in images}
    homes = [Path(*parts) for parts in _swapped(folder.parts, "images", "labels")]
    texts = {file for home in (*homes, folder) for file in home.rglob("*.txt")} - used
    counts.passed_over["label file without an image"] += sum(map(is_label_file, texts))
    return images


def _swapped(parts: Sequence[str], old: str, new: str) -> list[list[str]]:
    """A path's parts with the last ``old`` replaced; nothing where there is none."""
    if old not in parts:
        return []
    last = len(parts) - 1 - list(parts)[::-1].index(old)
    return [[*parts[:last], new, *parts[last + 1 :]]]


def _label_file(image: Path) -> Path | None:
    places = [*(Path(*parts) for parts in _swapped(image.parts[:-1], "images", "labels")), image.parent]
    candidates = [place / f"{os.path.splitext(image.name)[0]}.txt" for place in places]
    return next((candidate for candidate in candidates if os.path.isfile(candidate)), None)
