"""How far the sides of a teacher's boxes are from labelled ones, and its boxes without that. Pure functions."""

from __future__ import annotations

import torch
from torch import Tensor

from .pairs import pair_boxes

SAME_OBJECT = 0.5  # IoU above which a detection and a label are one object
PRIOR_PAIRS = 4.0  # pairs that say "no offset": an offset varies less between cameras than single boxes do around it


def side_errors(boxes: Tensor, labels: Tensor, true_boxes: Tensor, true_labels: Tensor) -> Tensor:
    """Signed errors of an image's sides over the labelled box's width and height.

    Args:
        boxes: [N, 4] detected, xyxy in pixels.
        labels: [N] of them.
        true_boxes: [M, 4] labelled, xyxy in the same pixels.
        true_labels: [M] of them.

    Returns:
        [P, 4] x1, y1, x2, y2 of each pair, detected minus labelled; pairs as of
        :func:`~ptedge.training.losses.pairs.pair_boxes`.
    """
    pairs = pair_boxes(boxes, labels, true_boxes, true_labels, SAME_OBJECT)
    found = boxes[[i for i, _ in pairs]].reshape(-1, 4)
    true = true_boxes[[j for _, j in pairs]].reshape(-1, 4)
    return (found - true) / (true[:, 2:] - true[:, :2]).repeat(1, 2)


def common_offset(errors: Tensor) -> Tensor:
    """The offset that all boxes share, as far as mirrored views show it, shrunk towards none where pairs are few.

    Half of the views are mirrored, and in those the left side is the right one. So left and right share what makes
    boxes wider or narrower; a shift of both to one side is left out.

    Args:
        errors: [P, 4] of :func:`side_errors`, of all images.

    Returns:
        [4] x1, y1, x2, y2; zeros without pairs. The median of each side times P / (P + 4).
    """
    if not len(errors):
        return errors.new_zeros(4)
    x1, y1, x2, y2 = errors.median(dim=0).values * (len(errors) / (len(errors) + PRIOR_PAIRS))
    wider = 0.5 * (x1 - x2)
    return torch.stack([wider, y1, -wider, y2])


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
