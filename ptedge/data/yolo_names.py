"""Class names of YOLO data, and the files that hold them: ``data.yaml``, Darknet's ``obj.data``, ``classes.txt``."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath
from typing import Any

from ptedge.data.classes import ClassRules
from ptedge.data.locate import is_picture
from ptedge.data.parsing.documents import read_lines
from ptedge.data.parsing.values import shown
from ptedge.data.parsing.yaml_file import load_yaml
from ptedge.data.splits import is_part
from ptedge.errors import InputError

NAME_FILES = ("classes.txt", "labels.txt", "obj.names")


def read_data_file(path: Path) -> tuple[dict[str, Any], dict[int, str]]:
    """A ``data.yaml`` or ``obj.data``: its keys, and the class names by id.

    Raises:
        InputError: unreadable, or without usable names.
    """
    if path.suffix.lower() != ".data":
        content = load_yaml(path)
        names = _names(content.get("names"), path)
        _check_count(content.get("nc"), "nc", names, path)
        return content, names
    content = {}
    for line in read_lines(path):
        key, mark, value = line.partition("=")
        if mark:
            content[key.strip()] = value.strip()
    named = str(content.get("names", ""))
    file = find_place(named, [path.parent])
    if not named or file is None or not file.is_file():
        raise InputError(f"{path} points to the class names {shown(named)}, which do not exist")
    names = dict(enumerate(read_names(file)))
    _check_count(content.get("classes"), "classes", names, path)
    return content, names


def find_place(name: str, folders: list[Path]) -> Path | None:
    """A file or folder that a data file names: below one of the folders, if need be without leading folders.

    Exported files often say ``../train/images`` or ``data/train.txt`` though ``train`` lies beside them.
    """
    text = name.replace("\\", "/")
    parts = [part for part in PurePosixPath(text).parts if part not in ("..", "/")]
    candidates = [folder / text for folder in folders]
    candidates += [folder.joinpath(*parts[start:]) for start in range(len(parts)) for folder in reversed(folders)]
    return next((candidate for candidate in candidates if os.path.exists(candidate)), None)


def find_names(path: Path) -> Path | None:
    """File with the class names of a folder of labels, in it or one level up."""
    folders = (path, path / "labels", path.parent)
    return next((folder / name for folder in folders for name in NAME_FILES if (folder / name).is_file()), None)


def folder_names(path: Path, file: Path | None, rules: ClassRules) -> dict[int, str]:
    """Class names by id of a folder of labels; none where the ids themselves are the names.

    Raises:
        InputError: nothing names the classes.
    """
    if file is not None:
        return dict(enumerate(read_names(file)))
    if rules.class_map:
        return {}
    if rules.classes:
        return dict(enumerate(rules.classes))
    raise InputError(
        f"{path} has YOLO labels but no class names. Put them into {path / 'classes.txt'}, one a line in the order "
        "of their ids, or list them in a TOML description (classes = [...])"
    )


def read_names(file: Path) -> list[str]:
    """Class names, one a line; empty lines are allowed only at the end, since they would shift the ids.

    Raises:
        InputError: unreadable, or an empty line between names.
    """
    names = read_lines(file)
    while names and not names[-1]:
        names.pop()
    if not all(names):
        raise InputError(f"{file} line {names.index('') + 1} is empty; each line names the class of its number")
    return names


def is_image_list(file: Path) -> bool:
    """Whether a text file is called as a part and its first line names an image."""
    return is_part(file.stem) and is_picture(next((line for line in read_lines(file) if line), "").rpartition("/")[2])


def text_value(value: object, key: str, path: Path) -> str:
    """A path in a data file.

    Raises:
        InputError: it is no text.
    """
    if not isinstance(value, str):
        raise InputError(f"{path}: {key} holds {shown(value)}; it must be a path, or for a split a list of paths")
    return value


def _names(value: object, path: Path) -> dict[int, str]:
    if isinstance(value, dict) and value and all(_is_id(key) for key in value):
        names = {int(key): name for key, name in sorted(value.items(), key=lambda item: int(item[0]))}
    elif isinstance(value, list) and value:
        names = dict(enumerate(value))
    else:
        raise InputError(f"{path} has no class names (names: [car, ...], or one 'id: name' a line)")
    for number, name in names.items():
        if not isinstance(name, str) or not name.strip():
            raise InputError(f"{path}: the name of class {number} is {shown(name)}; it must be text (null in quotes)")
    return names


def _check_count(count: object, key: str, names: dict[int, str], path: Path) -> None:
    if count is not None and str(count) != str(len(names)):
        told = str(count)[:20]
        raise InputError(f"{path} names {len(names)} classes, but {key} says {told}. Correct the one that is wrong")


def _is_id(text: object) -> bool:
    """Whether a key of ``names`` is a class id as programs and people write it: 0, 1, ..."""
    return isinstance(text, str) and text.isascii() and text.isdecimal() and len(text) < 10
