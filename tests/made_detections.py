"""Detections of two classes from a few numbers, for tests of what is watched."""

from __future__ import annotations

import torch
from torch import Tensor

from ptedge.detector.roi_heads import RawDetections


def raw(p: Tensor, labels: list[int], boxes: list[list[float]], variance: float = 0.2) -> RawDetections:
    """Detections with class probabilities ``p`` of two classes; the score is that of the label."""
    index, rows = torch.tensor(labels, dtype=torch.int64), torch.tensor(boxes).reshape(-1, 4)
    return RawDetections(
        boxes=rows,
        scores=p[torch.arange(len(p)), index],
        labels=index,
        logits=p.log(),
        variances=torch.full((len(p), 4), variance),
        proposals=rows,
        sigma=torch.tensor([1.0, 2.0, 3.0, 4.0]).repeat(len(p), 1),
        entropy=-torch.special.xlogy(p, p).sum(dim=1),
    )


def nothing() -> RawDetections:
    """Of an image in which nothing was found."""
    return raw(torch.zeros(0, 3), [], [])


def scored(*found: tuple[float, int, list[float]]) -> RawDetections:
    """Detections from (score, label, box)."""
    p = torch.tensor([[score if k == label else (1 - score) / 2 for k in range(3)] for score, label, _ in found])
    return raw(p.reshape(-1, 3), [label for _, label, _ in found], [box for _, _, box in found])
