"""Which image files a user means: one file, a folder, a glob pattern, a list file or a field folder."""

from __future__ import annotations

import glob
import json
import os
import re
from pathlib import Path

from ptedge.errors import InputError
from ptedge.frames.address import is_live, mask_credentials
from ptedge.frames.images import is_image_name

KINDS = "an image, a folder, a glob pattern, a .txt list of images, a video or a field folder"


def natural_key(path: Path | str) -> list[tuple[int, int | str]]:
    """Sort key under which ``img2`` comes before ``img10``."""
    parts = re.split(r"(\d+)", str(path).casefold())
    return [(0, int(part)) if part.isdecimal() else (1, part) for part in parts if part]


def find_files(spec: str, live: bool) -> tuple[str, tuple[Path, ...], tuple[float | None, ...]]:
    """Tell what the user named and list its image files.

    Args:
        spec: as :func:`ptedge.frames.source.open_frames`.
        live: accept live sources.

    Returns:
        Kind, image files in order, and the time of each in seconds where one is recorded. No files for the kinds
        ``video`` and ``live``.

    Raises:
        InputError: missing, without any image file, or a live source where none is accepted.
    """
    path = Path(spec)
    kind, files = "", []
    if os.path.isdir(spec):  # not path.is_dir(), which fails on a pipeline longer than a file name may be
        if (path / "field.json").is_file():
            files = _images_below(path / "images")
            return "field", _some(files, spec), _field_times(path, files)
        kind, files = "folder", _images_below(path)
    elif os.path.isfile(spec):
        if is_image_name(path):
            kind, files = "image", [path]
        elif path.suffix.lower() == ".txt":
            kind, files = "list", _listed(path)
        else:
            return "video", (), ()
    elif is_live(spec):
        if not live:
            raise InputError(f"{mask_credentials(spec)} is a live source; here it takes {KINDS}")
        return "live", (), ()
    elif any(character in spec for character in "*?["):
        matches = (Path(name) for name in glob.glob(spec, recursive=True))
        kind = "glob"
        files = sorted((match for match in matches if match.is_file() and is_image_name(match)), key=natural_key)
    else:
        raise InputError(f"frames {spec} do not exist. Give {KINDS}")
    return kind, _some(files, spec), (None,) * len(files)


def _some(files: list[Path], spec: str) -> tuple[Path, ...]:
    if not files:
        raise InputError(f"{spec} holds no image file (jpg, png, bmp, webp, tiff, ...). Give {KINDS}")
    return tuple(files)


def _images_below(folder: Path) -> list[Path]:
    found = [
        path
        for path in folder.rglob("*")
        if is_image_name(path)
        and not any(part.startswith(".") for part in path.relative_to(folder).parts)
        and path.is_file()
    ]
    return sorted(found, key=lambda path: natural_key(path.relative_to(folder)))


def _listed(path: Path) -> list[Path]:
    try:
        lines = path.read_text("utf-8-sig").splitlines()
    except OSError as error:
        raise InputError(f"list {path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(f"list {path} is no UTF-8 text: it should hold one image path a line") from None
    names = (line.strip() for line in lines)
    return [path.parent / name for name in names if name and not name.startswith("#")]


def _field_times(folder: Path, files: list[Path]) -> tuple[float | None, ...]:
    """Times recorded in ``frames.jsonl``; a line cut off by a power loss is passed over."""
    known: dict[str, float] = {}
    record = folder / "frames.jsonl"
    for line in record.read_text("utf-8", "replace").splitlines() if record.is_file() else ():
        try:
            entry = json.loads(line)
            name, time = Path(entry["file"]).name, entry["time"]
        except (ValueError, KeyError, TypeError):
            continue
        if isinstance(time, (int, float)):
            known[name] = float(time)
    return tuple(known.get(file.name) for file in files)
