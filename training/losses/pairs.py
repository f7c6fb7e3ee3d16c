"""Which boxes of two detectors mean the same object."""

from __future__ import annotations

import torch
from torch import Tensor
from torchvision.ops import box_iou


def pair_boxes(
    boxes: Tensor, labels: Tensor, other_boxes: Tensor, other_labels: Tensor, threshold: float
) -> list[tuple[int, int]]:
    """Pair boxes of one class one to one, the highest IoU first.

    Args:
        boxes: [N, 4] xyxy in pixels, by one detector.
        labels: [N] of them.
        other_boxes: [M, 4] xyxy in the same pixels, by the other.
        other_labels: [M] of them.
        threshold: only above this IoU.

    Returns:
        (row, row of the other) of each pair; of pairs with equal IoU the earlier row first.
    """
    if not len(boxes) or not len(other_boxes):
        return []
    iou = box_iou(boxes, other_boxes)
    iou = torch.where(labels.unsqueeze(1) == other_labels.unsqueeze(0), iou, torch.zeros_like(iou)).cpu()
    touching = torch.nonzero(iou > threshold)
    order = iou[touching[:, 0], touching[:, 1]].argsort(descending=True, stable=True)
    found: list[tuple[int, int]] = []
    rows: set[int] = set()
    columns: set[int] = set()
    for i, j in touching[order].tolist():
        if i not in rows and j not in columns:
            rows.add(i)
            columns.add(j)
            found.append((i, j))
    return found
