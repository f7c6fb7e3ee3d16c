"""Detections as COCO json: a results list beside a ground truth, or a document of its own, written as frames come."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import IO, Any

from ptedge import __version__
from ptedge.data.coco import coco_annotation, coco_head, coco_image, xyxy_to_xywh
from ptedge.detections import Detections
from ptedge.files import atomic_write, write_error


def coco_results(
    detections: Sequence[Detections], image_ids: Sequence[int | str], category_ids: Sequence[int | str]
) -> list[dict[str, Any]]:
    """Detections as a COCO results list, with sigma as an extra field (x1, y1, x2, y2, in pixels).

    Args:
        detections: one an image, in pixels of that image.
        image_ids: of the same images.
        category_ids: by label.
    """
    return [
        {
            "image_id": image_id,
            "category_id": category_ids[int(found.labels[i])],
            "bbox": [round(value, 3) for value in xyxy_to_xywh(found.boxes[i].tolist())],
            "score": round(float(found.scores[i]), 6),
            "sigma": [round(value, 3) for value in found.sigma[i].tolist()],
        }
        for found, image_id in zip(detections, image_ids, strict=True)
        for i in range(len(found))
    ]


class CocoWriter:
    """Spools images and annotations to unnamed files; :meth:`close` joins them into one COCO document.

    Memory does not grow with the number of frames.
    """

    def __init__(self, path: Path, class_names: Sequence[str], description: str, license_name: str = "unknown") -> None:
        """Start a document.

        Args:
            path: json file, written by :meth:`close`.
            class_names: names by label; category ids are label + 1, as COCO counts.
            description: text for ``info``.
            license_name: name for ``licenses``; every image refers to it.

        Raises:
            OutputError: the folder of ``path`` is not writable.
        """
        self.path = path
        info = {
            "description": description,
            "version": f"ptedge {__version__}",
            "date_created": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        }
        self._head = coco_head(class_names, {"id": 1, "name": license_name, "url": ""}, info)
        try:
            self._images, self._annotations = _Spool(path.parent), _Spool(path.parent)
        except OSError as error:
            raise write_error(path, error) from None

    def add(self, file_name: str, width: int, height: int, detections: Detections) -> None:
        """One image and its detections, with ``score`` and ``sigma`` (of x1, y1, x2, y2) beside the usual fields.

        Args:
            file_name: for the image entry.
            width: pixels.
            height: pixels.
            detections: in pixels of the image.

        Raises:
            OutputError: disk full.
        """
        try:
            self._add(file_name, width, height, detections)
        except OSError as error:
            raise write_error(self.path, error) from None

    def close(self) -> None:
        """Write the document.

        Raises:
            OutputError: not writable, or disk full.
        """
        with atomic_write(self.path, "w") as file:
            file.write(json.dumps(self._head, ensure_ascii=False)[:-1])
            for name, spool in (("images", self._images), ("annotations", self._annotations)):
                file.write(f',\n"{name}": [')
                spool.move_to(file)
                file.write("]")
            file.write("}\n")

    def discard(self) -> None:
        """Give the document up: nothing is written."""
        self._images.close()
        self._annotations.close()

    def _add(self, file_name: str, width: int, height: int, detections: Detections) -> None:
        image_id = self._images.count + 1
        self._images.add(coco_image(image_id, file_name, width, height))
        for i in range(len(detections)):
            number, label = self._annotations.count + 1, int(detections.labels[i])
            entry = coco_annotation(number, image_id, label, detections.boxes[i].tolist(), digits=2)
            entry["score"] = round(float(detections.scores[i]), 5)
            entry["sigma"] = [round(v, 3) for v in detections.sigma[i].tolist()]
            self._annotations.add(entry)


class _Spool:
    """Comma-separated JSON values in a file without a name, gone with the process."""

    def __init__(self, folder: Path) -> None:
        # beside the result, as /tmp of a device is often memory
        self._file = tempfile.TemporaryFile("w+", encoding="utf-8", dir=folder)  # noqa: SIM115
        self.count = 0

    def add(self, value: dict[str, Any]) -> None:
        self._file.write((",\n" if self.count else "\n") + json.dumps(value, ensure_ascii=False))
        self.count += 1

    def close(self) -> None:
        self._file.close()

    def move_to(self, file: IO[str]) -> None:
        self._file.seek(0)
        while chunk := self._file.read(1 << 20):
            file.write(chunk)
        self._file.close()
