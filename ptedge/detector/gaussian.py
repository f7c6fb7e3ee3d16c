"""Box deltas and their variances: encoding, decoding, and the way from delta space to pixels.

A box head predicts t = (tx, ty, tw, th) relative to a reference box (anchor or proposal) with centre (cx, cy) and size
(w, h): tx = wx (x - cx) / w, tw = ww log(width / w), and so on; (wx, wy, ww, wh) are the head's delta weights.
Each t is a Gaussian with mean ``delta`` and ``variance``, both in the delta space of the head that predicts them.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .config import MAX_LOG_SCALE, Weights

SMALLEST = 1e-3  # pixels; a reference box is never thinner in a division


def full_precision(x: Tensor) -> Tensor:
    """What a layer of a network gives, as float32 where autocast made it half: box maths is done in float32."""
    return x.float() if torch.is_autocast_enabled(x.device.type) else x


def logit_to_variance(logit: Tensor, floor: float, ceiling: float = 1.0) -> Tensor:
    """Variance from the network's raw output: floor + (ceiling - floor) * sigmoid(logit).

    Args:
        logit: any shape.
        floor: lowest variance, in (0, 1).
        ceiling: highest; the paper's is 1.

    Returns:
        Same shape, in (floor, ceiling), delta space.

    Reference:
        method.md section 1.
    """
    return floor + (ceiling - floor) * torch.sigmoid(logit)


def box_size(boxes: Tensor) -> Tensor:
    """Widths and heights [..., 2] of boxes [..., 4]; here and below split, since traced slices cost arithmetic."""
    top_left, bottom_right = torch.split(boxes, 2, dim=-1)
    return bottom_right - top_left


def _centre_size(boxes: Tensor) -> tuple[Tensor, Tensor]:
    top_left, bottom_right = torch.split(boxes, 2, dim=-1)
    size = bottom_right - top_left
    return top_left + 0.5 * size, size


def encode(boxes: Tensor, references: Tensor, weights: Weights) -> Tensor:
    """Deltas that turn the references into the boxes.

    Args:
        boxes: [..., 4] xyxy in pixels, with area.
        references: [..., 4] xyxy in pixels; a gradient flows into them (that is how anchors learn).
        weights: delta weights of the head.

    Returns:
        [..., 4] deltas (tx, ty, tw, th).
    """
    centre, size = _centre_size(boxes)
    ref_centre, ref_size = _centre_size(references)
    size = size.clamp(min=SMALLEST)
    ref_size = ref_size.clamp(min=SMALLEST)
    shift = (centre - ref_centre) / ref_size
    scale = torch.log(size / ref_size)
    return torch.cat([shift, scale], dim=-1) * boxes.new_tensor(weights)


def decode(deltas: Tensor, references: Tensor, weights: Weights) -> Tensor:
    """Boxes from deltas; the inverse of :func:`encode`.

    Args:
        deltas: [..., 4] (tx, ty, tw, th).
        references: [..., 4] xyxy in pixels.
        weights: delta weights of the head.

    Returns:
        [..., 4] xyxy in pixels, not clipped.
    """
    ref_centre, ref_size = _centre_size(references)
    if any(weight != 1.0 for weight in weights):
        deltas = deltas / deltas.new_tensor(weights)
    shift, scale = torch.split(deltas, 2, dim=-1)
    centre = ref_centre + shift * ref_size
    half = 0.5 * torch.exp(scale.clamp(max=MAX_LOG_SCALE)) * ref_size
    return torch.cat([centre - half, centre + half], dim=-1)


def corner_sigma(variances: Tensor, boxes: Tensor, references: Tensor, weights: Weights) -> Tensor:
    """Standard deviation in pixels of x1, y1, x2, y2.

    The centre is Gaussian: std = s w_ref / wx. The size is log-normal; to first order its std is width * s / ww (at the
    largest variance, 1, and weight 5 this is 3 % below the exact value). Centre and size are taken as independent, so
    var(x1) = var(x2) = var(cx) + var(width) / 4.

    Args:
        variances: [..., 4] in delta space.
        boxes: [..., 4] decoded boxes before clipping, xyxy in pixels.
        references: [..., 4] boxes that the deltas are relative to.
        weights: delta weights of the head.

    Returns:
        [..., 4] pixels.

    Reference:
        method.md section 1, "Sigma in pixels".
    """
    sizes = torch.cat([box_size(references), box_size(boxes)], dim=-1)
    pixels = variances * (sizes / variances.new_tensor(weights)) ** 2
    centre_variance, size_variance = torch.split(pixels, 2, dim=-1)
    sigma = torch.sqrt(centre_variance + 0.25 * size_variance)
    return torch.cat([sigma, sigma], dim=-1)


def calibrate_sides(boxes: Tensor, sigma: Tensor, offset: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
    """Boxes and sigma corrected side by side.

    Args:
        boxes: [..., 4] xyxy in pixels.
        sigma: [..., 4] pixels.
        offset: [4] how far the sides lie off, in shares of the box's width (x1, x2) and height (y1, y2).
        scale: [4] what sigma is multiplied by.

    Returns:
        Boxes moved by ``-offset``, not clipped, and sigma.

    Reference:
        method.md section 1, "Calibrated sides".
    """
    size = box_size(boxes)
    return boxes - offset * torch.cat([size, size], dim=-1), sigma * scale


def convert_variance(
    variances: Tensor, references: Tensor, weights: Weights, new_references: Tensor, new_weights: Weights
) -> Tensor:
    """Variances of one head's deltas as variances of another head's deltas.

    Centre coordinates pass through pixels: s2_px = s2 (w / wx)^2, then s2' = s2_px / w'^2 wx'^2. Log-size coordinates
    only change weight: s2' = s2 / ww^2 ww'^2.

    Args:
        variances: [..., 4] in the delta space of ``references`` and ``weights``.
        references: [..., 4] xyxy boxes in pixels.
        weights: their delta weights.
        new_references: [..., 4] xyxy boxes in pixels.
        new_weights: their delta weights.

    Returns:
        [..., 4] in the delta space of ``new_references`` and ``new_weights``. May exceed 1.

    Reference:
        method.md section 4, "Units". The paper's code uses the raw number across heads.
    """
    weight = variances.new_tensor(weights)
    new_weight = variances.new_tensor(new_weights)
    ref_size = (references[..., 2:] - references[..., :2]).clamp(min=SMALLEST)
    new_size = (new_references[..., 2:] - new_references[..., :2]).clamp(min=SMALLEST)
    centre = variances[..., :2] * (ref_size / weight[:2] / new_size * new_weight[:2]) ** 2
    size = variances[..., 2:] * (new_weight[2:] / weight[2:]) ** 2
    return torch.cat([centre, size], dim=-1)


def class_entropy(probabilities: Tensor) -> Tensor:
    """Entropy -sum p log p of class distributions; p log p is 0 at p = 0.

    Args:
        probabilities: [..., C], each row sums to 1.

    Returns:
        [...] nats, in [0, log C].
    """
    entropy: Tensor = -torch.special.xlogy(probabilities, probabilities).sum(dim=-1)
    return entropy
