"""Sigma of a cluster as a slow loop, for tests to compare with."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torchvision.ops import box_iou


def slow_cluster_sigma(kept: list[int], boxes: Tensor, scores: Tensor, sigma: Tensor, labels: Tensor) -> Tensor:
    """Sigma of the kept rows, as :func:`ptedge.detector.cluster.cluster_sigma` has it, in float64: [D, 4]."""
    iou = box_iou(boxes.double(), boxes.double())
    rows = []
    for i in kept:
        total, sums = 0.0, [0.0] * 4
        for j in range(len(boxes)):
            if labels[j] == labels[i] and iou[i, j] > 0.3:
                weight = float(scores[j]) * math.exp(-((1.0 - float(iou[i, j])) ** 2) / 0.1)
                total += weight
                for side in range(4):
                    deviation = float(boxes[j, side]) - float(boxes[i, side])
                    sums[side] += weight * (float(sigma[j, side]) ** 2 + deviation**2)
        rows.append([math.sqrt(value / total) for value in sums])
    return torch.tensor(rows).reshape(-1, 4)
