"""Parts of a data set (train, val, test): the one asked for, or the one that fits the purpose."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Literal

from ptedge.data.parsing.documents import read_lines
from ptedge.errors import InputError

# what the data are opened for: to learn from, to score on, or only to look at
Use = Literal["train", "score", "look"]

KNOWN = ("train", "val", "test", "trainval")

_ORDER: dict[Use, tuple[str, ...]] = {
    "train": ("train", "trainval"),
    "score": ("val", "test"),
    "look": ("train", "val", "test", "trainval"),
}
_COLUMN = re.compile(r"(.*\S)\s+(?:-1|0|1)")
_SAME = {"valid": "val", "validation": "val", "training": "train", "testing": "test"}


def usual_name(name: str) -> str:
    """``val`` for ``valid`` and ``validation``, ``train`` for ``training``; any other name as it is."""
    return _SAME.get(name.lower(), name)


def is_part(name: str) -> bool:
    """Whether a folder, list or file is called as a part of a data set: train, val, valid, test, ..."""
    return usual_name(name) in KNOWN


def choose_split(available: Sequence[str], wanted: str | None, use: Use, where: str) -> str:
    """The part to read of data that have parts.

    Args:
        available: parts there are, at least one.
        wanted: name given by the user; ``None`` takes what fits ``use``.
        use: for scoring ``val``, else ``test``; for training ``train``, else ``trainval``; to look at, the first.
        where: file or folder, for messages.

    Raises:
        InputError: it is not there, or nothing that is there fits.
    """
    if wanted is not None:
        for name in available:
            if name == wanted or usual_name(name) == usual_name(wanted):
                return name
        raise InputError(f"{where} has no split {wanted!r}; it names {list(available) or 'none'}")
    for known in _ORDER[use]:
        for name in available:
            if usual_name(name) == known:
                return name
    if use == "look" and available:
        return available[0]
    purpose = {"train": "to train on", "score": "to score on", "look": "to read"}[use]
    raise InputError(
        f"{where} has no split {purpose} ({' or '.join(_ORDER[use])}); it names {list(available) or 'none'}. "
        'Name the one you mean: --split where the command has it, or split = "..." in a TOML description'
    )


def refuse_split(split: str | None, where: Path, kind: str) -> None:
    """Say that a part was asked for where the data have none.

    Raises:
        InputError: ``split`` is not ``None``.
    """
    if split is not None:
        raise InputError(f"{where} ({kind}) has no splits, so there is no split {split!r}. Leave it out")


def choose_list(folders: Iterable[Path], split: str | None, use: Use, where: str) -> Path | None:
    """The text file that lists the images of a part, as ``ImageSets`` holds them for VOC and KITTI.

    Args:
        folders: where such lists may lie; the first that has one counts.
        split: name of the list wanted.
        use: without a name, to look at, everything is read; training and scoring keep to the lists' parts.
        where: file or folder, for messages.

    Returns:
        The list, or ``None`` for everything.

    Raises:
        InputError: as :func:`choose_split`.
    """
    lists: dict[str, Path] = {}
    for folder in folders:
        lists = {file.stem: file for file in sorted(folder.glob("*.txt"))}
        if lists:
            break
    usual = [name for name in lists if is_part(name)]
    if split is None and (use == "look" or not usual):
        return None
    return lists[choose_split(list(lists) if split is not None else usual, split, use, where)]


def listed_names(file: Path, known: Collection[str]) -> list[str]:
    """The names in such a list, each once.

    Args:
        file: the list; that of a class has a second column (1, 0 or -1).
        known: names that exist. ``my image 1`` is a name where it is one of them, else ``my image`` and a column.
    """
    names = []
    for line in read_lines(file):
        column = _COLUMN.fullmatch(line)
        names.append(column[1] if column and line not in known else line)
    return list(dict.fromkeys(name for name in names if name))
