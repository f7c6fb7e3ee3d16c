"""Who learns from whom: matching anchors and proposals to boxes, and drawing a balanced sample."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torchvision.ops import box_area, box_iou

BACKGROUND = -1  # matches nothing
IGNORED = -2  # between the thresholds, or on an ignore region: neither positive nor negative

Draws = torch.Generator | Sequence[torch.Generator]  # CPU generators: one for a batch, or one an image


def generator_of(draws: Draws, image: int) -> torch.Generator:
    """The generator that draws for an image of a batch. One an image keeps them apart, however images are batched."""
    return draws if isinstance(draws, torch.Generator) else draws[image]


def match(
    candidates: Tensor, boxes: Tensor, high: float, low: float, *, best_for_each: bool, ignore: Tensor | None = None
) -> Tensor:
    """Index of the box each candidate stands for.

    Args:
        candidates: [N, 4] anchors or proposals, xyxy in pixels.
        boxes: [M, 4] xyxy in pixels; M may be 0.
        high: IoU at or above which a candidate is matched.
        low: IoU below which it is background.
        best_for_each: candidates that are some box's best (ties included) are matched whatever their IoU above 0; each
            to the box it overlaps most, as torchvision does.
        ignore: [I, 4] regions; an unmatched candidate more than half inside one is ignored.

    Returns:
        [N] int64: index of a box, ``BACKGROUND`` or ``IGNORED``.

    Reference:
        Faster R-CNN, section 3.1.2; method.md section 4 for the thresholds on target.
    """
    matched = torch.full((len(candidates),), BACKGROUND, dtype=torch.int64, device=candidates.device)
    if len(boxes):
        iou = box_iou(candidates, boxes)  # [N, M]
        best_iou, best_box = iou.max(dim=1)
        matched = torch.where(best_iou >= high, best_box, matched)
        matched = torch.where((best_iou < high) & (best_iou >= low), torch.full_like(matched, IGNORED), matched)
        if best_for_each:
            top = iou.max(dim=0).values  # [M]
            is_top = (iou >= top.unsqueeze(0) - 1e-6) & (top.unsqueeze(0) > 0)  # [N, M]
            matched = torch.where(is_top.any(dim=1), best_box, matched)
    if ignore is not None and len(ignore):
        inside = _share_inside(candidates, ignore).max(dim=1).values > 0.5
        matched = torch.where(inside & (matched == BACKGROUND), torch.full_like(matched, IGNORED), matched)
    return matched


def _share_inside(candidates: Tensor, regions: Tensor) -> Tensor:
    top_left = torch.maximum(candidates[:, None, :2], regions[None, :, :2])
    bottom_right = torch.minimum(candidates[:, None, 2:], regions[None, :, 2:])
    intersection = (bottom_right - top_left).clamp(min=0).prod(dim=-1)
    share: Tensor = intersection / box_area(candidates).clamp(min=1e-6).unsqueeze(1)  # [N, I]
    return share


def sample(matched: Tensor, count: int, positive_fraction: float, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Draw positives and negatives.

    Args:
        matched: [N] of :func:`match`.
        count: how many in all.
        positive_fraction: at most this share is positive, in [0, 1].
        generator: CPU generator.

    Returns:
        Indices of the positives and of the negatives, together at most ``count``.
    """
    positive = torch.nonzero(matched >= 0).flatten()
    negative = torch.nonzero(matched == BACKGROUND).flatten()
    num_positive = min(len(positive), int(count * positive_fraction))
    num_negative = min(len(negative), count - num_positive)
    return _draw(positive, num_positive, generator), _draw(negative, num_negative, generator)


def _draw(index: Tensor, count: int, generator: torch.Generator) -> Tensor:
    if count >= len(index):
        return index
    order = torch.randperm(len(index), generator=generator)[:count]
    return index[order.to(index.device)]
