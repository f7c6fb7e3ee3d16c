"""Where detections go: JSON Lines, COCO json, CSV, annotated images. (The video is in ``video.py``.)

A sink takes one result after the other and is closed once, also after an error or a signal.
"""

from __future__ import annotations

import contextlib
import csv
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit, urlunsplit

import cv2
import numpy as np
from numpy.typing import NDArray

from ptedge.detections import Detections
from ptedge.draw import draw_detections
from ptedge.files import write_error
from ptedge.frames import Frame

from .coco import CocoWriter

JPEG_QUALITY = 92


@dataclass
class Result:
    """One frame and what was found in it.

    Attributes:
        frame: as read.
        detections: in pixels of the frame.
        class_names: names by label.
        draw_score: detections below it are not drawn.
    """

    frame: Frame
    detections: Detections
    class_names: Sequence[str]
    draw_score: float = 0.0

    @cached_property
    def annotated(self) -> NDArray[np.uint8]:
        """The frame with its detections drawn, [H, W, 3] uint8 RGB; drawn once for all sinks that show it."""
        shown = self.detections.select(self.detections.scores >= self.draw_score)
        return draw_detections(self.frame.image, shown, self.class_names)

    def line(self) -> dict[str, Any]:
        """What a line of ``detections.jsonl`` says."""
        height, width = self.frame.image.shape[:2]
        return {
            "frame": self.frame.index,
            "time": self.frame.time,
            "file": self.frame.file,
            "width": width,
            "height": height,
            "detections": self.detections.to_json(self.class_names),
        }


class Sink(Protocol):
    """Takes results.

    Attributes:
        path: file or folder that results go to.
    """

    path: Path

    def write(self, result: Result) -> None:
        """Take one result."""
        ...

    def close(self) -> None:
        """Finish the file."""
        ...


class JsonlSink:
    """``detections.jsonl``: a line a frame, handed to the system at once, so that a kill loses no finished line."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._file = open(path, "w", encoding="utf-8")  # noqa: SIM115
        except OSError as error:
            raise write_error(path, error) from None

    def write(self, result: Result) -> None:
        """Append a line."""
        try:
            self._file.write(json.dumps(result.line(), ensure_ascii=False) + "\n")
            self._file.flush()
        except OSError as error:
            raise write_error(self.path, error) from None

    def close(self) -> None:
        """Close the file."""
        try:
            self._file.close()
        except OSError as error:
            raise write_error(self.path, error) from None


class CsvSink:
    """``detections.csv``: a line a detection."""

    COLUMNS = ("frame", "time", "file", "class", "label", "score", "x1", "y1", "x2", "y2")
    SIGMA_COLUMNS = ("sigma_x1", "sigma_y1", "sigma_x2", "sigma_y2", "entropy")

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._file = open(path, "w", encoding="utf-8", newline="")  # noqa: SIM115
        except OSError as error:
            raise write_error(path, error) from None
        self._writer = csv.writer(self._file)
        self._writer.writerow(self.COLUMNS + self.SIGMA_COLUMNS)

    def write(self, result: Result) -> None:
        """Append the lines of a frame."""
        frame = result.frame
        try:
            for d in result.detections.to_json(result.class_names):
                where = (frame.index, frame.time, frame.file, d["class"], d["label"], d["score"])
                self._writer.writerow((*where, *d["box"], *d["sigma"], d["entropy"]))
            self._file.flush()
        except OSError as error:
            raise write_error(self.path, error) from None

    def close(self) -> None:
        """Close the file."""
        try:
            self._file.close()
        except OSError as error:
            raise write_error(self.path, error) from None


class CocoSink:
    """``coco.json``: written at the end, also after Ctrl-C; not after a kill."""

    def __init__(self, path: Path, class_names: Sequence[str], source: str) -> None:
        self.path = path
        self._writer = CocoWriter(path, class_names, f"Detections by ptedge run on {without_password(source)}")

    def write(self, result: Result) -> None:
        """Add a frame."""
        height, width = result.frame.image.shape[:2]
        name = result.frame.file or image_name(result.frame)
        self._writer.add(name, width, height, result.detections)

    def close(self) -> None:
        """Write the document."""
        self._writer.close()


class ImagesSink:
    """``images/``: each frame as JPEG with its detections drawn."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.mkdir(exist_ok=True)
        except OSError as error:
            raise write_error(path, error) from None

    def write(self, result: Result) -> None:
        """Write one image, under a temporary name first."""
        path = self.path / image_name(result.frame)
        temporary = path.with_name(f".{path.name}.tmp")
        try:
            temporary.write_bytes(encode_jpeg(result.annotated, JPEG_QUALITY))
            os.replace(temporary, path)
        except OSError as error:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise write_error(path, error) from None

    def close(self) -> None:
        """Nothing is left to do."""


def image_name(frame: Frame) -> str:
    """File name for a frame's picture: its number, and the name of its file where it has one."""
    stem = f"_{Path(frame.file).stem}" if frame.file else ""
    return f"{frame.index:06d}{stem}.jpg"


def encode_jpeg(image: NDArray[np.uint8], quality: int) -> bytes:
    """A picture as JPEG, without any metadata.

    Args:
        image: [H, W, 3] uint8 RGB.
        quality: 1 to 100.
    """
    ok, data = cv2.imencode(".jpg", cv2.cvtColor(image, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, quality])
    if not ok:
        raise ValueError(f"OpenCV cannot encode an image of shape {image.shape} as JPEG")
    return data.tobytes()


def without_password(source: str) -> str:
    """A source's name without the user and password that an address may hold."""
    if "://" not in source:
        return source
    parts = urlsplit(source)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
