"""Who learns from whom: matching anchors and proposals to boxes, and drawing a balanced sample. No network runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torchvision.ops import box_area, box_iou

from ptedge.config import require

BACKGROUND = -1  # matches nothing
IGNORED = -2  # between the thresholds, or on an ignore region: neither positive nor negative

Draws = torch.Generator | Sequence[torch.Generator]  # CPU generators: one for a batch, or one an image


@dataclass(frozen=True)
class Sampling:
    """How many anchors and proposals an image learn.

    Attributes:
        rpn_count: anchors an image.
        rpn_positive: at most this share of them positive.
        roi_count: proposals an image.
        roi_positive: at most this share of them positive.
    """

    rpn_count: int = 256
    rpn_positive: float = 0.5
    roi_count: int = 128
    roi_positive: float = 0.25

    def __post_init__(self) -> None:
        require("rpn_count", self.rpn_count, 1)
        require("roi_count", self.roi_count, 1)
        require("rpn_positive", self.rpn_positive, 0, 1)
        require("roi_positive", self.roi_positive, 0, 1)


@dataclass(frozen=True)
class AnchorSample:
    """Anchors of one image that learn.

    Attributes:
        positive: [P] int64 rows of the anchors that stand for a box.
        box: [P] int64, which box.
        negative: [N] int64 rows of those that are background.
    """

    positive: Tensor
    box: Tensor
    negative: Tensor


@dataclass(frozen=True)
class Samples:
    """Which anchors and proposals of a batch learn, and from what; one entry an image.

    Attributes:
        anchors: for the RPN.
        proposals: [R_i, 4] xyxy in input pixels: what the ROI head is to look at. Positives first.
        matches: [R_i] int64: index of the box that each proposal stands for, or ``BACKGROUND``.
    """

    anchors: list[AnchorSample]
    proposals: list[Tensor]
    matches: list[Tensor]


def choose_samples(
    anchors: Tensor,
    proposals: list[Tensor],
    boxes: list[Tensor],
    sampling: Sampling,
    draws: Draws,
    *,
    ignore: list[Tensor] | None = None,
    background: bool = True,
) -> Samples:
    """Match anchors and proposals of a batch to its boxes, and draw those that learn.

    The boxes themselves are proposals too: early proposals rarely hit them.

    Args:
        anchors: [N, 4] xyxy in input pixels, the same for every image.
        proposals: [R_i, 4] of each image.
        boxes: [M_i, 4] labels or pseudo boxes of each image.
        sampling: how many.
        draws: draws the sample, anchors of all images before proposals.
        ignore: [I_i, 4] regions of each image.
        background: draw background too.

    Reference:
        Faster R-CNN, sections 3.1.2 and 3.1.3; method.md section 4 for target.
    """
    regions = ignore if ignore is not None else [None] * len(boxes)
    of_anchors, sampled, matches = [], [], []
    for i, (own, region) in enumerate(zip(boxes, regions, strict=True)):
        matched = match(anchors.detach(), own, 0.7, 0.3, best_for_each=True, ignore=region)
        positive, negative = sample(matched, sampling.rpn_count, sampling.rpn_positive, generator_of(draws, i))
        of_anchors.append(AnchorSample(positive, matched[positive], negative if background else negative[:0]))
    for i, (found, own, region) in enumerate(zip(proposals, boxes, regions, strict=True)):
        candidates = torch.cat([found, own])
        matched = match(candidates, own, 0.5, 0.5, best_for_each=False, ignore=region)
        positive, negative = sample(matched, sampling.roi_count, sampling.roi_positive, generator_of(draws, i))
        index = torch.cat([positive, negative]) if background else positive
        sampled.append(candidates[index])
        matches.append(matched[index])
    return Samples(of_anchors, sampled, matches)


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
