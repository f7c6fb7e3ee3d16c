"""Average precision, by the two rules in use: VOC all-point (AP50, AP75) and COCO 101-point (AP).

Detections are matched to boxes as pycocotools does: class by class, best score first, each detection takes the
free box it overlaps most, at or above the threshold. Only a detection that finds none may fall on an ignore box;
it then counts neither as right nor as wrong, and an ignore box takes any number of them. Overlap with an ignore box
is intersection over the *detection's* area, so a small detection inside a large ignored region is excused.
The VOC development kit differs in one point: there a detection whose best box is taken is wrong at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ptedge.data.classes import ANY_CLASS
from ptedge.data.dataset import Sample
from ptedge.detections import Detections

COCO_THRESHOLDS = np.linspace(0.5, 0.95, 10)
MAX_DETECTIONS = 100  # of one class in one image, as in COCO's AP

UNMATCHED = -1
ON_IGNORE = -2

_RECALLS = np.linspace(0.0, 1.0, 101)


@dataclass(frozen=True)
class ClassMetrics:
    """Average precision of one class; ``None`` where the class has no box to find.

    Attributes:
        ap50: VOC all-point at IoU 0.5, in [0, 1].
        ap75: VOC all-point at IoU 0.75.
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
        images: images evaluated, those without objects included.
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
    detections: Sequence[Detections], samples: Sequence[Sample], class_names: Sequence[str]
) -> DetectionMetrics:
    """Average precision of detections against labels.

    Args:
        detections: one an image, in pixels of that image.
        samples: the same images in the same order.
        class_names: names by label, for both.

    Returns:
        AP overall and by class.
    """
    per_class = {
        name: _evaluate_class([_of_class(d, s, label) for d, s in zip(detections, samples, strict=True)])
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
            found, truth, ignore = _of_class(image_detections, sample, label)
            overlap = _overlap(found.boxes, truth, ignore)
            matched = match_boxes(overlap, ignore, [threshold])[0]
            hit = matched >= 0
            target = matched[hit]
            columns = (found.boxes[hit], truth[target], found.sigma[hit], found.scores[hit], overlap[hit, target])
            rows.append(tuple(np.asarray(c, np.float64) for c in columns))
    if not rows:
        none = np.zeros((0, 4))
        return Matches(none, none, none, np.zeros(0), np.zeros(0))
    return Matches(*(np.concatenate(column) for column in zip(*rows, strict=True)))


def match_boxes(overlap: NDArray[np.float64], ignore: NDArray[np.bool_], thresholds: ArrayLike) -> NDArray[np.int64]:
    """Greedy matching of one class in one image, at several thresholds at once.

    Args:
        overlap: [N, G] of N detections, best score first, with G boxes; in [0, 1].
        ignore: [G] marks boxes that are neither to be found nor to be missed.
        thresholds: [T] least overlap for a match.

    Returns:
        [T, N] index of the box a detection takes, ``UNMATCHED`` or ``ON_IGNORE``.

    Reference: pycocotools ``COCOeval.evaluateImg``; of boxes with equal overlap the last one is taken, as there.
    """
    least = np.asarray(thresholds, np.float64)  # [T]
    matched = np.full((len(least), len(overlap)), UNMATCHED, np.int64)
    if overlap.size == 0:
        return matched
    on_ignore = np.max(overlap, axis=1, where=ignore[None], initial=0.0)  # [N]
    free = np.repeat(~ignore[None], len(least), axis=0)  # [T, G]
    rows = np.arange(len(least))
    for i in np.flatnonzero(overlap.max(axis=1) >= least.min()):
        candidates = np.where(free, overlap[i], -1.0)  # [T, G]
        best = candidates.shape[1] - 1 - np.argmax(candidates[:, ::-1], axis=1)  # [T]
        hit = candidates[rows, best] >= least
        matched[:, i] = np.where(hit, best, np.where(on_ignore[i] >= least, ON_IGNORE, UNMATCHED))
        free[rows[hit], best[hit]] = False
    return matched


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


def _evaluate_class(images: Sequence[tuple[Detections, NDArray[np.float64], NDArray[np.bool_]]]) -> ClassMetrics:
    boxes = int(sum((~ignore).sum() for _, _, ignore in images))
    if boxes == 0:
        return ClassMetrics(None, None, None, 0)
    matched = np.concatenate(
        [match_boxes(_overlap(found.boxes, truth, ignore), ignore, COCO_THRESHOLDS) for found, truth, ignore in images],
        axis=1,
    )  # [T, N]
    scores = np.concatenate([found.scores for found, _, _ in images])
    matched = matched[:, np.argsort(-scores, kind="stable")]
    hits = [row[row != ON_IGNORE] >= 0 for row in matched]
    return ClassMetrics(
        ap50=average_precision_voc(hits[0], boxes),
        ap75=average_precision_voc(hits[5], boxes),
        ap=_mean([average_precision_coco(row, boxes) for row in hits]),
        boxes=boxes,
    )


def _of_class(
    detections: Detections, sample: Sample, label: int
) -> tuple[Detections, NDArray[np.float64], NDArray[np.bool_]]:
    """Detections of a class, best score first and at most ``MAX_DETECTIONS``; its boxes; which of them to ignore."""
    own = np.flatnonzero(detections.labels == label)
    order = np.argsort(-detections.scores[own], kind="stable")[:MAX_DETECTIONS]
    mine = (sample.labels == label) | (sample.labels == ANY_CLASS)  # the latter are ignore boxes, always
    return detections.select(own[order]), sample.boxes[mine].astype(np.float64), sample.ignore[mine]


def _overlap(boxes: NDArray[Any], truth: NDArray[np.float64], ignore: NDArray[np.bool_]) -> NDArray[np.float64]:
    """[N, G] IoU, or intersection over the detection's area for ignore boxes.

    In float64: float32 would put an IoU of exactly 0.65 below the threshold 0.65.
    """
    a = boxes.astype(np.float64)[:, None]  # [N, 1, 4]
    b = truth[None]  # [1, G, 4]
    size = np.clip(np.minimum(a[..., 2:], b[..., 2:]) - np.maximum(a[..., :2], b[..., :2]), 0.0, None)
    intersection = size.prod(axis=-1)  # [N, G]
    area_a = np.clip(a[..., 2:] - a[..., :2], 0.0, None).prod(axis=-1)
    area_b = np.clip(b[..., 2:] - b[..., :2], 0.0, None).prod(axis=-1)
    whole = np.where(ignore[None], area_a, area_a + area_b - intersection)
    overlap: NDArray[np.float64] = np.divide(intersection, whole, out=np.zeros_like(intersection), where=whole > 0)
    return overlap


def _mean(values: Sequence[float | None]) -> float | None:
    known = [v for v in values if v is not None]
    return float(np.mean(known)) if known else None
