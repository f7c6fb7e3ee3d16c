"""Finding the image that an annotation names, where names and folders are not quite what they were."""

from __future__ import annotations

import contextlib
import os
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from ptedge.data.build import Counts
from ptedge.data.dataset import Dataset
from ptedge.errors import InputError
from ptedge.frames.images import IMAGE_SUFFIXES, image_size

# pictures that OpenCV cannot decode; worth a word where they lie among the others
OTHER_SUFFIXES = frozenset({".heic", ".heif", ".jxl", ".dng", ".tga", ".cr2", ".nef", ".arw", ".raw"})
SUFFIXES = IMAGE_SUFFIXES - OTHER_SUFFIXES

AMBIGUOUS = "image name that fits several files, or shares its only file with another name"
ELSEWHERE = "image name that lies in several folders (the first taken)"

_MOST_WALKED = 200_000  # files looked at below a folder for a name that is not where it should be
_MOST_ASKED = 100  # names; for more, a folder is listed once and not asked for each


class _Hit(NamedTuple):
    """A file found; exact where it has the image's first name in one of the folders themselves."""

    path: Path
    exact: bool


class ImageFinder:
    """Finds images by the names in annotations; folders are listed once, and only where many are looked for.

    A name is tried as it is, then with another suffix, capitals or form of its accents, then without its leading
    folders (``data/``, ``/home/someone/set/``, ``..\\media\\``), then anywhere below the folders if it is the only file
    of that name. What fits several files fits none.

    Args:
        folders: where to look, most likely first.
        below: folders whose sub-folders are searched at last; ``None`` for the first of ``folders``.
        counts: notes are added to.
    """

    def __init__(self, folders: Sequence[Path], counts: Counts, below: Sequence[Path] | None = None) -> None:
        self._folders = list(dict.fromkeys(folders))
        self._below = list(folders[:1] if below is None else below)
        self._counts = counts
        self._asked: Counter[str] = Counter()  # names by their leading folders
        self._there: dict[str, dict[str, list[Path]]] = {}
        self._listed: dict[tuple[Path, tuple[str, ...]], dict[str, list[Path]]] = {}
        self._walked: dict[str, list[Path]] | None = None

    def find(self, name: str) -> Path:
        """The file called ``name``, or where it was expected first; as :meth:`find_all` for a single name."""
        return self.find_all([(name,)])[0]

    def find_all(self, images: Sequence[Sequence[str]]) -> list[Path]:
        """The files of many images.

        Args:
            images: names of each image, the surest first; they may hold folders, backslashes or ``%20``.

        Returns:
            For each an existing file, or where it was expected first.
        """
        hits = [self._find(names) for names in images]
        users: Counter[str] = Counter()
        if any(hit is not None and not hit.exact for hit in hits):
            users.update(os.path.normpath(hit.path) for hit in hits if hit is not None)
        found = []
        for names, hit in zip(images, hits, strict=True):
            # cam1/7.jpg and cam2/7.jpg are not both the one 7.jpg that is there
            shared = hit is not None and not hit.exact and users[os.path.normpath(hit.path)] > 1
            if shared:
                self._counts.passed_over[AMBIGUOUS] += 1
            found.append(self._folders[0] / _plain(names[0]) if hit is None or shared else hit.path)
        return found

    def has(self, name: str) -> bool:
        """Whether a file of exactly this name lies in one of the folders."""
        return any(os.path.isfile(folder / _plain(name)) for folder in self._folders)

    def _find(self, names: Sequence[str]) -> _Hit | None:
        own = _spellings(names[0])
        spelt = own if len(names) == 1 else [*own, *(text for name in names[1:] for text in _spellings(name))]
        for text in spelt:
            if here := self._with(text):
                if len(here) > 1 and not all(os.path.samefile(here[0], other) for other in here[1:]):
                    self._counts.notes[ELSEWHERE] += 1
                return _Hit(here[0], text in own)
        for text in spelt:
            parts = tuple(part for part in text.split("/") if part not in ("", "."))
            key = _key(parts[-1]) if parts else ""
            for start in range(len(parts)):
                for folder in self._folders:
                    files = self._in(folder, parts[start:-1]).get(key, [])
                    if start and os.path.isfile(file := folder.joinpath(*parts[start:])):
                        files = [file]
                    if len(files) == 1:
                        return _Hit(files[0], False)
                    if files:
                        self._counts.passed_over[AMBIGUOUS] += 1
                        return None
        return self._find_below(spelt)

    def _with(self, text: str) -> list[Path]:
        """The file of exactly this name in each of the folders that has it."""
        head, _, tail = text.rpartition("/")
        there = self._there.get(head)
        if there is None:
            self._asked[head] += 1
            if self._asked[head] <= _MOST_ASKED:
                return [folder / text for folder in self._folders if os.path.isfile(folder / text)]
            there = self._there[head] = _folders_by_file(self._folders, head)
        return [folder / text for folder in there.get(tail, ())]

    def _find_below(self, spelt: Sequence[str]) -> _Hit | None:
        if self._walked is None:
            self._walked = {}
            for file in _files_below(self._below):
                self._walked.setdefault(_key(file.name), []).append(file)
        for text in spelt:
            name = text.rpartition("/")[2]
            files = self._walked.get(_key(name), [])
            files = [file for file in files if file.name == name] or files
            if len(files) == 1:
                return _Hit(files[0], False)
            if files:
                self._counts.passed_over[AMBIGUOUS] += 1
                return None
        return None

    def _in(self, folder: Path, below: tuple[str, ...]) -> dict[str, list[Path]]:
        if (folder, below) not in self._listed:
            listed: dict[str, list[Path]] = {}
            for file in pictures_in(folder.joinpath(*below)):
                listed.setdefault(_key(file.name), []).append(file)
            self._listed[folder, below] = listed
        return self._listed[folder, below]


def is_picture(name: str) -> bool:
    """Whether a file is taken for an image of labelled data by its name; hidden files are not."""
    return os.path.splitext(name)[1].lower() in SUFFIXES and not name.startswith(".")


def pictures_in(folder: Path) -> list[Path]:
    """Image files of a folder, by name; none where there is no such folder."""
    try:
        with os.scandir(folder) as entries:
            return sorted(folder / entry.name for entry in entries if is_picture(entry.name))
    except (OSError, ValueError):
        return []


def files_below(folder: Path) -> list[Path]:
    """All files of a folder and its sub-folders, hidden folders left out; what may not be read is passed over.

    Raises:
        InputError: it is the root of the file system, which no data set is.
    """
    if folder.resolve().parent == folder.resolve():
        raise InputError(f"{folder} is the whole file system. Name the folder of the images")
    found = []
    for place, below, names in os.walk(folder):
        below[:] = sorted(name for name in below if not name.startswith("."))
        found += [Path(place) / name for name in sorted(names)]
    return found


def count_unreadable(files: Sequence[Path], counts: Counts) -> None:
    """Note picture files of kinds that are not read (``.heic``, ``.dng``, ...), by kind."""
    for file in files:
        suffix = file.suffix.lower()
        if suffix in OTHER_SUFFIXES:
            counts.passed_over[f"{suffix} file (convert it to JPEG or PNG)"] += 1


def check_images(dataset: Dataset) -> list[tuple[Path, str]]:
    """Image files of a data set that are not there, without opening any.

    Returns:
        (path, reason) for each.
    """
    return [(sample.path, "missing") for sample in dataset.samples if not os.path.isfile(sample.path)]


def require_images(dataset: Dataset) -> None:
    """Refuse, before any long work, a data set whose image files are not all there, or have not the labelled size.

    Only headers are read. A file that is no image is left to whoever decodes it.

    Raises:
        InputError: with the count and the first few.
    """
    missing = check_images(dataset)
    if missing:
        raise InputError(
            f"{dataset.root}: {len(missing)} of {len(dataset)} image files are missing: {_first(missing)}. "
            "Put the images beside the annotations, or name their folder in a TOML description (images = ...)"
        )
    wrong = _other_sizes(dataset)
    if wrong:
        raise InputError(
            f"{dataset.root}: {len(wrong)} of {len(dataset)} images are not of the size their labels are for: "
            f"{_first(wrong)}. Give the images the labels were made for, upright (EXIF rotation is applied here)"
        )


def _other_sizes(dataset: Dataset) -> list[tuple[Path, str]]:
    wrong = []
    for sample in dataset.samples:
        try:
            size = image_size(sample.path)
        except InputError:
            continue
        if sample.width and size != (sample.width, sample.height):
            text = f" is {size[0]} x {size[1]}, but its labels are for {sample.width} x {sample.height}"
            wrong.append((sample.path, text))
    return wrong


def _first(files: Sequence[tuple[Path, str]], most: int = 3) -> str:
    told = ", ".join(f"{path}{reason if reason != 'missing' else ''}" for path, reason in files[:most])
    return told + (f" and {len(files) - most} more" if len(files) > most else "")


def _folders_by_file(folders: Sequence[Path], below: str) -> dict[str, list[Path]]:
    """For each regular file, or link to one, which of the folders have it in their sub-folder of this name."""
    holders: dict[str, list[Path]] = {}
    for folder in folders:
        with contextlib.suppress(OSError, ValueError), os.scandir(folder / below) as entries:
            for entry in entries:
                if _is_file(entry):
                    holders.setdefault(entry.name, []).append(folder)
    return holders


def _is_file(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file()
    except OSError:  # a link that leads in a circle
        return False


def _plain(name: str) -> str:
    """A name that the file system can be asked about, with slashes."""
    text = name.replace("\\", "/").replace("\0", "\ufffd")
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        text = text.encode("utf-8", "replace").decode("utf-8")
    return text


def _spellings(name: str) -> tuple[str, ...]:
    """A name as written, as the file part of a web address, and with ``%20`` and the like decoded."""
    text = plain = _plain(name)
    if "%" not in text and "=" not in text and "://" not in text:
        return (plain,)
    for mark in ("?d=", "&d="):  # as an annotation server names its local files
        text = text.rpartition(mark)[2]
    if "://" in text:
        text = text.partition("://")[2].partition("?")[0]
    decoded = _plain(unquote(text, errors="strict")) if "%" in text and _is_quoted(text) else text
    return (plain, decoded) if decoded != plain else (plain,)


def _is_quoted(text: str) -> bool:
    try:
        return unquote(text, errors="strict") != text
    except UnicodeDecodeError:
        return False


def _key(name: str) -> str:
    """What two spellings of a file name share: no suffix, no capitals, one form of accents."""
    stem, suffix = os.path.splitext(name)
    bare = stem if suffix.lower() in SUFFIXES | OTHER_SUFFIXES else name
    return unicodedata.normalize("NFC", bare).casefold()


def _files_below(folders: Sequence[Path]) -> Iterator[Path]:
    walked = 0
    for folder in folders:
        for place, below, names in os.walk(folder):
            below[:] = sorted(name for name in below if not name.startswith("."))
            walked += len(names) + len(below)
            if walked > _MOST_WALKED:
                return
            yield from (Path(place) / name for name in sorted(names) if is_picture(name))
