"""YOLO text labels: ``class cx cy w h`` relative to the image, classes and splits in a ``data.yaml``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ptedge.data.build import RawBox, RawImage, build_dataset
from ptedge.data.classes import ClassRules, class_table
from ptedge.data.dataset import Dataset
from ptedge.data.locate import ImageFinder
from ptedge.data.yaml_file import load_yaml
from ptedge.errors import InputError
from ptedge.frames.files import natural_key
from ptedge.frames.images import image_size, is_image_name

NAME_FILES = ("classes.txt", "labels.txt", "obj.names")
_SPLITS = ("train", "val", "test")


def read_yolo(path: Path, rules: ClassRules, split: str | None = None) -> Dataset:
    """Read a ``data.yaml`` with the keys ``names``, ``train``, ``val`` (or ``test``) and ``path``.

    Label files lie where ``labels`` stands for ``images`` in an image's path, or beside the image. Images without a
    label file are images without objects. Sizes come from the image headers, because the boxes are relative.

    Args:
        path: yaml file.
        rules: classes wanted.
        split: ``train``, ``val`` or ``test``; ``None`` takes the first there is.

    Raises:
        InputError: unreadable, without names, a missing split, or a broken label line.
    """
    content = load_yaml(path)
    names = _names(content.get("names"), path)
    _check_count(content.get("nc"), names, path)
    splits = [key for key in _SPLITS if content.get(key)]
    if split is None:
        split = splits[0] if splits else "train"
    if split not in splits:
        raise InputError(f"{path} has no split {split!r}; it names {splits or 'none'}")
    base = path.parent / _text(content.get("path") or "", "path", path)
    if not base.is_dir():  # often the path on the machine where the file was written
        base = path.parent
    listed = content[split]
    places = listed if isinstance(listed, list) else [listed]
    images = [image for place in places for image in _images_at(base, path.parent, _text(place, split, path))]
    if not images:
        raise InputError(f"{path}: split {split!r} ({listed}) holds no image below {base}")
    return _build(path, [(image, _label_file(image)) for image in images], names, rules)


def read_yolo_folder(path: Path, rules: ClassRules, images: Path | None = None, names: Path | None = None) -> Dataset:
    """Read a folder of label files without a ``data.yaml``.

    Images without a label file count as images without objects where images lie beside the labels, or in ``images``
    beside ``labels``; in other layouts they are no part of the data.

    Class names come from ``classes.txt``, ``labels.txt`` or ``obj.names`` in the folder or the one above; else
    ``rules.classes`` are the names by id, or, with a ``class_map``, the ids themselves are the names ("0", "1", ...).

    Args:
        path: folder of ``.txt`` label files, or one that holds ``labels/``.
        rules: classes wanted.
        images: folder of the images; ``None`` looks beside the labels and in ``images`` around.
        names: file with one class name a line; ``None`` looks for it.

    Raises:
        InputError: no label file, no class names, or a broken label line.
    """
    folder = path / "labels" if (path / "labels").is_dir() else path
    labels = {file.stem: file for file in sorted(folder.glob("*.txt")) if file.name not in NAME_FILES}
    if not labels:
        raise InputError(f"{path} holds no YOLO label file (*.txt)")
    names = names or find_names(path)
    if names is not None:
        listed: Sequence[str] = [line.strip() for line in names.read_text("utf-8").splitlines() if line.strip()]
    elif rules.classes and not rules.class_map:
        listed = rules.classes
    elif rules.class_map:
        listed = []
    else:
        raise InputError(
            f"{path} has YOLO labels but no class names. Put them into {path / 'classes.txt'}, one a line in the order "
            "of their ids, or list them in a TOML description (classes = [...])"
        )
    folders = [images] if images else [folder, folder.parent / "images", folder / "images", folder.parent]
    finder = ImageFinder(folders)
    pairs: list[tuple[Path, Path | None]] = [(finder.find(f"{stem}.jpg"), file) for stem, file in labels.items()]
    # in YOLO's own layouts an image without a label file has no objects; elsewhere it may just not be labelled
    own = [folder, folder.parent / "images"] if folder.name == "labels" else [folder]
    known = {image for image, _ in pairs}
    for place in own if images is None else ():
        rest = [file for file in place.iterdir() if is_image_name(file)] if place.is_dir() else []
        pairs += [(file, None) for file in rest if file not in known]
    pairs.sort(key=lambda pair: natural_key(pair[0].name))
    return _build(path, pairs, dict(enumerate(listed)), rules)


def find_names(path: Path) -> Path | None:
    """File with the class names of a folder of labels, in it or one level up."""
    folders = (path, path / "labels", path.parent)
    return next((folder / name for folder in folders for name in NAME_FILES if (folder / name).is_file()), None)


def _build(root: Path, pairs: Sequence[tuple[Path, Path | None]], names: dict[int, str], rules: ClassRules) -> Dataset:
    dropped: Counter[str] = Counter()
    raw = [_read_pair(image, label, names, dropped) for image, label in pairs]
    declared = bool(names) or bool(rules.classes)
    found = list(names.values()) or sorted({box.name for image in raw for box in image.boxes}, key=natural_key)
    if not names and rules.classes is None:
        rules = replace(rules, classes=tuple(dict.fromkeys(rules.class_map.values())))
    return build_dataset(root, "yolo", raw, class_table(found, rules, str(root)), dropped, declared=declared)


def _read_pair(image: Path, label: Path | None, names: dict[int, str], dropped: Counter[str]) -> RawImage:
    lines = _lines(label) if label is not None else []
    try:
        width, height = image_size(image)
    except InputError:
        # the file is reported by check_images or `ptedge data check`; without its size there is no box in pixels
        dropped["image unreadable"] += len(lines)
        return RawImage(image, 0, 0, [], image.stem)
    boxes = []
    for where, values in lines:
        number = int(values[0])
        if names and number not in names:
            raise InputError(f"{where}: class {number} has no name; there are {len(names)} names")
        cx, cy, w, h = _relative_box(values[1:])
        box = ((cx - w / 2) * width, (cy - h / 2) * height, (cx + w / 2) * width, (cy + h / 2) * height)
        boxes.append(RawBox(names.get(number, str(number)), box))
    return RawImage(image, width, height, boxes, image.stem)


def _lines(label: Path) -> list[tuple[str, list[float]]]:
    parsed = []
    try:
        text = label.read_text("utf-8", "replace")
    except OSError as error:
        raise InputError(f"label file {label} cannot be read: {error.strerror}") from None
    for number, line in enumerate(text.splitlines(), start=1):
        where = f"{label} line {number}"
        try:
            values = [float(column) for column in line.split()]
        except ValueError:
            raise InputError(f"{where} is no YOLO label: {line[:60]!r}") from None
        if not values:
            continue
        # 5: a box; 6: a box with a score; an odd number from 7: a polygon
        if len(values) < 5 or (len(values) > 6 and len(values) % 2 == 0) or values[0] != int(values[0]):
            raise InputError(f"{where} is no YOLO label: expected class cx cy w h, got {line[:60]!r}")
        if len(values) <= 6 and max(values[1:5]) > 2:
            raise InputError(f"{where}: {line[:60]!r} is in pixels; YOLO labels are relative to the image (0 to 1)")
        parsed.append((where, values))
    return parsed


def _relative_box(values: Sequence[float]) -> tuple[float, float, float, float]:
    """Centre and size of a box, or of the box around a polygon."""
    if len(values) <= 5:
        return values[0], values[1], values[2], values[3]
    xs, ys = values[0::2], values[1::2]
    return (min(xs) + max(xs)) / 2, (min(ys) + max(ys)) / 2, max(xs) - min(xs), max(ys) - min(ys)


def _label_file(image: Path) -> Path | None:
    parts = list(image.parts)
    candidates = [image.with_suffix(".txt")]
    if "images" in parts[:-1]:
        last = len(parts) - 2 - parts[-2::-1].index("images")
        candidates.insert(0, Path(*parts[:last], "labels", *parts[last + 1 :]).with_suffix(".txt"))
    return next((candidate for candidate in candidates if candidate.is_file()), None)


def _images_at(base: Path, beside: Path, place: str) -> list[Path]:
    # exported files often say ../train/images though train/ lies beside the yaml
    candidates = [base / place, beside / place, beside / place.removeprefix("../")]
    found = next((candidate for candidate in candidates if candidate.exists()), None)
    if found is None:
        raise InputError(f"{place} does not exist below {base}")
    if found.is_dir():
        return sorted(
            (file for file in found.rglob("*") if is_image_name(file)), key=lambda file: natural_key(str(file))
        )
    names = (line.strip() for line in found.read_text("utf-8").splitlines())
    return [base / name for name in names if name]


def _names(value: object, path: Path) -> dict[int, str]:
    if isinstance(value, dict) and value and all(_is_id(key) for key in value):
        names = {int(key): name for key, name in sorted(value.items(), key=lambda item: int(item[0]))}
    elif isinstance(value, list) and value:
        names = dict(enumerate(value))
    else:
        raise InputError(f"{path} has no class names (names: [car, ...], or one 'id: name' a line)")
    for number, name in names.items():
        if not isinstance(name, str) or not name.strip():
            raise InputError(f"{path}: the name of class {number} is {name!r}; it must be text (in quotes for null)")
    return names


def _check_count(count: object, names: dict[int, str], path: Path) -> None:
    if count is not None and str(count) != str(len(names)):
        raise InputError(f"{path} names {len(names)} classes, but nc says {count}. Correct the one that is wrong")


def _text(value: object, key: str, path: Path) -> str:
    if not isinstance(value, str):
        raise InputError(f"{path}: {key} holds {value!r}; it must be a path, or for a split a list of paths")
    return value


def _is_id(text: object) -> bool:
    """Whether a key of ``names`` is a class id as PyYAML and people write it: 0, 1, ..."""
    return isinstance(text, str) and text.isascii() and text.isdecimal() and len(text) < 10
