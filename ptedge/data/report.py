"""What ``ptedge data`` tells about a data set: broken files, and numbers that decide about anchors and input size."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptedge.boxes import box_area, clip_boxes
from ptedge.data.columns import NOT_LISTED
from ptedge.data.dataset import Dataset, Sample
from ptedge.errors import InputError
from ptedge.frames.images import image_size, read_picture
from ptedge.preprocess import Letterbox

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)

_FIRST_ANCHORS = (
    1 / 6,
    1 / 2,
    5 / 6,
)  # quantiles of the sizes that k-means begins with: the same data, the same anchors


@dataclass(frozen=True)
class Problem:
    """One image file that is not as the annotations say.

    Attributes:
        file: path.
        kind: ``missing``, ``corrupt``, ``size``, or ``dark`` (12 bits in 16).
        text: sentence for people.
    """

    file: str
    kind: str
    text: str


def find_problems(dataset: Dataset, progress: Callable[[int], None] | None = None) -> list[Problem]:
    """Decode every image and compare its size with the annotations.

    Args:
        dataset: what to check.
        progress: called with the number of images done.
    """
    problems = []
    for done, sample in enumerate(dataset.samples, start=1):
        problem = _problem(sample)
        if problem is not None:
            problems.append(problem)
        if progress is not None:
            progress(done)
    return problems


def unusable_boxes(dataset: Dataset) -> int:
    """Boxes left out while reading, but for those of classes that were left out on purpose."""
    return sum(count for reason, count in dataset.dropped.items() if not reason.startswith(NOT_LISTED))


def statistics(dataset: Dataset, size: tuple[int, int] | None = None) -> dict[str, Any]:
    """Counts and size quantiles of the boxes that are not ignored.

    Args:
        dataset: what to count.
        size: (height, width) of the network's input in pixels; ``None`` leaves out what depends on it.

    Returns:
        ``images``, ``empty_images``, ``boxes``, ``ignored``, ``dropped``, ``passed_over``, ``notes``, ``per_class``,
        ``size`` (quantiles of the square root of the area, image pixels), ``aspect`` (quantiles of height / width), and
        with ``size`` also ``input_size`` and ``anchor_sizes`` (three, in input pixels); ``null`` where there is no box.
    """
    kept = [sample.boxes[~sample.ignore] for sample in dataset.samples]
    boxes = np.concatenate(kept)  # [N, 4]
    labels = np.concatenate([sample.labels[~sample.ignore] for sample in dataset.samples])
    sides = boxes[:, 2:] - boxes[:, :2]
    counts = np.bincount(labels, minlength=len(dataset.class_names))
    document: dict[str, Any] = {
        "data": str(dataset.root),
        "format": dataset.format,
        "images": len(dataset),
        "empty_images": sum(not len(own) for own in kept),
        "boxes": len(boxes),
        "ignored": int(sum(sample.ignore.sum() for sample in dataset.samples)),
        "dropped": dataset.dropped,
        "passed_over": dataset.passed_over,
        "notes": dataset.notes,
        "per_class": {name: int(count) for name, count in zip(dataset.class_names, counts, strict=True)},
        "size": _quantiles(np.sqrt(box_area(boxes))),
        "aspect": _quantiles(sides[:, 1] / sides[:, 0]),
    }
    if size is not None:
        document["input_size"] = list(size)
        document["anchor_sizes"] = suggest_anchor_sizes(dataset, size)
    return document


def suggest_anchor_sizes(dataset: Dataset, size: tuple[int, int]) -> list[float] | None:
    """Three anchor sizes for a data set: k-means of the square roots of its boxes' areas.

    Args:
        dataset: labelled data.
        size: (height, width) of the network's input in pixels.

    Returns:
        Square roots of anchor areas in input pixels, ascending; ``None`` without boxes.
    """
    values = []
    for sample in dataset.samples:
        if (~sample.ignore).any() and (known := _known_size(sample)) is not None:
            scale = Letterbox(*known, *size).scale
            values.append(np.sqrt(box_area(sample.boxes[~sample.ignore])) * scale)
    return [round(float(size), 1) for size in _cluster(np.concatenate(values))] if values else None


def _cluster(sizes: NDArray[np.float32]) -> NDArray[np.float64]:
    """Three means such that each is that of the sizes nearest to it, ascending; of equal sizes some are equal."""
    means = np.asarray(np.quantile(sizes.astype(np.float64), _FIRST_ANCHORS), np.float64)
    while True:
        nearest = np.abs(sizes[:, None] - means).argmin(axis=1)  # [N]
        own = [sizes[nearest == k] for k in range(len(means))]
        moved = np.array(
            [group.mean(dtype=np.float64) if len(group) else mean for group, mean in zip(own, means, strict=True)]
        )
        if np.array_equal(moved, means):
            return means
        means = moved


def with_sizes(dataset: Dataset) -> Dataset:
    """The same data with every width and height known, read from the image headers where the format is silent.

    Boxes of those images are clipped to them; one wholly outside is left out and counted.

    Raises:
        InputError: such an image is missing or unreadable.
    """
    dropped = Counter(dataset.dropped)
    samples = []
    for sample in dataset.samples:
        if sample.width and sample.height:
            samples.append(sample)
            continue
        width, height = image_size(sample.path)
        boxes = clip_boxes(sample.boxes, width, height)
        inside = box_area(boxes) > 0
        dropped["outside the image"] += int((~inside).sum())
        samples.append(
            replace(
                sample,
                width=width,
                height=height,
                boxes=boxes[inside],
                labels=sample.labels[inside],
                ignore=sample.ignore[inside],
            )
        )
    return replace(dataset, samples=tuple(samples), dropped={reason: n for reason, n in dropped.items() if n})


def _known_size(sample: Sample) -> tuple[int, int] | None:
    if sample.width and sample.height:
        return sample.width, sample.height
    try:
        return image_size(sample.path)
    except InputError:
        return None


def _problem(sample: Sample) -> Problem | None:
    file = str(sample.path)
    if not os.path.isfile(sample.path):
        return Problem(file, "missing", f"image {file} does not exist")
    try:
        picture = read_picture(sample.path)
    except InputError as error:
        return Problem(file, "corrupt", str(error))
    height, width = picture.image.shape[:2]
    if sample.width and sample.height and (width, height) != (sample.width, sample.height):
        return Problem(
            file, "size", f"image {file} is {width} x {height}, its annotation says {sample.width} x {sample.height}"
        )
    if picture.brightest is not None:
        return Problem(
            file,
            "dark",
            f"image {file} has 16 bits and no value above {picture.brightest}; 16 bits are divided by 256, so it is "
            f"nearly black (at most {picture.brightest >> 8} of 255). If it holds 12 bits, multiply its values by 16",
        )
    return None


def _quantiles(values: NDArray[np.float32] | Sequence[float]) -> dict[str, float] | None:
    if len(values) == 0:
        return None
    return {
        f"{quantile:g}": round(float(value), 3)
        for quantile, value in zip(QUANTILES, np.quantile(values, QUANTILES), strict=True)
    }
