"""Where detections go: JSON Lines, COCO json, CSV, annotated images. (The video is in ``video.py``.)

A sink takes one result after the other and is closed once, also after an error or a signal.
"""

from __future__ import annotations

import contextlib
import csv
import errno
import io
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import cv2
import numpy as np
from numpy.typing import NDArray

from ptedge.data.coco_results import CocoWriter
from ptedge.detections import Detections
from ptedge.drawing.draw import draw_detections
from ptedge.errors import OutputError
from ptedge.files import fit_name, shown_name, write_error
from ptedge.folders import is_at
from ptedge.frames.address import mask_credentials
from ptedge.frames.source import Frame

from ..masks import Hidden
from .lines import LineFile, taken_away

JPEG_QUALITY = 92
JPEG_SIDE = 65500  # pixels; the format has 65,535, the library that everyone uses less
# of a name that this file system does not take: the trouble of one frame, not of the run
BAD_NAME = frozenset({errno.ENAMETOOLONG, errno.EILSEQ, errno.EINVAL})


@dataclass
class Result:
    """One frame and what was found in it.

    Attributes:
        frame: as read.
        detections: in pixels of the frame.
        class_names: names by label.
        draw_score: detections below it are not drawn.
        source: name of its source where there are several, else ``None``.
        age: seconds from the frame's arrival to its detections, in realtime; else ``None``.
        version: of the model in its deployment; ``None`` outside one.
        model: what field folders keep of it, see :attr:`ptedge.backends.bundle_predictor.BundlePredictor.record`.
        candidates: all that the model gave, where ``detections`` lacks some.
        hidden: what the frame, as it is here, does not show any more; ``None`` for nothing.
    """

    frame: Frame
    detections: Detections
    class_names: Sequence[str]
    draw_score: float = 0.0
    source: str | None = None
    age: float | None = None
    version: str | None = None
    model: Mapping[str, Any] = field(default_factory=dict)
    candidates: Detections | None = None
    hidden: Hidden | None = None

    @property
    def all_candidates(self) -> Detections:
        """All that the model gave, however low the score."""
        return self.detections if self.candidates is None else self.candidates

    @cached_property
    def annotated(self) -> NDArray[np.uint8]:
        """The frame with its detections drawn, [H, W, 3] uint8 RGB; drawn once for all sinks that show it."""
        shown = self.detections.select(self.detections.scores >= self.draw_score)
        return draw_detections(self.frame.image, shown, self.class_names)

    @cached_property
    def text(self) -> str:
        """:meth:`line` as JSON on one line; made once for all sinks that send it."""
        text = json.dumps(self.line(), ensure_ascii=False)
        return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")

    @property
    def file(self) -> str | None:
        """Name of the frame's file, see :func:`ptedge.files.shown_name`; ``None`` where it has none."""
        return shown_name(self.frame.file) if self.frame.file is not None else None

    def line(self) -> dict[str, Any]:
        """What a line of ``detections.jsonl`` says."""
        height, width = self.frame.image.shape[:2]
        return {
            **({"source": self.source} if self.source is not None else {}),
            "frame": self.frame.index,
            "time": self.frame.time,
            "file": self.file,
            "width": width,
            "height": height,
            **({"age_ms": round(self.age * 1000, 1)} if self.age is not None else {}),
            **({"version": self.version} if self.version is not None else {}),
            "detections": self.detections.to_json(self.class_names),
        }


class Sink(Protocol):
    """Takes results."""

    @property
    def path(self) -> Path | str:
        """File, folder or address that results go to."""
        ...

    def write(self, result: Result) -> None:
        """Take one result."""
        ...

    def close(self) -> None:
        """Finish the file."""
        ...


@dataclass
class LeftOut:
    """Frames whose file could not be written, while others' could.

    Attributes:
        count: of them.
        first: why, of the first one.
    """

    count: int = 0
    first: str = ""

    def add(self, path: Path, reason: str) -> None:
        """Count one."""
        self.count += 1
        self.first = self.first or f"{shown_name(str(path))}: {reason}"


class JsonlSink(LineFile):
    """``detections.jsonl``: a line a frame."""

    def write(self, result: Result) -> None:
        """Append a line."""
        self.append(result.text + "\n")


class CsvSink(LineFile):
    """``detections.csv``: a line a detection; the first column names the source where there are several."""

    COLUMNS = ("frame", "time", "file", "class", "label", "score", "x1", "y1", "x2", "y2")
    SIGMA_COLUMNS = ("sigma_x1", "sigma_y1", "sigma_x2", "sigma_y2", "entropy")

    def __init__(self, path: Path, several: bool = False, *, append: bool = False, rotate: int | None = None) -> None:
        head = _csv_lines([(*(("source",) if several else ()), *self.COLUMNS, *self.SIGMA_COLUMNS)])
        super().__init__(path, append=append, rotate=rotate, head=head)
        self._several = several

    def write(self, result: Result) -> None:
        """Append the lines of a frame."""
        frame, rows = result.frame, []
        source = (result.source,) if self._several else ()
        for d in result.detections.to_json(result.class_names):
            where = (*source, frame.index, frame.time, result.file, d["class"], d["label"], d["score"])
            rows.append((*where, *d["box"], *d["sigma"], d["entropy"]))
        self.append(_csv_lines(rows))


def _csv_lines(rows: Sequence[Sequence[Any]]) -> str:
    text = io.StringIO(newline="")
    csv.writer(text).writerows(rows)
    return text.getvalue()


class CocoSink:
    """``coco.json``: written at the end, also after Ctrl-C; not after a kill."""

    def __init__(self, path: Path, class_names: Sequence[str], source: str) -> None:
        self.path = path
        self._writer = CocoWriter(path, class_names, f"Detections by ptedge run on {mask_credentials(source)}")

    def write(self, result: Result) -> None:
        """Add a frame."""
        height, width = result.frame.image.shape[:2]
        name = result.file or f"{f'{result.source}/' if result.source else ''}{image_name(result.frame)}"
        self._writer.add(name, width, height, result.detections)

    def close(self) -> None:
        """Write the document."""
        self._writer.close()


class ImagesSink:
    """``images/``: each frame as JPEG with its detections drawn; a folder for each source where there are several.

    Attributes:
        left_out: frames too large for JPEG, or whose name the file system does not take.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.left_out = LeftOut()
        try:
            path.mkdir(exist_ok=True)
            # held open, so that another folder cannot be taken for it; Windows opens no folders, nor removes open ones
            self._folder = os.open(path, os.O_RDONLY) if os.name == "posix" else None
        except OSError as error:
            raise write_error(path, error) from None

    def write(self, result: Result) -> None:
        """Write one image, under a temporary name first.

        Raises:
            OutputError: no image can be written any more, or somebody took the folder away.
        """
        if self._folder is not None and not is_at(self.path, self._folder):
            raise OutputError(taken_away(self.path))
        folder = self.path / result.source if result.source else self.path
        path = folder / image_name(result.frame, folder)
        temporary = path.with_name(f".{path.name}.tmp")
        try:
            folder.mkdir(exist_ok=True)
            temporary.write_bytes(encode_jpeg(result.annotated, JPEG_QUALITY))
            os.replace(temporary, path)
        except (ValueError, cv2.error) as error:
            self.left_out.add(path, str(error).strip())
        except OSError as error:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            if error.errno not in BAD_NAME:
                raise write_error(path, error) from None
            self.left_out.add(path, error.strerror or str(error))

    def close(self) -> None:
        """Let go of the folder."""
        if self._folder is not None:
            os.close(self._folder)
            self._folder = None


def image_name(frame: Frame, folder: Path = Path()) -> str:
    """File name for a frame's picture: its number, and the name of its file, cut where needed, where it has one."""
    stem = f"_{Path(frame.file).stem}" if frame.file else ""
    return fit_name(folder, f"{frame.index:06d}", stem, ".jpg")


def encode_jpeg(image: NDArray[np.uint8], quality: int) -> bytes:
    """A picture as JPEG, without any metadata.

    Args:
        image: [H, W, 3] uint8 RGB.
        quality: 1 to 100.

    Raises:
        ValueError: larger than JPEG can be (65,500 pixels a side in the usual library), or it cannot be encoded.
    """
    height, width = image.shape[:2]
    if max(height, width) > JPEG_SIDE:
        raise ValueError(f"{width} x {height} pixels are too large for JPEG, which has {JPEG_SIDE} a side at most")
    ok, data = cv2.imencode(".jpg", cv2.cvtColor(image, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, quality])
    if not ok:
        raise ValueError(f"OpenCV cannot encode an image of shape {image.shape} as JPEG")
    return data.tobytes()
