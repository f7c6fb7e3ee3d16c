"""Sigma of a detection from all candidates that speak of its object, not from the one that won."""

from __future__ import annotations

import torch
from torch import Tensor

from .config import CLUSTER_IOU, CLUSTER_WIDTH


def cluster_sigma(
    kept: Tensor,
    boxes: Tensor,
    scores: Tensor,
    sigma: Tensor,
    same_class: Tensor | None = None,
    iou_above: float = CLUSTER_IOU,
) -> Tensor:
    """Standard deviation of each side over the candidates that overlap a detection.

    Suppression keeps the best of many candidates and forgets how far the others lay. Here they stay: the side is a
    mixture of their Gaussians, and the variance is that of the mixture about the side that is reported,

        mean of sigma_j^2 + (b_j - b)^2, with weights score_j exp(-(1 - IoU_j)^2 / 0.1).

    A detection is among its own candidates, with IoU 1; where it is the only one, its own sigma is the answer. Boxes
    are those that NMS compares, clipped to the input: the reported side is a clipped one and so is every label, and a
    candidate of which a thousand pixels lie outside says nothing else of it than one that just reaches the border.

    Deviations are taken before they are squared, so nothing cancels, and sums are no matrix products, which a GPU may
    round to ten bits.

    Args:
        kept: [..., D, 4] xyxy in pixels; each is one of ``boxes``, and what else stands here gives 0.
        boxes: [..., M, 4] xyxy in pixels, with area, all that enter NMS.
        scores: [..., M] of their class; 0 for those that take no part.
        sigma: [..., M, 4] their own standard deviations in pixels.
        same_class: [..., D, M] whether detection and candidate are of one class; ``None`` where there is one class.
        iou_above: only candidates above this count.

    Returns:
        [..., D, 4] pixels.

    Reference:
        Harakeh et al., BayesOD, 2020: all members of a cluster inform the covariance; He et al., Bounding Box
        Regression with Uncertainty, 2019: the weight, there for merging boxes. Here boxes stay. method.md section 1.
    """
    columns = boxes.transpose(-1, -2)  # [..., 4, M]
    weight = scores.unsqueeze(-2) * _nearness(kept, columns, iou_above)  # [..., D, M]
    if same_class is not None:
        weight = torch.where(same_class, weight, 0.0)
    deviation = columns.unsqueeze(-3) - kept.unsqueeze(-1)  # [..., D, 4, M]
    variance = (sigma * sigma).transpose(-1, -2).unsqueeze(-3)  # [..., 1, 4, M]
    spread = (variance + deviation * deviation) * weight.unsqueeze(-2)
    total = weight.sum(dim=-1, keepdim=True)  # [..., D, 1]
    total = torch.where(total > 0, total, 1.0)  # rows that are no detection
    return torch.sqrt(spread.sum(dim=-1) / total)


def _nearness(kept: Tensor, columns: Tensor, iou_above: float) -> Tensor:
    """exp(-(1 - IoU)^2 / 0.1) where IoU is above the limit, else 0: [..., D, 4] and [..., 4, M] -> [..., D, M]."""
    x1, y1, x2, y2 = torch.split(kept, 1, dim=-1)  # [..., D, 1]
    left, top, right, bottom = torch.split(columns, 1, dim=-2)  # [..., 1, M]
    width = torch.relu(torch.minimum(x2, right) - torch.maximum(x1, left))
    height = torch.relu(torch.minimum(y2, bottom) - torch.maximum(y1, top))
    common = width * height
    union = (x2 - x1) * (y2 - y1) + (right - left) * (bottom - top) - common
    # boxes without area, which the static graph carries along, have no union either
    iou = common / torch.where(union > 0, union, 1.0)
    far = 1.0 - iou
    near = torch.exp(far * far * (-1.0 / CLUSTER_WIDTH))
    return torch.where(iou > iou_above, near, 0.0)
