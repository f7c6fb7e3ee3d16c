"""Average precision, by the two rules in use: VOC all-point (AP50, AP75, unless asked otherwise) and COCO (AP).

Detections are matched to boxes as pycocotools does: class by class, best score first, each detection takes the
free box it overlaps most, at or above the threshold. Only a detection that finds none may fall on an ignore box;
it then counts neither as right nor as wrong, and an ignore box takes any number of them. Overlap with an ignore box
is intersection over the *detection's* area, so a small detection inside a large ignored region is excused.
Other conventions, under which published numbers were taken, are in ``convention``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptedge.data.classes import ANY_CLASS
from ptedge.data.dataset import Sample
from ptedge.detections import Detections
from ptedge.scores.convention import VOC, Convention, counted_images
from ptedge.scores.matching import ON_IGNORE, match_as_devkit, match_boxes, overlaps

COCO_THRESHOLDS = np.linspace(0.5, 0.95, 10)
MAX_DETECTIONS = 100  # of one class in one image, as in COCO's AP

_RECALLS = np.linspace(0.0, 1.0, 101)


@dataclass(frozen=True)
class ClassMetrics:
    """Average precision of one class; ``None`` where the class has no box to find.

    Attributes:
        ap50: at IoU 0.5, in [0, 1]; by the convention asked for, VOC all-point unless another is named.
        ap75: the same at IoU 0.75.
        ap: COCO, mean over IoU 0.50, 0.55, ... 0.95.
        boxes: boxes to find (ignore boxes left out).
    """

    ap50: float | None
    ap75: float | None
    ap: float | None
    boxes: int


@dataclass(frozen=True)
class DetectionMetrics:
    """Average precision over a data set: means over the classes that have boxes, ``None`` when none has.

    Attributes:
        images: images evaluated, those without objects included unless the convention leaves them out.
        boxes: boxes to find (ignore boxes left out).
        ap50: as in :class:`ClassMetrics`.
        ap75: as in :class:`ClassMetrics`.
        ap: as in :class:`ClassMetrics`.
        per_class: by class name, in the order of the labels.
    """

    images: int
    boxes: int
    ap50: float | None
    ap75: float | None
    ap: float | None
    per_class: dict[str, ClassMetrics]

    def to_json(self) -> dict[str, Any]:
        """Plain values under the names ``ptedge eval --json`` prints."""
        return {
            "images": self.images,
            "boxes": self.boxes,
            "AP50": self.ap50,
            "AP75": self.ap75,
            "AP": self.ap,
            "per_class": {
                name: {"AP50": c.ap50, "AP75": c.ap75, "AP": c.ap, "boxes": c.boxes}
                for name, c in self.per_class.items()
            },
        }


@dataclass(frozen=True)
class Matches:
    """Pairs of a detection and the box it found, in one list over all images.

    Attributes:
        boxes: [M, 4] float64 xyxy, the detections.
        truth: [M, 4] float64 xyxy, the labelled boxes.
        sigma: [M, 4] float64, standard deviation in pixels of x1, y1, x2, y2.
        scores: [M] float64 in [0, 1].
        iou: [M] float64, at or above the matching threshold.
    """

    boxes: NDArray[np.float64]
    truth: NDArray[np.float64]
    sigma: NDArray[np.float64]
    scores: NDArray[np.float64]
    iou: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.boxes)


def evaluate_detections(
    detections: Sequence[Detections],
    samples: Sequence[Sample],
    class_names: Sequence[str],
    convention: Convention = VOC,
) -> DetectionMetrics:
    """Average precision of detections against labels.

    Args:
        detections: one an image, in pixels of that image.
        samples: the same images in the same order.
        class_names: names by label, for both.
        convention: what AP50 and AP75 mean, and which images count.

    Returns:
        AP overall and by class.
    """
    detections, samples = counted_images(detections, samples, convention)
    per_class = {
        name: _evaluate_class([of_class(d, s, label) for d, s in zip(detections, samples, strict=True)], convention)
        for label, name in enumerate(class_names)
    }
    return DetectionMetrics(
        images=len(samples),
        boxes=sum(c.boxes for c in per_class.values()),
        ap50=_mean([c.ap50 for c in per_class.values()]),
        ap75=_mean([c.ap75 for c in per_class.values()]),
        ap=_mean([c.ap for c in per_class.values()]),
        per_class=per_class,
    )


def match_detections(
    detections: Sequence[Detections], samples: Sequence[Sample], num_classes: int, threshold: float = 0.5
) -> Matches:
    """The true positives of a data set, with the box each of them found.

    Args:
        detections: one an image.
        samples: the same images in the same order.
        num_classes: labels are 0..num_classes-1.
        threshold: IoU in (0, 1] from which a detection counts as found.

    Returns:
        The pairs, image by image and class by class, best score first.
    """
    rows: list[tuple[NDArray[np.float64], ...]] = []
    for image_detections, sample in zip(detections, samples, strict=True):
        for label in range(num_classes):
            found, truth, ignore = of_class(image_detections, sample, label)
            overlap = overlaps(found.boxes, truth, ignore)
            matched = match_boxes(overlap, ignore, [threshold])[0]
            hit = matched >= 0
            target = matched[hit]
            columns = (found.boxes[hit], truth[target], found.sigma[hit], found.scores[hit], overlap[hit, target])
            rows.append(tuple(np.asarray(c, np.float64) for c in columns))
    if not rows:
        none = np.zeros((0, 4))
        return Matches(none, none, none, np.zeros(0), np.zeros(0))
    return Matches(*(np.concatenate(column) for column in zip(*rows, strict=True)))


def average_precision_voc(hits: NDArray[np.bool_], num_boxes: int) -> float | None:
    """Area under the precision-recall curve, precision made non-increasing (VOC 2010 on).

    Args:
        hits: [N] whether each detection is right, best score first over all images.
        num_boxes: boxes to find.

    Returns:
        AP in [0, 1]; ``None`` without a box to find.
    """
    if num_boxes == 0:
        return None
    recall, precision = _precision_recall(hits, num_boxes)
    return float(np.sum(np.diff(recall, prepend=0.0) * precision))


def average_precision_coco(hits: NDArray[np.bool_], num_boxes: int) -> float | None:
    """Mean of the non-increasing precision at recall 0, 0.01, ... 1 (COCO).

    Args:
        hits: [N] whether each detection is right, best score first over all images.
        num_boxes: boxes to find.

    Returns:
        AP in [0, 1]; ``None`` without a box to find.
    """
    if num_boxes == 0:
        return None
    recall, precision = _precision_recall(hits, num_boxes)
    # beyond the highest recall reached the precision is 0
    return float(np.append(precision, 0.0)[np.searchsorted(recall, _RECALLS, side="left")].mean())


def _precision_recall(hits: NDArray[np.bool_], num_boxes: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    found = np.cumsum(hits).astype(np.float64)
    precision = found / np.arange(1, len(hits) + 1)
    envelope = np.maximum.accumulate(precision[::-1])[::-1]
    return found / num_boxes, envelope


_Image = tuple[Detections, NDArray[np.float64], NDArray[np.bool_]]  # detections of a class, its boxes, which to ignore


def _evaluate_class(images: Sequence[_Image], convention: Convention) -> ClassMetrics:
    boxes = int(sum((~ignore).sum() for _, _, ignore in images))
    if boxes == 0:
        return ClassMetrics(None, None, None, 0)
    scores = np.concatenate([found.scores for found, _, _ in images])
    order = np.argsort(-scores, kind="stable")
    matched = np.concatenate(
        [match_boxes(overlaps(found.boxes, truth, ignore), ignore, COCO_THRESHOLDS) for found, truth, ignore in images],
        axis=1,
    )  # [T, N]
    hits = _hits(matched, order)
    ap50_hits, ap75_hits = (hits[0], hits[5]) if convention.next_best else _devkit_hits(images, order)
    rule = average_precision_voc if convention.all_point else average_precision_coco
    return ClassMetrics(
        ap50=rule(ap50_hits, boxes),
        ap75=rule(ap75_hits, boxes),
        ap=_mean([average_precision_coco(row, boxes) for row in hits]),
        boxes=boxes,
    )


def _hits(matched: NDArray[np.int64], order: NDArray[np.intp]) -> list[NDArray[np.bool_]]:
    """Right or wrong, best score first, of detections that count, for each threshold."""
    return [row[row != ON_IGNORE] >= 0 for row in matched[:, order]]


def _devkit_hits(images: Sequence[_Image], order: NDArray[np.intp]) -> list[NDArray[np.bool_]]:
    rows = []
    for found, truth, ignore in images:
        iou = overlaps(found.boxes, truth, np.zeros_like(ignore))  # difficult boxes by plain IoU, too
        rows.append(np.stack([match_as_devkit(iou, ignore, threshold) for threshold in (0.5, 0.75)]))
    return _hits(np.concatenate(rows, axis=1), order)


def of_class(detections: Detections, sample: Sample, label: int) -> _Image:
    """What counts in one image for one class.

    Args:
        detections: of the image.
        sample: its labels.
        label: the class.

    Returns:
        Its detections, best score first and at most ``MAX_DETECTIONS``; its boxes [G, 4]; which of them to ignore [G].
    """
    own = np.flatnonzero(detections.labels == label)
    order = np.argsort(-detections.scores[own], kind="stable")[:MAX_DETECTIONS]
    mine = (sample.labels == label) | (sample.labels == ANY_CLASS)  # the latter are ignore boxes, always
    return detections.select(own[order]), sample.boxes[mine].astype(np.float64), sample.ignore[mine]


def _mean(values: Sequence[float | None]) -> float | None:
    known = [v for v in values if v is not None]
    return float(np.mean(known)) if known else None
