"""The labelled data set every reader returns: class names and one record an image, pixels read only when asked."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ptedge.data.classes import ANY_CLASS
from ptedge.errors import InputError

# what becomes of ignore regions: neither found nor missed; as if never drawn; boxes like any other
REGIONS = ("ignore", "drop", "keep")
DROPPED = 'ignore region left out (regions = "drop")'
KEPT = 'ignore region taken as a box (regions = "keep")'


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


def with_regions(dataset: Dataset, rule: str) -> Dataset:
    """The data with their ignore regions as a benchmark has them; what changes is counted in the notes.

    Args:
        dataset: as its reader gives it: groups, crowds, difficult objects and areas of no interest are ignore regions.
        rule: of :data:`REGIONS`. ``ignore`` leaves them so. ``drop`` leaves them out, so that a detection there is a
            false alarm and training learns background: what conversions do that never carried them over. ``keep``
            makes them boxes like any other, but for regions that stand for every class.
    """
    if rule == "ignore":
        return dataset
    changed = 0
    samples = []
    for sample in dataset.samples:
        own = sample.ignore if rule == "drop" else sample.ignore & (sample.labels != ANY_CLASS)
        changed += int(own.sum())
        if not own.any():
            samples.append(sample)
        elif rule == "keep":
            samples.append(replace(sample, ignore=sample.ignore & ~own))
        else:
            rest = np.flatnonzero(~own)
            boxes, labels, ignore = sample.boxes[rest], sample.labels[rest], sample.ignore[rest]
            samples.append(replace(sample, boxes=boxes, labels=labels, ignore=ignore))
    if not changed:
        return dataset
    notes = {**dataset.notes, DROPPED if rule == "drop" else KEPT: changed}
    return replace(dataset, samples=tuple(samples), notes=notes)
