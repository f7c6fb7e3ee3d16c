"""Run a model over labelled images and score it: average precision, truth of its sigma, errors of its sides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ptedge.backends.predictor import Predictor
from ptedge.data.dataset import Dataset, Sample
from ptedge.data.locate import require_images
from ptedge.detections import Detections
from ptedge.errors import ClassMismatchError, InputError
from ptedge.frames.images import read_image
from ptedge.scores.average_precision import DetectionMetrics, Matches, evaluate_detections, match_detections
from ptedge.scores.convention import VOC, Convention
from ptedge.scores.sides import OffsetRemoved, SideErrors, remove_offset, side_errors
from ptedge.scores.sigma_quality import SigmaQuality, sigma_quality

MATCH_IOU = 0.5  # a detection that overlaps its box this much is a true positive, whose sigma is judged

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class EvaluationResult:
    """What a model did on a data set.

    Attributes:
        metrics: average precision.
        convention: what AP50 and AP75 mean in it.
        sigma: quality of sigma over the true positives.
        sides: signed errors of the sides of the true positives.
        offset_removed: average precision and coverage without the sides' common offset.
        matches: the true positives.
        detections: of every image, in the order of the data set's samples.
    """

    metrics: DetectionMetrics
    convention: Convention
    sigma: SigmaQuality
    sides: SideErrors
    offset_removed: OffsetRemoved
    matches: Matches
    detections: tuple[Detections, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain values, as ``ptedge eval --json`` prints them; without detections and matches."""
        return {
            **self.metrics.to_json(),
            "convention": self.convention.name,
            "sigma": self.sigma.to_json(),
            "sides": self.sides.to_json(),
            "offset_removed": self.offset_removed.to_json(),
        }


def evaluate_model(
    predictor: Predictor, dataset: Dataset, progress: Progress | None = None, convention: Convention = VOC
) -> EvaluationResult:
    """Run a model over labelled images and score it.

    Args:
        predictor: the model.
        dataset: images and labels, with the model's class names.
        progress: called after each image with (images done, images in all).
        convention: what AP50 and AP75 mean.

    Returns:
        Average precision, quality of sigma, errors of the sides, and the detections.

    Raises:
        InputError, ClassMismatchError: see :func:`detect_all`.
    """
    return score_detections(detect_all(predictor, dataset, progress), dataset, convention)


def detect_all(predictor: Predictor, dataset: Dataset, progress: Progress | None = None) -> list[Detections]:
    """What a model finds on labelled images.

    Args:
        predictor: the model.
        dataset: images and labels, with the model's class names.
        progress: called after each image with (images done, images in all).

    Returns:
        One result an image, in its pixels, in the order of the data set's samples.

    Raises:
        InputError: no images, one that is missing or corrupt, or one whose size is not the labelled one.
        ClassMismatchError: the data set has other classes.
    """
    if tuple(dataset.class_names) != tuple(predictor.class_names):
        advice = "Evaluate on data with the model's classes, or map them in a TOML description (class_map)."
        raise ClassMismatchError(str(dataset.root), dataset.class_names, "the model", predictor.class_names, advice)
    if not dataset.samples:
        raise InputError(f"{dataset.root} has no images to evaluate on")
    require_images(dataset)
    found = []
    for done, sample in enumerate(dataset.samples, start=1):
        image = read_image(sample.path)
        _check_size(sample, image.shape[1], image.shape[0])
        found.append(predictor.detect(image))
        if progress is not None:
            progress(done, len(dataset))
    return found


def score_detections(
    detections: Sequence[Detections], dataset: Dataset, convention: Convention = VOC
) -> EvaluationResult:
    """Score what a model found.

    Args:
        detections: one an image, in its pixels, in the order of the data set's samples.
        dataset: the labels.
        convention: what AP50 and AP75 mean; sigma and the sides are judged on all images whatever it is.
    """
    samples, names = dataset.samples, dataset.class_names
    matches = match_detections(detections, samples, len(names), MATCH_IOU)
    sides = side_errors(matches)
    return EvaluationResult(
        metrics=evaluate_detections(detections, samples, names, convention),
        convention=convention,
        sigma=sigma_quality(matches),
        sides=sides,
        offset_removed=remove_offset(detections, samples, names, matches, sides.offset, convention),
        matches=matches,
        detections=tuple(detections),
    )


def _check_size(sample: Sample, width: int, height: int) -> None:
    if sample.width and (sample.width, sample.height) != (width, height):
        raise InputError(
            f"{sample.path} is {width} x {height}, but its labels are for {sample.width} x {sample.height}. "
            "Give the images the labels were made for"
        )
