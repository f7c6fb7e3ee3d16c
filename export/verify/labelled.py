"""Does a bundle find as much as its checkpoint on labelled data, and is its sigma as true?"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ptedge.data import open_dataset
from ptedge.data.dataset import Dataset
from ptedge.data.locate import require_images
from ptedge.detections import Detections
from ptedge.errors import InputError
from ptedge.frames.images import read_image
from ptedge.preprocess import Letterbox
from ptedge.progress import tracked
from ptedge.scores.evaluation import EvaluationResult, score_detections

from ..network_inputs import Images
from .deviation import Deviation, deviation
from .limits import Limits

Answer = Callable[[Images], list[Detections]]  # [N, 3, H, W] -> N results in input pixels
GROUP = 16  # images held in memory at a time


@dataclass(frozen=True)
class DataDifference:
    """Two implementations on the same labelled data.

    Attributes:
        limits: what is allowed.
        reference: (AP50, AP75, coverage within 1 sigma, within 2 sigma).
        found: the same of the other.
        deviation: of the detections themselves.
        detections: of both, sure or not.
    """

    limits: Limits
    reference: tuple[float, float, float, float]
    found: tuple[float, float, float, float]
    deviation: Deviation
    detections: int

    @property
    def passed(self) -> bool:
        """Within the limits; more AP than the reference is no fault."""
        coverage = max(abs(a - b) for a, b in zip(self.reference[2:], self.found[2:], strict=True))
        lost = self.reference[0] - self.found[0]
        return lost <= self.limits.ap50 and coverage <= self.limits.coverage and self.deviation.passed

    def __str__(self) -> str:
        names = ("AP50", "AP75", "coverage of 1 sigma", "of 2 sigma")
        parts = [f"{name} {b:.4f} ({b - a:+.4f})" for name, a, b in zip(names, self.reference, self.found, strict=True)]
        return f"{', '.join(parts)}; {self.deviation}"


def open_labelled(path: Path, class_names: tuple[str, ...], limit: int | None) -> Dataset:
    """Labelled data with a model's classes.

    Args:
        path: what the user named.
        class_names: of the model.
        limit: only the first so many images; ``None`` for all.

    Raises:
        InputError: nothing there, an image is missing, or no box is labelled.
        ClassMismatchError: other classes.
    """
    dataset = open_dataset(path, class_names=class_names, use="score")
    dataset = dataclasses.replace(dataset, samples=dataset.samples[:limit])
    require_images(dataset)
    if not any((~sample.ignore).any() for sample in dataset.samples):
        raise InputError(f"{path} has no labelled box in the images taken, so there is nothing to compare. Take more")
    return dataset


def answer_data(answer: Answer, dataset: Dataset, size: tuple[int, int], sigma_scale: Any) -> EvaluationResult:
    """Run one implementation over labelled data.

    Args:
        answer: the implementation.
        dataset: images and labels.
        size: (height, width) of the network input.
        sigma_scale: factors that the graph leaves to its user, applied to sigma [4].
    """
    found: list[Detections] = []
    height, width = size
    factors = np.array(sigma_scale, np.float32)
    for start in tracked(range(0, len(dataset.samples), GROUP), "labelled data", f"groups of {GROUP} images"):
        images = [read_image(sample.path) for sample in dataset.samples[start : start + GROUP]]
        boxes = [Letterbox(image.shape[1], image.shape[0], height, width) for image in images]
        inputs = np.stack([box.image(image).transpose(2, 0, 1) for box, image in zip(boxes, images, strict=True)])
        for box, detections in zip(boxes, answer(inputs), strict=True):
            found.append(box.undo(dataclasses.replace(detections, sigma=detections.sigma * factors)))
    return score_detections(found, dataset)


def compare_data(reference: EvaluationResult, found: EvaluationResult, limits: Limits) -> DataDifference:
    """Compare two implementations on the same data."""
    difference = deviation(reference.detections, found.detections, limits)
    count = sum(len(one) for one in (*reference.detections, *found.detections))
    return DataDifference(limits, _row(reference), _row(found), difference, count)


def _row(answer: EvaluationResult) -> tuple[float, float, float, float]:
    values = (answer.metrics.ap50, answer.metrics.ap75, answer.sigma.coverage_1, answer.sigma.coverage_2)
    ap50, ap75, one, two = (0.0 if value is None else float(value) for value in values)
    return ap50, ap75, one, two
