"""What can be watched without labels: pseudo boxes, entropy, variance, anchors, agreement with the source model."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torchvision.ops import box_iou

from ptedge.detector.gaussian import class_entropy
from ptedge.detector.model import ProbabilisticFasterRCNN
from ptedge.detector.roi_heads import RawDetections

from .pseudo import PseudoBoxes

CONFIDENT = 0.5  # score above which two detectors are asked to agree


def pseudo_numbers(detections: list[RawDetections], pseudo: list[PseudoBoxes]) -> dict[str, float]:
    """Means over a batch's pseudo boxes.

    Args:
        detections: of the teacher, before sharpening.
        pseudo: made from them.

    Returns:
        ``pseudo_boxes`` and ``pseudo_foreground`` an image, mean ``pseudo_score``, ``class_entropy`` (nats),
        ``box_variance`` (delta space), ``class_weight`` and ``box_weight`` (entropy focal). Means are 0 without boxes.
    """
    images = max(len(pseudo), 1)
    p = torch.cat([d.logits for d in detections]).softmax(dim=-1)
    return {
        "pseudo_boxes": sum(len(b.boxes) for b in pseudo) / images,
        "pseudo_foreground": float(sum(int(b.foreground.sum()) for b in pseudo)) / images,
        "pseudo_score": _mean(torch.cat([b.score for b in pseudo])),
        "class_entropy": _mean(class_entropy(p)),
        "box_variance": _mean(torch.cat([d.variances for d in detections])),
        "class_weight": _mean(torch.cat([b.class_weight for b in pseudo])),
        "box_weight": _mean(torch.cat([b.box_weight for b in pseudo])),
    }


def agreement(first: list[RawDetections], second: list[RawDetections]) -> float:
    """F1 of two detectors' confident boxes, matched at IoU 0.5 within a class.

    Args:
        first: detections of each image by one model.
        second: by the other.

    Returns:
        In [0, 1]; 1 when neither finds anything.
    """
    matched, total = 0, 0
    for a, b in zip(first, second, strict=True):
        mine, theirs = a.scores > CONFIDENT, b.scores > CONFIDENT
        total += int(mine.sum()) + int(theirs.sum())
        if mine.any() and theirs.any():
            iou = box_iou(a.boxes[mine], b.boxes[theirs])
            same = a.labels[mine].unsqueeze(1) == b.labels[theirs].unsqueeze(0)
            hit = (iou > 0.5) & same
            matched += int(hit.any(dim=1).sum()) + int(hit.any(dim=0).sum())
    return matched / total if total else 1.0


def anchor_numbers(model: ProbabilisticFasterRCNN) -> dict[str, Any]:
    """``anchors``: list of [width, height] in input pixels."""
    return {"anchors": [[round(float(v), 2) for v in shape] for shape in model.anchors.shapes().detach()]}


def _mean(values: Tensor) -> float:
    return float(values.mean()) if values.numel() else 0.0
