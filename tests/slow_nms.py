"""Greedy NMS as a slow loop, for tests to compare with."""

from __future__ import annotations

from torch import Tensor

from ptedge.boxes import box_iou


def slow_nms(boxes: Tensor, order: list[int], threshold: float, labels: list[int]) -> list[int]:
    """Rows that stay, in ``order``: those that overlap none before them of the same label too much."""
    iou = box_iou(boxes.numpy(), boxes.numpy())
    kept: list[int] = []
    for i in order:
        if all(iou[i, j] <= threshold or labels[i] != labels[j] for j in kept):
            kept.append(i)
    return kept
