"""The labelled data set every reader returns: class names and one record an image, pixels read only when asked."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ptedge.errors import InputError


@dataclass(frozen=True)
class Sample:
    """One image and its boxes.

    Attributes:
        path: image file.
        width: pixels, after EXIF rotation; 0 when the format does not say (the image is then read to know).
        height: as ``width``.
        boxes: [N, 4] float32 xyxy in pixels of the upright image. N may be 0.
        labels: [N] int64, 0-based index into the data set's class names; -1 only in an ignore box that stands for every
            class (a region where nothing was labelled).
        ignore: [N] bool; such a box is neither a target in training nor counted in evaluation, and a detection on it is
            no false positive.
        image_id: the format's own id of the image, or its position.
    """

    path: Path
    width: int
    height: int
    boxes: NDArray[np.float32]
    labels: NDArray[np.int64]
    ignore: NDArray[np.bool_]
    image_id: int | str


@dataclass(frozen=True)
class Dataset:
    """A labelled data set.

    Attributes:
        root: what the user named (file or folder), for messages.
        format: ``coco``, ``voc``, ``yolo``, ``kitti``, ``cityscapes``, ...
        class_names: names by label.
        samples: one an image, images without objects included.
        dropped: reasons and counts of boxes left out while reading (degenerate, outside, class not listed).
        passed_over: reasons and counts of files and entries that nothing was read from (a label file without an image).
        notes: counts of what was taken but deserves a look (boxes cut at the border, images without a label file).
        declared: the format lists its classes; otherwise they were collected from the boxes, and a class without any
            box is absent.
        split: part that was read, where the data have parts.
    """

    root: Path
    format: str
    class_names: tuple[str, ...]
    samples: tuple[Sample, ...]
    dropped: dict[str, int] = field(default_factory=dict)
    passed_over: dict[str, int] = field(default_factory=dict)
    notes: dict[str, int] = field(default_factory=dict)
    declared: bool = True
    split: str | None = None

    def __len__(self) -> int:
        return len(self.samples)

    @property
    def num_boxes(self) -> int:
        """Boxes that count: not marked ignore."""
        return int(sum((~sample.ignore).sum() for sample in self.samples))

    def drawn(self, count: int, seed: int) -> Dataset:
        """Some of the images, drawn at random: those of a smaller count are among those of a larger one.

        Args:
            count: of images, from 1 to those there are.
            seed: the same one draws the same images.

        Raises:
            InputError: there are fewer images.
        """
        if not 1 <= count <= len(self):
            raise InputError(f"{self.root} has {len(self)} images; {count} cannot be drawn of them")
        chosen = np.sort(np.random.default_rng(seed).permutation(len(self))[:count])
        return replace(self, samples=tuple(self.samples[i] for i in chosen))

    @property
    def remarks(self) -> str:
        """All that was left out or deserves a look, in one line; empty when there is nothing."""
        parts = (("left out", {**self.dropped, **self.passed_over}), ("note", self.notes))
        return "; ".join(
            f"{title}: " + ", ".join(f"{count} {reason}" for reason, count in counts.items())
            for title, counts in parts
            if counts
        )
