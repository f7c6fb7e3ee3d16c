"""How far the sides of a teacher's boxes are from labelled ones, and its boxes without that. Pure functions."""

from __future__ import annotations

import torch
from torch import Tensor
from torchvision.ops import box_iou

from ptedge.detector.roi_heads import RawDetections

from .pairs import pair_boxes

SAME_OBJECT = 0.5  # IoU above which two boxes are one object
# pairs that say "no offset": on the real pair single sides spread twice as far as offsets of different sides do
PRIOR_PAIRS = 4.0
SURE = 0.3  # score from which two models' boxes are compared


def side_errors(boxes: Tensor, labels: Tensor, true_boxes: Tensor, true_labels: Tensor) -> Tensor:
    """Signed errors of an image's sides over the labelled box's width and height.

    Boxes are paired as for average precision: the surest first, each with the free labelled box that it overlaps most.
    The pairs with the highest IoU would be those with the smallest errors.

    Args:
        boxes: [N, 4] detected, xyxy in pixels, best score first.
        labels: [N] of them.
        true_boxes: [M, 4] labelled, xyxy in the same pixels.
        true_labels: [M] of them.

    Returns:
        [P, 4] x1, y1, x2, y2 of each pair, detected minus labelled.
    """
    if not len(boxes) or not len(true_boxes):
        return boxes.new_zeros(0, 4)
    iou = box_iou(boxes, true_boxes)
    iou = torch.where(labels.unsqueeze(1) == true_labels.unsqueeze(0), iou, torch.zeros_like(iou)).cpu()
    rows, columns = [], []
    for i in range(len(iou)):
        best = int(iou[i].argmax())
        if iou[i, best] > SAME_OBJECT:
            rows.append(i)
            columns.append(best)
            iou[:, best] = 0.0
    true = true_boxes[columns].reshape(-1, 4)
    return (boxes[rows].reshape(-1, 4) - true) / (true[:, 2:] - true[:, :2]).repeat(1, 2)


def shared_offset(errors: Tensor) -> Tensor:
    """The offset that all boxes share, shrunk towards none where pairs are few.

    Args:
        errors: [P, 4] of :func:`side_errors`, of all images.

    Returns:
        [4] x1, y1, x2, y2: the mean times P / (P + 4); zeros without pairs.
    """
    return errors.sum(dim=0) / (len(errors) + PRIOR_PAIRS)


def side_drift(now: list[RawDetections], before: list[RawDetections]) -> Tensor:
    """How far the sides of a model's boxes have moved since, over the size of the earlier box.

    Args:
        now: detections of each image.
        before: the same by the model as it was.

    Returns:
        [4] x1, y1, x2, y2: the mean over boxes that both are sure of, each counting by the lower score; zeros without.
    """
    moved = before[0].boxes.new_zeros(4) if before else torch.zeros(4)
    total = 0.0
    for new, old in zip(now, before, strict=True):
        a, b = new.scores > SURE, old.scores > SURE
        boxes, scores, old_boxes, old_scores = new.boxes[a], new.scores[a], old.boxes[b], old.scores[b]
        for i, j in pair_boxes(boxes, new.labels[a], old_boxes, old.labels[b], SAME_OBJECT):
            weight = min(float(scores[i]), float(old_scores[j]))
            moved += weight * (boxes[i] - old_boxes[j]) / (old_boxes[j, 2:] - old_boxes[j, :2]).repeat(2)
            total += weight
    return moved / total if total else moved


def mirrored_alike(offset: Tensor) -> Tensor:
    """What of an offset is the same in a mirrored picture: boxes too wide or too narrow, not a shift to one side.

    Args:
        offset: [4] x1, y1, x2, y2.
    """
    wider = 0.5 * (offset[0] - offset[2])
    return torch.stack([wider, offset[1], -wider, offset[3]])


def of_detected(offset: Tensor) -> Tensor:
    """An offset over the size of the box without it, as a share of the box that has it.

    Args:
        offset: [4] x1, y1, x2, y2.
    """
    return offset / (1.0 + offset[2:] - offset[:2]).repeat(2)


def without_offset(boxes: Tensor, offset: Tensor) -> Tensor:
    """Boxes with an offset taken away.

    Args:
        boxes: [N, 4] xyxy in pixels.
        offset: [4] x1, y1, x2, y2 over the width and height of the box without it.

    Returns:
        [N, 4]; the inverse of ``box + offset * size``.
    """
    size = (boxes[:, 2:] - boxes[:, :2]) / (1.0 + offset[2:] - offset[:2])
    return boxes - offset * size.repeat(1, 2)
