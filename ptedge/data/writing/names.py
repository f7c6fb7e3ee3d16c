"""Names that every reader finds again: of images in their new folder, and of classes in KITTI's columns."""

from __future__ import annotations

import os
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence

from ptedge.data.dataset import Sample
from ptedge.data.locate import is_picture
from ptedge.data.parsing.values import is_number_text
from ptedge.errors import InputError

RENAMED = "image given another name (its own cannot be kept or is taken)"


def image_names(samples: Sequence[Sample], allowed: Callable[[str], str], notes: Counter[str]) -> list[str]:
    """A name for each image, below the folder they will lie in: its path below the folder all images share.

    No two differ only in suffix, capitals or form of accents, by which readers could take one for the other.

    Args:
        samples: the images.
        allowed: the nearest name, without suffix, that the format can hold.
        notes: names that changed are counted.

    Raises:
        InputError: a file whose suffix is none of an image.
    """
    paths = [os.path.abspath(sample.path) for sample in samples]
    root = os.path.commonpath([os.path.dirname(path) for path in paths])
    taken: set[str] = set()
    names = []
    for path in paths:
        stem, suffix = os.path.splitext(os.path.relpath(path, root))
        if not is_picture(f"x{suffix}"):
            raise InputError(
                f"image {path} has no suffix of an image file (.jpg, .png, ...), so no reader finds it again"
            )
        own = stem.replace(os.sep, "/")
        name = allowed("/".join(map(_safe, own.split("/"))))
        number = 1
        while _key(name if number == 1 else f"{name}-{number}") in taken:
            number += 1
        name = name if number == 1 else f"{name}-{number}"
        taken.add(_key(name))
        notes[RENAMED] += name != own
        names.append(f"{name}{suffix}")
    return names


def one_word_classes(class_names: Sequence[str], reserved: str, notes: Counter[str]) -> list[str]:
    """Class names as single words that are no numbers, each another one.

    Args:
        class_names: by label.
        reserved: a word with a meaning of its own.
        notes: names that changed are counted.
    """
    words: list[str] = []
    for name in class_names:
        word = "_".join(name.split())
        while word in words or word == reserved or is_number_text(word):
            word = f"class_{word}"
        if word != name:
            notes[f"class {name} written as {word}"] += 1
        words.append(word)
    return words


def _safe(part: str) -> str:
    """A file or folder name without what a text file, an XML file or a reader of names trips over."""
    kept = "".join(c if c.isprintable() and c != "\\" else "_" for c in part).strip()
    return f"_{kept}" if kept.startswith(".") or not kept else kept


def _key(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()
