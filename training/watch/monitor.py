"""What can be watched without labels: pseudo boxes, entropy, variance, anchors, and how far detectors agree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torchvision.ops import box_area

from ptedge.detector.gaussian import class_entropy
from ptedge.detector.model import ProbabilisticFasterRCNN
from ptedge.detector.roi_heads import RawDetections

from ..losses.pairs import pair_boxes
from ..losses.pseudo import PseudoBoxes

SAME_OBJECT = 0.5  # IoU from which two detectors mean the same object


def pseudo_numbers(detections: list[RawDetections], pseudo: list[PseudoBoxes]) -> dict[str, float | Tensor]:
    """Means over a batch's pseudo boxes.

    Args:
        detections: of the teacher, before sharpening.
        pseudo: made from them.

    Returns:
        ``pseudo_boxes`` and ``pseudo_foreground`` an image, mean ``pseudo_score``, ``class_entropy`` (nats),
        ``box_variance`` (delta space), ``class_weight`` and ``box_weight`` (entropy focal) with the highest of each.
        0 without boxes. Scalars stay on their device until somebody reads them.
    """
    images = max(len(pseudo), 1)
    p = torch.cat([d.logits for d in detections]).softmax(dim=-1)
    class_weight = torch.cat([b.class_weight for b in pseudo])
    box_weight = torch.cat([b.box_weight for b in pseudo])
    return {
        "pseudo_boxes": sum(len(b.boxes) for b in pseudo) / images,
        "pseudo_foreground": torch.cat([b.foreground for b in pseudo]).sum() / images,
        "pseudo_score": _mean(torch.cat([b.score for b in pseudo])),
        "class_entropy": _mean(class_entropy(p)),
        "box_variance": _mean(torch.cat([d.variances for d in detections])),
        "class_weight": _mean(class_weight),
        "class_weight_max": _max(class_weight),
        "box_weight": _mean(box_weight),
        "box_weight_max": _max(box_weight),
    }


def detection_signals(detections: Sequence[RawDetections], num_classes: int) -> dict[str, Any]:
    """What a detector says of a set of images, each box counting by its score, so that clutter weighs little.

    Args:
        detections: of each image.
        num_classes: K.

    Returns:
        ``boxes`` an image, ``objects`` (sum of scores) an image, ``entropy`` (mean class entropy, nats), ``sigma``
        (mean standard deviation of a side over the root of the box area), ``variance`` (mean, delta space) and
        ``classes`` (K shares of the scores). The means and shares are ``None`` without boxes.
    """
    images = max(len(detections), 1)
    scores = torch.cat([d.scores for d in detections])
    total = float(scores.sum())
    signals: dict[str, Any] = {"boxes": len(scores) / images, "objects": total / images}
    if total == 0.0:
        return {**signals, "entropy": None, "sigma": None, "variance": None, "classes": None}
    area = box_area(torch.cat([d.boxes for d in detections])).clamp(min=1.0)
    sigma = torch.cat([d.sigma for d in detections]).mean(dim=1) / area.sqrt()
    labels = torch.cat([d.labels for d in detections])
    shares = torch.zeros(num_classes, device=scores.device).index_add_(0, labels, scores) / total
    signals["entropy"] = float((scores * torch.cat([d.entropy for d in detections])).sum()) / total
    signals["sigma"] = float((scores * sigma).sum()) / total
    signals["variance"] = float((scores * torch.cat([d.variances for d in detections]).mean(dim=1)).sum()) / total
    signals["classes"] = [round(float(share), 4) for share in shares]
    return signals


def agreement(first: Sequence[RawDetections], second: Sequence[RawDetections]) -> float:
    """How far two detectors say the same: twice the score that they share, over all the score they give.

    Boxes of one class are paired one to one, the highest IoU first, from IoU 0.5; a pair shares the lower of its two
    scores. No score threshold, so it moves in small steps where the F1 of confident boxes jumps by a box.

    Args:
        first: detections of each image by one detector.
        second: by the other, in the same pixels.

    Returns:
        In [0, 1]; 1 when neither finds anything.
    """
    total = sum(float(d.scores.sum()) for d in (*first, *second))
    return 2.0 * _shared(first, second) / total if total else 1.0


def refound_share(detections: Sequence[RawDetections], reference: Sequence[RawDetections]) -> float | None:
    """How much of what the reference finds is found still: the score that they share, over the reference's.

    Unlike :func:`agreement` it does not fall when more is found, as it should be after a poor start.

    Args:
        detections: of each image.
        reference: the same by another detector.

    Returns:
        In [0, 1]; ``None`` when the reference finds nothing.
    """
    total = sum(float(d.scores.sum()) for d in reference)
    return _shared(detections, reference) / total if total else None


def side_ratios(
    detections: Sequence[RawDetections], reference: Sequence[RawDetections]
) -> tuple[float | None, float | None]:
    """Width and height of boxes over those that the reference gives the same objects.

    Source-free, nothing but the teacher's own boxes says where an object ends, so their sides can drift in small steps
    that no agreement between teacher and student shows.

    Args:
        detections: of each image.
        reference: the same by another detector.

    Returns:
        Geometric means over pairs as of :func:`agreement`, counting by the score they share; ``None`` without pairs.
    """
    weights, ratios = [], []
    for a, b in zip(detections, reference, strict=True):
        for i, j, score in _pairs(a, b):
            weights.append(score)
            ratios.append(((a.boxes[i, 2:] - a.boxes[i, :2]) / (b.boxes[j, 2:] - b.boxes[j, :2])).double().cpu())
    if not weights:
        return None, None
    weight = torch.tensor(weights, dtype=torch.float64).unsqueeze(1)
    mean = (weight * torch.stack(ratios).log()).sum(dim=0) / weight.sum()
    return float(mean[0].exp()), float(mean[1].exp())


def _shared(first: Sequence[RawDetections], second: Sequence[RawDetections]) -> float:
    return sum(score for a, b in zip(first, second, strict=True) for _, _, score in _pairs(a, b))


def _pairs(a: RawDetections, b: RawDetections) -> list[tuple[int, int, float]]:
    """Boxes of one image that mean the same object, paired as for :func:`agreement`: both numbers, the lower score."""
    pairs = pair_boxes(a.boxes, a.labels, b.boxes, b.labels, SAME_OBJECT)
    if not pairs:
        return []
    first, second = a.scores.tolist(), b.scores.tolist()
    return [(i, j, min(first[i], second[j])) for i, j in pairs]


def total_variation(first: Sequence[float], second: Sequence[float]) -> float:
    """Distance of two histograms of shares: half the sum of absolute differences, in [0, 1]."""
    return 0.5 * sum(abs(a - b) for a, b in zip(first, second, strict=True))


def anchor_numbers(model: ProbabilisticFasterRCNN) -> dict[str, Any]:
    """``anchors``: list of [width, height] in input pixels."""
    return {"anchors": [[round(float(v), 2) for v in shape] for shape in model.anchors.shapes().detach()]}


def _mean(values: Tensor) -> Tensor:
    return values.mean() if values.numel() else values.new_zeros(())


def _max(values: Tensor) -> Tensor:
    return values.max() if values.numel() else values.new_zeros(())
