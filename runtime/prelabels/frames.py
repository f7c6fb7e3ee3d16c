"""What every format is written from: the frames of a field folder with their boxes, cut to the image."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ptedge.boxes import clip_boxes
from ptedge.detections import Detections
from ptedge.files import write_error
from ptedge.progress import tracked

from ..field import FieldFolder

SMALLEST = 1.0  # pixels of a side; an annotation tool shows nothing of a smaller box


@dataclass(frozen=True)
class PrelabelledFrame:
    """An image and what was found in it.

    Attributes:
        name: of its file.
        width, height: pixels.
        detections: in pixels, within the image.
        model: sha256 of the model that found them; empty where the folder does not say.
    """

    name: str
    width: int
    height: int
    detections: Detections
    model: str


@dataclass
class Prelabels:
    """The frames of a field folder, read one after the other.

    Attributes:
        folder: where they are.
        min_score: boxes below it are left out.
        left_out: why boxes were left out, counted as the frames are read.
        images: read so far.
        boxes: likewise.
    """

    folder: FieldFolder
    min_score: float
    left_out: Counter[str] = field(default_factory=Counter)
    images: int = 0
    boxes: int = 0

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names by label."""
        return self.folder.class_names

    def __iter__(self) -> Iterator[PrelabelledFrame]:
        """Frames in order.

        Raises:
            ArtifactError: a broken line.
            InputError: a detection that is none.
        """
        for record in tracked(self.folder.records(), "writing pre-labels", total=self.folder.images):
            found = Detections.from_json(record["detections"])
            width, height = int(record["width"]), int(record["height"])
            sure = found.scores >= self.min_score
            found = replace(found, boxes=clip_boxes(found.boxes, width, height))
            large = (found.boxes[:, 2:] - found.boxes[:, :2] >= SMALLEST).all(axis=1)
            known = (found.labels >= 0) & (found.labels < len(self.class_names))
            self.left_out[f"score below {self.min_score:g}"] += int((~sure).sum())
            self.left_out["smaller than a pixel within the image"] += int((sure & ~large).sum())
            self.left_out["of a class that the folder does not name"] += int((sure & large & ~known).sum())
            kept = found.select(sure & large & known)
            self.images, self.boxes = self.images + 1, self.boxes + len(kept)
            yield PrelabelledFrame(Path(record["file"]).name, width, height, kept, str(record.get("model") or ""))

    def place_image(self, name: str, target: Path) -> None:
        """Put an image of the folder where a format wants it: a second name of the same file where that can be.

        Raises:
            OutputError: it is gone, the disk is full, or the place is not writable.
        """
        source = self.folder.path / "images" / name
        try:
            with contextlib.suppress(OSError):
                os.link(source, target)
                return
            shutil.copyfile(source, target)
        except OSError as error:
            raise write_error(target, error) from None


def centre_form(box: NDArray[np.float32], width: int, height: int) -> tuple[float, float, float, float]:
    """A box as shares of its image: centre x, centre y, width, height."""
    x1, y1, x2, y2 = (float(v) for v in box)
    return (x1 + x2) / 2 / width, (y1 + y2) / 2 / height, (x2 - x1) / width, (y2 - y1) / height
