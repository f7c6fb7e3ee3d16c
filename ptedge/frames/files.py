"""Which image files a user means: one file, a folder, a glob pattern, a list file or a field folder."""

from __future__ import annotations

import codecs
import glob
import itertools
import json
import math
import os
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ptedge.errors import InputError
from ptedge.files import open_regular
from ptedge.frames.address import is_live, mask_credentials
from ptedge.frames.formats.jpeg import JPEG_START, jpeg_end
from ptedge.frames.images import image_header, is_image_name, printable
from ptedge.shards.index import is_site

KINDS = "an image, a folder, a glob pattern, a .txt list of images, a video or a field folder"
MOST_FILES = 2_000_000  # files looked at; far more than one source has, and a pattern through links has no end
LARGEST_LIST = 256 << 20
LARGEST_RECORD = 1 << 30  # of a field folder's frames

_LARGEST_FIRST_PICTURE = 64 << 20
_VIDEO_SUFFIXES = frozenset({".mp4", ".avi", ".mkv", ".mov", ".webm", ".m4v", ".mpg", ".mpeg", ".ts", ".wmv", ".flv"})
_MOVING = ("GIF", "PNG")  # kinds whose several pictures are a video that FFmpeg plays


@dataclass(frozen=True)
class Found:
    """What the user named.

    Attributes:
        kind: ``image``, ``folder``, ``glob``, ``list``, ``field``, ``video`` or ``live``.
        files: image files in order; none for ``video`` and ``live``.
        times: the time of each in seconds where one is recorded.
        left_out: (place, reason) of what lies there and is not taken, one entry a reason.
        videos: of a folder or pattern, in order, where they were asked for; they are left out elsewhere.
    """

    kind: str
    files: tuple[Path, ...] = ()
    times: tuple[float | None, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()
    videos: tuple[Path, ...] = ()


def natural_key(path: Path | str) -> list[tuple[int, int | str]]:
    """Sort key under which ``img2`` comes before ``img10``."""
    parts = re.split(r"(\d+)", str(path).casefold())
    return [(0, int(part)) if part.isdecimal() else (1, part) for part in parts if part]


def find_files(spec: str, live: bool, videos: bool = False) -> Found:
    """Tell what the user named and list its image files.

    Args:
        spec: as :func:`ptedge.frames.source.open_frames`.
        live: accept live sources.
        videos: take videos in a folder or pattern, too.

    Raises:
        InputError: missing, without any file to take, or a live source where none is accepted.
    """
    filmed: list[Path] | None = [] if videos else None
    path, shown = Path(spec), printable(mask_credentials(spec))
    if is_site(spec):
        raise InputError(
            f"{shown} is a store of frames. Fetch them with ptedge field pull STORE FOLDER; adapt reads it"
        )
    left_out: Counter[str] = Counter()
    if os.path.isdir(spec):  # not path.is_dir(), which fails on a pipeline longer than a file name may be
        field = (path / "field.json").is_file()
        files = _images_below(path / "images" if field else path, left_out, filmed)
        times = _field_times(path, files) if field else (None,) * len(files)
        kind, taken = "field" if field else "folder", _some(files, shown, left_out, filmed)
        return Found(kind, taken, times, _told(shown, left_out), _in_order(filmed))
    if os.path.isfile(spec):
        return _named_file(path, shown)
    if os.path.lexists(spec) and not is_live(spec):
        raise InputError(f"{shown} is a pipe, a device, a socket or a link to nothing, not a file. Give {KINDS}")
    if is_live(spec):
        if not live:
            raise InputError(f"{shown} is a live source; here it takes {KINDS}")
        return Found("live")
    if any(character in spec for character in "*?["):
        files = _matching(spec, shown, left_out, filmed)
        taken = _some(files, shown, left_out, filmed)
        return Found("glob", taken, (None,) * len(files), _told(shown, left_out), _in_order(filmed))
    raise InputError(f"frames {shown} do not exist. Give {KINDS}")


def _named_file(path: Path, shown: str) -> Found:
    """A single file: what its name says, and without a name for it what is inside."""
    if path.suffix.lower() == ".txt":
        files = _listed(path, shown)
        return Found("list", _some(files, shown, Counter()), (None,) * len(files))
    header = image_header(path)
    if header is not None and header.kind in _MOVING and header.pictures > 1:
        return Found("video")
    if not is_image_name(path) and _is_motion_jpeg(path):
        return Found("video")
    return Found("image", (path,), (None,)) if header is not None or is_image_name(path) else Found("video")


def _is_motion_jpeg(path: Path) -> bool:
    """Whether one JPEG picture directly follows another, as in a recorded stream (.mjpeg)."""
    try:
        with open_regular(path) as file:
            data = file.read(_LARGEST_FIRST_PICTURE)
    except OSError:
        return False
    end = jpeg_end(data) if data.startswith(JPEG_START) else -1
    return end >= 0 and data[end:].lstrip(b"\0\r\n").startswith(JPEG_START)


def _in_order(videos: list[Path] | None) -> tuple[Path, ...]:
    return tuple(sorted(videos or (), key=natural_key))


def _some(files: list[Path], shown: str, left_out: Counter[str], videos: list[Path] | None = None) -> tuple[Path, ...]:
    if not files and not videos:
        why = "".join(f"; left out are {count} {what}" for what, count in left_out.items() if count)
        raise InputError(f"{shown} holds no image file (jpg, png, bmp, webp, tiff, ...){why}. Give {KINDS}")
    return tuple(files)


def _told(shown: str, left_out: Counter[str]) -> tuple[tuple[str, str], ...]:
    return tuple((shown, f"{shown}: left out are {count} {what}") for what, count in left_out.items() if count)


def _images_below(folder: Path, left_out: Counter[str], videos: list[Path] | None) -> list[Path]:
    found: list[Path] = []
    looked_at = 0

    def unreadable(error: OSError) -> None:
        left_out["folders that cannot be read"] += 1

    for parent, folders, names in os.walk(folder, onerror=unreadable):
        folders[:] = [name for name in folders if not name.startswith(".")]
        left_out["links to folders, which are not followed; name them as sources"] += sum(
            os.path.islink(os.path.join(parent, name)) for name in folders
        )
        looked_at += len(names) + len(folders)
        _not_too_many(looked_at, printable(folder))
        found += _taken((Path(parent) / name for name in names), left_out, videos)
    return sorted(found, key=lambda path: natural_key(path.relative_to(folder)))


def _matching(pattern: str, shown: str, left_out: Counter[str], videos: list[Path] | None) -> list[Path]:
    """Image files of a glob pattern; names that begin with a dot do not match ``*``."""
    try:
        names = list(itertools.islice(_matches(pattern), MOST_FILES + 1))
    except (re.error, OSError, ValueError, NotImplementedError) as error:
        raise InputError(f"{shown} is no pattern that can be searched for: {error}") from None
    _not_too_many(len(names), shown)
    files = (Path(name) for name in names if not os.path.isdir(name))
    return sorted(_taken(files, left_out, videos), key=natural_key)


def _matches(pattern: str) -> Iterable[str]:
    """Names of a glob pattern; ``**`` does not follow links to folders, which may lead back for ever."""
    if "**" not in pattern:
        return glob.iglob(pattern)
    parts = Path(pattern).parts
    first = next(i for i, part in enumerate(parts) if glob.has_magic(part))
    base = Path(*parts[:first])
    rest = [part if part == "**" else re.sub(r"\*\*+", "*", part) for part in parts[first:]]
    rest += ["*"] if rest[-1] == "**" else []
    hidden = any(part.startswith(".") for part in rest)
    return (str(path) for path in base.glob("/".join(rest)) if hidden or not _is_hidden(path.relative_to(base)))


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def _taken(paths: Iterable[Path], left_out: Counter[str], videos: list[Path] | None) -> list[Path]:
    """Image files of some entries of folders; videos are added to ``videos``, or counted as others that look like
    frames."""
    taken = []
    for path in paths:
        if is_image_name(path):
            if path.is_file():
                taken.append(path)
            else:
                left_out["pipes, devices, sockets or links to nothing"] += 1
        elif path.suffix.lower() in _VIDEO_SUFFIXES and not path.name.startswith("."):
            if videos is None:
                left_out["videos; name each as a source"] += 1
            else:
                videos.append(path)
    return taken


def _not_too_many(count: int, shown: str) -> None:
    if count > MOST_FILES:
        raise InputError(f"{shown} has more than {MOST_FILES:,} entries. Name a smaller folder, or write a list")


def _listed(path: Path, shown: str) -> list[Path]:
    """Paths of a list file: UTF-8, or what its byte order mark says; other bytes stand for themselves in names."""
    try:
        with open_regular(path) as file:
            data = file.read(LARGEST_LIST + 1)
    except OSError as error:
        raise InputError(f"list {shown} cannot be read: {error.strerror}") from None
    if len(data) > LARGEST_LIST:
        raise InputError(f"list {shown} is larger than {LARGEST_LIST >> 20} MiB. Divide it")
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        text = data.decode("utf-16", "replace")
    else:
        text = data.decode("utf-8-sig", "surrogateescape")
    names = [name for name in map(str.strip, re.split(r"\r\n|\r|\n", text)) if name and not name.startswith("#")]
    _not_too_many(len(names), f"list {shown}")
    return [path.parent / name for name in names]


def _field_times(folder: Path, files: list[Path]) -> tuple[float | None, ...]:
    """Times recorded in ``frames.jsonl``; a line cut off by a power loss is passed over."""
    known: dict[str, float] = {}
    try:
        with open_regular(folder / "frames.jsonl") as record:
            lines = record.read(LARGEST_RECORD).decode("utf-8", "replace").splitlines()
    except OSError:
        lines = []
    for line in lines:
        try:
            entry = json.loads(line)
            name, time = Path(entry["file"]).name, entry["time"]
        except (ValueError, KeyError, TypeError, RecursionError):
            continue
        if isinstance(time, (int, float)) and not isinstance(time, bool) and abs(time) < math.inf:
            known[name] = float(min(max(time, -1e15), 1e15))
    return tuple(known.get(file.name) for file in files)
