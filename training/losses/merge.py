"""A second opinion: boxes that another detector found, run elsewhere, merged with the teacher's own."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torchvision.ops import box_area, clip_boxes_to_image

from ptedge.config import require
from ptedge.detector.config import ROI_WEIGHTS
from ptedge.detector.gaussian import class_entropy, corner_sigma, decode, encode
from ptedge.detector.roi_heads import RawDetections

from .pairs import pair_boxes

SMALLEST_PROBABILITY = 1e-6  # of a class: logits stay finite


@dataclass(frozen=True)
class MergeRule:
    """How boxes of another detector (``--teacher-boxes``) join the teacher's; without such a file nothing here counts.

    Attributes:
        iou: a box of each that overlap by more than this and are of one class mean the same object.
        sigma: standard deviation of a side of a foreign box, over the box's width or height; 0 measures it at the
            start, from differences to the boxes of the model that the run begins with, as if both were off as far.
        weight: what a foreign box weighs in a pair, against an own box that is as sure.
        min_score: foreign boxes below are not looked at.
        class_map: name or number of a category in the file -> name of the class.
        images: COCO file whose images and categories a results list speaks of; empty where entries name their files.
    """

    iou: float = 0.5
    sigma: float = 0.05
    weight: float = 1.0
    min_score: float = 0.05
    class_map: dict[str, str] = field(default_factory=dict)
    images: str = ""

    def __post_init__(self) -> None:
        require("teacher_boxes.iou", self.iou, 0, 1)
        require("teacher_boxes.sigma", self.sigma, 0, 0.5)
        require("teacher_boxes.weight", self.weight, 0)
        require("teacher_boxes.min_score", self.min_score, 0, 1)


@dataclass(frozen=True)
class ForeignBoxes:
    """What another detector found in one image.

    Attributes:
        boxes: [N, 4] xyxy in input pixels of the weak view.
        scores: [N] in [0, 1].
        labels: [N] int64.
    """

    boxes: Tensor
    scores: Tensor
    labels: Tensor

    def __len__(self) -> int:
        return len(self.boxes)

    def to(self, device: torch.device) -> ForeignBoxes:
        """The same on a device."""
        return ForeignBoxes(self.boxes.to(device), self.scores.to(device), self.labels.to(device))


NO_FOREIGN = ForeignBoxes(torch.zeros(0, 4), torch.zeros(0), torch.zeros(0, dtype=torch.int64))


def certainty(probabilities: Tensor) -> Tensor:
    """How sure a class distribution is: 1 - E / log(K+1), E its entropy.

    Args:
        probabilities: [N, K+1].

    Returns:
        [N] in [0, 1].

    Reference:
        method.md section 5, with the power 1.
    """
    return (1.0 - class_entropy(probabilities) / math.log(probabilities.shape[-1])).clamp(min=0.0)


def class_distribution(scores: Tensor, labels: Tensor, num_classes: int) -> Tensor:
    """The score on the box's class, the rest on the background.

    Args:
        scores: [N] in [0, 1].
        labels: [N].
        num_classes: K.

    Returns:
        [N, K+1], background last.
    """
    p = scores.new_zeros(len(scores), num_classes + 1)
    p[:, -1] = 1.0 - scores
    p[torch.arange(len(scores), device=p.device), labels] = scores
    return p


def side_variance(sigma: float, boxes: Tensor, references: Tensor) -> Tensor:
    """Variances in ROI delta space of boxes whose sides are independent and have one relative standard deviation.

    A side at s of the size has the centre at s / sqrt 2 and the size at sqrt 2 s, to first order.

    Args:
        sigma: standard deviation of a side over the box's width (height).
        boxes: [N, 4] xyxy in pixels.
        references: [N, 4] xyxy boxes that deltas are relative to.

    Returns:
        [N, 4].
    """
    wx, wy, ww, wh = ROI_WEIGHTS
    size = (boxes[:, 2:] - boxes[:, :2]) / (references[:, 2:] - references[:, :2]).clamp(min=1e-3)
    centre = 0.5 * (sigma * size * size.new_tensor([wx, wy])) ** 2
    return torch.cat([centre, size.new_tensor([ww, wh]).square().mul(2.0 * sigma**2).expand_as(centre)], dim=1)


def measured_sigma(own: list[RawDetections], foreign: list[ForeignBoxes], iou: float) -> tuple[float, int]:
    """How far foreign boxes are off, if the teacher's are off as far and both independently.

    Args:
        own: the teacher's detections of each image.
        foreign: the other detector's.
        iou: above which boxes are a pair.

    Returns:
        Root of half the mean squared difference of a side, over the size of the pair's mean box; and how many pairs
        that rests on, 0 of which give 0.
    """
    squares, pairs = 0.0, 0
    for mine, other in zip(own, foreign, strict=True):
        for i, j in pair_boxes(mine.boxes, mine.labels, other.boxes, other.labels, iou):
            mean = 0.5 * (mine.boxes[i] + other.boxes[j])
            size = (mean[2:] - mean[:2]).repeat(2)
            squares += float(((mine.boxes[i] - other.boxes[j]) / size).square().mean())
            pairs += 1
    return (math.sqrt(0.5 * squares / pairs) if pairs else 0.0), pairs


@torch.no_grad()
def merge_boxes(
    own: RawDetections, foreign: ForeignBoxes, rule: MergeRule, sigma: float, input_size: tuple[int, int]
) -> RawDetections:
    """The teacher's detections of an image with those of another detector.

    A pair becomes the mixture of both, each with the weight score * :func:`certainty` of its class distribution: its
    class distribution is the mixture's, its box has the mixture's mean and variance in delta space, so a pair that
    differs is less sure of its sides. A foreign box alone has its score on its class, the rest on the background, and
    the variance of ``sigma``. An own box alone stays as it is.

    Args:
        own: of one image, in the weak view.
        foreign: of the same.
        rule: thresholds and weights.
        sigma: standard deviation of a foreign side over the box's size.
        input_size: (height, width) in pixels; foreign boxes are cut at its border.

    Returns:
        Pairs and own boxes in the order of ``own``, then foreign boxes alone, all sorted by score.
    """
    other = _within(foreign, rule.min_score, input_size)
    pairs = pair_boxes(own.boxes, own.labels, other.boxes, other.labels, rule.iou)
    mine, theirs = _index([i for i, _ in pairs], own.boxes), _index([j for _, j in pairs], own.boxes)
    fused = _fuse(_rows(own, mine), _foreign(other, theirs, own.logits.shape[-1] - 1), rule, sigma)
    alone = torch.ones(len(other), dtype=torch.bool, device=own.boxes.device)
    alone[theirs] = False
    added = _alone(_foreign(other, alone.nonzero().flatten(), own.logits.shape[-1] - 1), sigma)
    merged = {
        name: torch.cat([value.index_copy(0, mine, getattr(fused, name).to(value)), getattr(added, name).to(value)])
        for name, value in vars(own).items()
    }
    order = merged["scores"].argsort(descending=True, stable=True)
    return RawDetections(**{name: value[order] for name, value in merged.items()})


@dataclass(frozen=True)
class _Foreign:
    """Some foreign boxes with their class distribution."""

    boxes: Tensor
    scores: Tensor
    labels: Tensor
    p: Tensor


def _within(foreign: ForeignBoxes, min_score: float, input_size: tuple[int, int]) -> ForeignBoxes:
    boxes = clip_boxes_to_image(foreign.boxes, input_size)
    keep = (foreign.scores >= min_score) & (box_area(boxes) > 0)
    return ForeignBoxes(boxes[keep], foreign.scores[keep], foreign.labels[keep])


def _foreign(foreign: ForeignBoxes, rows: Tensor, num_classes: int) -> _Foreign:
    scores, labels = foreign.scores[rows], foreign.labels[rows]
    return _Foreign(foreign.boxes[rows], scores, labels, class_distribution(scores, labels, num_classes))


def _rows(detections: RawDetections, rows: Tensor) -> RawDetections:
    return RawDetections(**{name: value[rows] for name, value in vars(detections).items()})


def _index(rows: list[int], like: Tensor) -> Tensor:
    return torch.tensor(rows, dtype=torch.int64, device=like.device)


def _fuse(own: RawDetections, other: _Foreign, rule: MergeRule, sigma: float) -> RawDetections:
    """Pairs as mixtures of their two; row by row."""
    p = own.logits.softmax(dim=-1)
    a = own.scores * certainty(p)
    b = rule.weight * other.scores * certainty(other.p)
    share = torch.where(a + b > 0, b / (a + b).clamp(min=1e-12), torch.full_like(a, 0.5)).unsqueeze(1)  # [P, 1]
    mean = encode(own.boxes, own.proposals, ROI_WEIGHTS)
    other_mean = encode(other.boxes, own.proposals, ROI_WEIGHTS)
    other_variance = side_variance(sigma, other.boxes, own.proposals)
    variances = (1 - share) * own.variances + share * other_variance + share * (1 - share) * (mean - other_mean) ** 2
    boxes = decode((1 - share) * mean + share * other_mean, own.proposals, ROI_WEIGHTS)
    mixed = (1 - share) * p + share * other.p
    scores = (1 - share[:, 0]) * own.scores + share[:, 0] * other.scores
    return _detections(boxes, scores, own.labels, mixed, variances, own.proposals)


def _alone(other: _Foreign, sigma: float) -> RawDetections:
    variances = side_variance(sigma, other.boxes, other.boxes)
    return _detections(other.boxes, other.scores, other.labels, other.p, variances, other.boxes)


def _detections(
    boxes: Tensor, scores: Tensor, labels: Tensor, p: Tensor, variances: Tensor, proposals: Tensor
) -> RawDetections:
    return RawDetections(
        boxes=boxes,
        scores=scores,
        labels=labels,
        logits=p.clamp(min=SMALLEST_PROBABILITY).log(),
        variances=variances,
        proposals=proposals,
        sigma=corner_sigma(variances, boxes, proposals, ROI_WEIGHTS),
        entropy=class_entropy(p),
    )
