"""The field folder on disk: ``images/``, ``frames.jsonl``, ``field.json``; reading, adding, removing.

An image is written before its line in ``frames.jsonl``, and each is whole or absent, so a power loss leaves at most an
image without a line or half a last line; opening for writing removes both.

Nothing outside the folder is written or removed: its parts are no links, and a line names a file of ``images/``.
Who writes holds the folder (:func:`ptedge.folders.hold_folder`).
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ptedge.data.coco_results import CocoWriter
from ptedge.detections import Detections
from ptedge.errors import ArtifactError, OutputError
from ptedge.files import atomic_write, cut_last_line, parse_json, read_bounded, write_error, write_json
from ptedge.folders import LOCK_NAME
from ptedge.progress import tracked

SCHEMA = 1
FIELD_NAME = "field.json"
FRAMES_NAME = "frames.jsonl"
IMAGES_NAME = "images"
OWN_NAMES = (FIELD_NAME, FRAMES_NAME, IMAGES_NAME)
# of field.json, what changes while a device collects
OF_THE_MOMENT = ("images", "bytes", "counters", "strategies", "policy", "last_id")


@dataclass
class FieldFolder:
    """A field folder.

    Attributes:
        path: the folder.
        about: content of ``field.json``.
        images: images with a line.
        size: of those images in bytes.
        last_id: highest number in a file name.
    """

    path: Path
    about: dict[str, Any]
    images: int = 0
    size: int = 0
    last_id: int = 0

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names by label."""
        return tuple(self.about["class_names"])

    def records(self) -> Iterator[dict[str, Any]]:
        """The lines of ``frames.jsonl``, in order; a last line cut short by a power loss is passed over.

        Raises:
            ArtifactError: a line in the middle is broken.
        """
        path = self.path / FRAMES_NAME
        if not path.exists():
            return
        with open(path, "rb") as file:
            for number, line in enumerate(file, start=1):
                try:
                    record = json.loads(line)
                    if not isinstance(record["file"], str):
                        raise TypeError
                    if line.endswith(b"\n") and not _is_inside(record["file"]):
                        raise ArtifactError(
                            f"{path} line {number} names {record['file']!r}, which is no file of {IMAGES_NAME}/ here; "
                            f"remove that line to go on"
                        )
                except (ValueError, KeyError, TypeError):
                    if not line.endswith(b"\n"):
                        return
                    raise ArtifactError(f"{path} line {number} is broken; remove that line to go on") from None
                if line.endswith(b"\n"):
                    yield record

    def add(self, name: str, jpeg: bytes, record: dict[str, Any]) -> None:
        """Add an image and its line.

        Args:
            name: file name inside ``images/``.
            jpeg: its content.
            record: the line, without ``file`` and ``bytes``.

        Raises:
            OutputError: disk full, or ``images`` is a link now.
        """
        self.add_all([(name, jpeg, record)])

    def add_all(self, images: Sequence[tuple[str, bytes, dict[str, Any]]]) -> None:
        """Add images that belong together: first all of them, then their lines at once; as :meth:`add`."""
        _refuse_links(self.path)
        for name, jpeg, _ in images:
            with atomic_write(self.path / IMAGES_NAME / name) as file:
                file.write(jpeg)
        rows = [{"file": f"{IMAGES_NAME}/{name}", **record, "bytes": len(jpeg)} for name, jpeg, record in images]
        path = self.path / FRAMES_NAME
        try:
            with open(path, "ab") as lines:
                lines.write(b"".join(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows))
                lines.flush()
                os.fsync(lines.fileno())
        except OSError as error:
            raise write_error(path, error) from None
        self.images += len(images)
        self.size += sum(len(jpeg) for _, jpeg, _ in images)

    def remove(self, files: AbstractSet[str]) -> None:
        """Remove images and their lines.

        The list is replaced first, in one step, the images are removed after, so that an interruption leaves images
        without a line, never a line without its image.

        Args:
            files: as their lines name them.

        Raises:
            OutputError: not writable, or a part of the folder is a link.
        """
        _refuse_links(self.path)
        self.save_about()  # while the list still holds the highest number
        removed, images, size = [], 0, 0
        with atomic_write(self.path / FRAMES_NAME, "w") as file:
            for record in self.records():
                if record["file"] in files:
                    removed.append(record["file"])
                else:
                    file.write(json.dumps(record, ensure_ascii=False) + "\n")
                    images, size = images + 1, size + int(record.get("bytes", 0))
        self.images, self.size = images, size
        try:
            for name in removed:
                (self.path / IMAGES_NAME / Path(name).name).unlink(missing_ok=True)
        except OSError as error:
            raise write_error(self.path, error) from None
        self.save_about()

    def save_about(self) -> None:
        """Write ``field.json`` with the present counts, and the number that no image may have again."""
        self.about |= {"images": self.images, "bytes": self.size, "last_id": self.last_id}
        write_json(self.path / FIELD_NAME, self.about)

    def repair(self) -> None:
        """Remove what a power loss left: half a last line, a triple's first frame alone, images without a line.

        Raises:
            OutputError: a part of the folder is a link, or it is not writable.
        """
        _refuse_links(self.path)
        path = self.path / FRAMES_NAME
        if path.exists():
            cut_last_line(path)
        names, last = set[str](), dict[str, Any]()
        for last in self.records():
            names.add(Path(last["file"]).name)
        if last.get("place") == -1:  # there for the next one's sake, which power was lost before
            os.truncate(path, path.stat().st_size - 1)
            cut_last_line(path)
            names.remove(Path(last["file"]).name)
            self.images, self.size = self.images - 1, self.size - int(last.get("bytes", 0))
        left = [
            image
            for image in (self.path / IMAGES_NAME).iterdir()
            if image.name not in names and (image.suffix == ".tmp" or _is_ours(image.name))
        ]
        if (highest := max((_number(image.name) for image in left), default=0)) > self.last_id:
            self.last_id = highest
            self.save_about()  # before they go: a kill in between does not forget the number
        for image in left:
            if not image.is_dir():  # a link to a folder is one: neither is of our making
                image.unlink()


def is_field(path: Path) -> bool:
    """Whether a path is a field folder, as far as its description is there."""
    return (path / FIELD_NAME).is_file()


def open_field(path: Path) -> FieldFolder:
    """Open a field folder for reading.

    Args:
        path: folder written by ``ptedge run --collect``.

    Raises:
        ArtifactError: none, a newer one, or a broken one.
    """
    where = path / FIELD_NAME
    try:
        about = parse_json(read_bounded(where))
    except OSError as error:
        raise ArtifactError(
            f"{path} is no field folder: cannot read {where.name} ({error.strerror}). ptedge run --collect makes one"
        ) from None
    except ValueError:
        about = None
    if not isinstance(about, dict) or not isinstance(about.get("class_names"), list):
        raise ArtifactError(f"{where} is broken. Collect into a new folder; {FRAMES_NAME} here still lists the images")
    if not isinstance(about.get("schema"), int) or about["schema"] > SCHEMA:
        raise ArtifactError(
            f"{where} has schema {about.get('schema')}, this ptedge reads up to {SCHEMA}. Update ptedge"
        )
    last_id = about.get("last_id")
    folder = FieldFolder(path, about, last_id=last_id if isinstance(last_id, int) else 0)
    for record in folder.records():
        folder.images += 1
        folder.size += int(record.get("bytes", 0))
        folder.last_id = max(folder.last_id, _number(record["file"]))
    return folder


def create_field(path: Path, about: dict[str, Any]) -> FieldFolder:
    """Make a field folder, or open the one that is there for adding.

    Args:
        path: new or empty folder, or a field folder.
        about: content of ``field.json`` for a new one.

    Raises:
        OutputError: something else is there, or it is not writable.
        ArtifactError: a broken field folder.
    """
    _refuse_links(path)
    try:
        if not (path / FIELD_NAME).exists() and path.exists() and not all(map(_is_of_a_beginning, path.iterdir())):
            raise OutputError(f"cannot collect into {path}: it holds other files. Choose a new folder for --collect")
        (path / IMAGES_NAME).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise write_error(path, error) from None
    if not (path / FIELD_NAME).exists():
        write_json(path / FIELD_NAME, {"schema": SCHEMA, **about, "images": 0, "bytes": 0})
    folder = open_field(path)
    folder.repair()
    return folder


def summarize(folder: FieldFolder) -> dict[str, Any]:
    """Counts of a field folder, as ``ptedge field summary --json`` prints them."""
    reasons: Counter[str] = Counter()
    classes: Counter[str] = Counter()
    models: Counter[str] = Counter()
    cameras: Counter[str] = Counter()
    for record in folder.records():
        reasons.update(record.get("why", []))
        classes.update(d["class"] for d in record.get("detections", []))
        models[str(record.get("model", ""))[:12]] += 1
        cameras[str(record.get("camera", ""))] += 1
    return {
        "path": str(folder.path),
        "images": folder.images,
        "bytes": folder.size,
        "why": dict(reasons.most_common()),
        "detections": dict(classes.most_common()),
        "models": dict(models),
        "cameras": dict(cameras),
        "counters": folder.about.get("counters", {}),
        "policy": folder.about.get("policy", {}),
    }


def export_coco(folder: FieldFolder, out: Path, min_score: float, license_name: str) -> int:
    """Write the detections as COCO pre-labels for an annotation tool.

    Args:
        folder: to export.
        out: json file; image names are relative to the field folder's ``images/``.
        min_score: detections below are left out.
        license_name: of the images, for ``licenses``.

    Returns:
        Images written.

    Raises:
        OutputError: not writable.
    """
    writer = CocoWriter(out, folder.class_names, f"Pre-labels of ptedge field folder {folder.path.name}", license_name)
    count = 0
    for record in tracked(folder.records(), "exporting", total=folder.images):
        found = Detections.from_json(record["detections"])
        kept = found.select(found.scores >= min_score)
        writer.add(Path(record["file"]).name, record["width"], record["height"], kept)
        count += 1
    writer.close()
    return count


def _refuse_links(path: Path) -> None:
    """Refuse a folder whose parts lie elsewhere: what is removed or cut off there would not be ours."""
    for name in OWN_NAMES:
        if (path / name).is_symlink():
            raise OutputError(
                f"{path / name} is a link, so files outside {path} would be written or removed. "
                f"Put the files themselves there, or make {path} a link as a whole"
            )


def _is_of_a_beginning(path: Path) -> bool:
    """Whether a kill may have left it before there was a ``field.json``."""
    if path.name == IMAGES_NAME:
        return path.is_dir() and not any(path.iterdir())
    return path.name == LOCK_NAME or (path.name.startswith(f".{FIELD_NAME}.") and path.suffix == ".tmp")


def _is_inside(file: str) -> bool:
    """Whether a line's file is ``images/NAME``, or a bare name."""
    name = file.removeprefix(f"{IMAGES_NAME}/")
    return name not in ("", ".", "..") and not set(name) & {"/", "\\", "\0"}


def _number(name: str) -> int:
    head = Path(name).name.partition("_")[0]
    return int(head) if head.isdecimal() else 0


def _is_ours(name: str) -> bool:
    head, _, tail = name.partition("_")
    return len(head) == 8 and head.isdecimal() and tail.endswith(".jpg")
