"""The field folder on disk: ``images/``, ``frames.jsonl``, ``field.json``; reading, adding, and what is done with it.

An image is written before its line in ``frames.jsonl``, and each is whole or absent, so a power loss leaves at most an
image without a line or half a last line; opening for writing removes both.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ptedge.data.coco_results import CocoWriter
from ptedge.detections import Detections
from ptedge.errors import ArtifactError, OutputError
from ptedge.files import atomic_write, write_error, write_json

SCHEMA = 1
FIELD_NAME = "field.json"
FRAMES_NAME = "frames.jsonl"
IMAGES_NAME = "images"


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
            OutputError: disk full.
        """
        with atomic_write(self.path / IMAGES_NAME / name) as file:
            file.write(jpeg)
        line = {"file": f"{IMAGES_NAME}/{name}", **record, "bytes": len(jpeg)}
        path = self.path / FRAMES_NAME
        try:
            with open(path, "ab") as lines:
                lines.write(json.dumps(line, ensure_ascii=False).encode() + b"\n")
                lines.flush()
                os.fsync(lines.fileno())
        except OSError as error:
            raise write_error(path, error) from None
        self.images += 1
        self.size += len(jpeg)

    def save_about(self) -> None:
        """Write ``field.json`` with the present counts."""
        self.about["images"], self.about["bytes"] = self.images, self.size
        write_json(self.path / FIELD_NAME, self.about)

    def repair(self) -> None:
        """Remove what a power loss left: half a last line, images without a line, temporary files."""
        path = self.path / FRAMES_NAME
        if path.exists():
            _cut_last_line(path)
        names = {Path(record["file"]).name for record in self.records()}
        for image in (self.path / IMAGES_NAME).iterdir():
            if image.name not in names and (image.suffix == ".tmp" or _is_ours(image.name)):
                image.unlink()


def open_field(path: Path) -> FieldFolder:
    """Open a field folder for reading.

    Args:
        path: folder written by ``ptedge run --collect``.

    Raises:
        ArtifactError: none, a newer one, or a broken one.
    """
    where = path / FIELD_NAME
    try:
        about = json.loads(where.read_text("utf-8"))
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
    folder = FieldFolder(path, about)
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
    try:
        if not (path / FIELD_NAME).exists() and path.exists() and any(path.iterdir()):
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
    for record in folder.records():
        found = Detections.from_json(record["detections"])
        kept = found.select(found.scores >= min_score)
        writer.add(Path(record["file"]).name, record["width"], record["height"], kept)
        count += 1
    writer.close()
    return count


def prune(folder: FieldFolder, max_bytes: int | None, max_images: int | None) -> int:
    """Remove the least informative images until the folder is small enough.

    The list is replaced first, in one step, the images are removed after, so that an interruption leaves images without
    a line, never a line without its image.

    Args:
        folder: to prune.
        max_bytes: images' bytes that may stay.
        max_images: images that may stay.

    Returns:
        Images removed.

    Raises:
        OutputError: not writable.
    """
    rows = [(float(r.get("informative", 0)), i, int(r.get("bytes", 0))) for i, r in enumerate(folder.records())]
    images, size = len(rows), sum(row[2] for row in rows)
    gone: set[int] = set()
    for _, i, length in sorted(rows):  # of equal ones, the oldest goes first
        if (max_bytes is None or size <= max_bytes) and (max_images is None or images <= max_images):
            break
        gone.add(i)
        images, size = images - 1, size - length
    removed = []
    with atomic_write(folder.path / FRAMES_NAME, "w") as file:
        for i, record in enumerate(folder.records()):
            if i in gone:
                removed.append(record["file"])
            else:
                file.write(json.dumps(record, ensure_ascii=False) + "\n")
    folder.images, folder.size = images, size
    try:
        for name in removed:
            (folder.path / IMAGES_NAME / Path(name).name).unlink(missing_ok=True)
    except OSError as error:
        raise write_error(folder.path, error) from None
    folder.save_about()
    return len(removed)


def _cut_last_line(path: Path) -> None:
    """Remove bytes after the last newline."""
    with open(path, "rb+") as file:
        end = file.seek(0, os.SEEK_END)
        while end > 0:
            start = max(0, end - 65536)
            file.seek(start)
            newline = file.read(end - start).rfind(b"\n")
            if newline >= 0:
                file.truncate(start + newline + 1)
                return
            end = start
        file.truncate(0)


def _number(name: str) -> int:
    head = Path(name).name.partition("_")[0]
    return int(head) if head.isdecimal() else 0


def _is_ours(name: str) -> bool:
    head, _, tail = name.partition("_")
    return len(head) == 8 and head.isdecimal() and tail.endswith(".jpg")
