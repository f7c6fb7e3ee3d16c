"""Losses on unlabelled target images: the student learns distributions from pseudo boxes. L_T of the paper."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from ptedge.config import require
from ptedge.detector.gaussian import ROI_WEIGHTS, RPN_WEIGHTS, convert_variance, encode
from ptedge.detector.model import ProbabilisticFasterRCNN
from ptedge.detector.rpn import RPNOutput

from .assign import BACKGROUND, Draws, generator_of, match, sample
from .equations import (
    Normaliser,
    gaussian_cross_entropy,
    mean_over,
    objectness_cross_entropy,
    own_count,
    soft_cross_entropy,
)
from .pseudo import PseudoBoxes
from .source import Sampling


@dataclass(frozen=True)
class TargetRule:
    """What of a target image is learnt.

    A scale of 0 switches a part off: ``cls_scale = 0`` leaves localisation only, ``box_scale = 0`` classification only.

    Attributes:
        background: also learn background from anchors and proposals that match no pseudo box (the paper: no).
        cls_scale: factor on the class terms.
        box_scale: factor on the box terms. Labelled images divide box terms by the number of all sampled proposals,
            of which a quarter at most is positive; here all are positive, and 0.25 keeps the two losses on one scale.
    """

    background: bool = False
    cls_scale: float = 1.0
    box_scale: float = 0.25

    def __post_init__(self) -> None:
        require("cls_scale", self.cls_scale, 0)
        require("box_scale", self.box_scale, 0)


def target_losses(
    model: ProbabilisticFasterRCNN,
    images: Tensor,
    pseudo: list[PseudoBoxes],
    rule: TargetRule,
    sampling: Sampling,
    generator: Draws,
    normalise: Normaliser = own_count,
) -> dict[str, Tensor]:
    """The four losses of a target batch.

    Args:
        model: the student, in training mode.
        images: [B, 3, H, W] strong views, RGB 0..255.
        pseudo: pseudo boxes in the pixels of those views, one entry an image; may be empty.
        rule: what is learnt.
        sampling: how many anchors and proposals an image learn.
        generator: draws the sample.
        normalise: counts of anchors and proposals to what sums over them are divided by.

    Returns:
        ``target_rpn_cls``, ``target_rpn_box``, ``target_roi_cls``, ``target_roi_box``: scalars; 0 with a gradient for a
        batch without pseudo boxes.

    Reference:
        method.md section 4.
    """
    features = model.features(images)
    rpn = model.rpn(features)
    losses = _rpn_losses(rpn, pseudo, rule, sampling, generator, model.config.probabilistic, normalise)
    proposals = model.proposals(rpn, training=True)
    losses.update(_roi_losses(model, features, proposals, pseudo, rule, sampling, generator, normalise))
    return losses


def _rpn_losses(
    rpn: RPNOutput,
    pseudo: list[PseudoBoxes],
    rule: TargetRule,
    sampling: Sampling,
    generator: Draws,
    probabilistic: bool,
    normalise: Normaliser = own_count,
) -> dict[str, Tensor]:
    fixed = rpn.anchors.detach()
    cls_terms, box_terms, cls_count, box_count = [], [], 0, 0
    for i, boxes in enumerate(pseudo):
        matched = match(fixed, boxes.boxes, 0.7, 0.3, best_for_each=True)
        fraction = 0.5 if rule.background else 1.0
        positive, negative = sample(matched, sampling.rpn_count, fraction, generator_of(generator, i))
        own = matched[positive]
        cls = objectness_cross_entropy(boxes.probabilities[own], rpn.logits[i][positive])
        cls_terms.append(boxes.class_weight[own] * cls)
        cls_count += len(positive)
        if rule.background:
            zero = torch.zeros(len(negative), device=fixed.device)
            cls_terms.append(F.binary_cross_entropy_with_logits(rpn.logits[i][negative], zero, reduction="none"))
            cls_count += len(negative)
        box = positive[boxes.foreground[own]]  # [P] anchors that stand for an object
        own = matched[box]
        mean = encode(boxes.boxes[own], rpn.anchors[box], RPN_WEIGHTS)  # with gradient to the anchors
        variance = convert_variance(boxes.variances[own], boxes.proposals[own], ROI_WEIGHTS, fixed[box], RPN_WEIGHTS)
        term = _box_term(mean, variance, rpn.deltas[i][box], rpn.variances[i][box], probabilistic)
        box_terms.append(boxes.box_weight[own] * term)
        box_count += len(box)
    cls_divisor, box_divisor = normalise("target_rpn_cls", cls_count), normalise("target_rpn_box", box_count)
    return {
        "target_rpn_cls": rule.cls_scale * mean_over(torch.cat(cls_terms), cls_divisor, rpn.logits),
        "target_rpn_box": rule.box_scale * mean_over(torch.cat(box_terms), box_divisor, rpn.deltas),
    }


def _roi_losses(
    model: ProbabilisticFasterRCNN,
    features: Tensor,
    proposals: list[Tensor],
    pseudo: list[PseudoBoxes],
    rule: TargetRule,
    sampling: Sampling,
    generator: Draws,
    normalise: Normaliser = own_count,
) -> dict[str, Tensor]:
    sampled, matches = [], []
    for i, (candidates, boxes) in enumerate(zip(proposals, pseudo, strict=True)):
        both = torch.cat([candidates, boxes.boxes])
        matched = match(both, boxes.boxes, 0.5, 0.5, best_for_each=False)
        fraction = sampling.roi_positive if rule.background else 1.0
        positive, negative = sample(matched, sampling.roi_count, fraction, generator_of(generator, i))
        index = torch.cat([positive, negative]) if rule.background else positive
        sampled.append(both[index])
        matches.append(matched[index])
    output = model.roi(features, sampled)
    cls_terms, box_terms, cls_count, box_count, start = [], [], 0, 0, 0
    for rows, matched, boxes in zip(sampled, matches, pseudo, strict=True):
        here = slice(start, start + len(rows))
        start += len(rows)
        logits, deltas, variances = output.logits[here], output.deltas[here], output.variances[here]
        positive = torch.nonzero(matched >= 0).flatten()
        own = matched[positive]
        cls_terms.append(boxes.class_weight[own] * soft_cross_entropy(boxes.probabilities[own], logits[positive]))
        negative = torch.nonzero(matched == BACKGROUND).flatten()
        background = torch.full((len(negative),), logits.shape[-1] - 1, device=logits.device)
        cls_terms.append(F.cross_entropy(logits[negative], background, reduction="none"))
        cls_count += len(positive) + len(negative)
        row = positive[boxes.foreground[own]]
        own = matched[row]
        label = boxes.labels[own]
        mean = encode(boxes.boxes[own], rows[row], ROI_WEIGHTS)
        variance = convert_variance(boxes.variances[own], boxes.proposals[own], ROI_WEIGHTS, rows[row], ROI_WEIGHTS)
        term = _box_term(mean, variance, deltas[row, label], variances[row, label], model.config.probabilistic)
        box_terms.append(boxes.box_weight[own] * term)
        box_count += len(row)
    cls_divisor, box_divisor = normalise("target_roi_cls", cls_count), normalise("target_roi_box", box_count)
    return {
        "target_roi_cls": rule.cls_scale * mean_over(torch.cat(cls_terms), cls_divisor, output.logits),
        "target_roi_box": rule.box_scale * mean_over(torch.cat(box_terms), box_divisor, output.deltas),
    }


def _box_term(p_mean: Tensor, p_variance: Tensor, q_mean: Tensor, q_variance: Tensor, probabilistic: bool) -> Tensor:
    if probabilistic:
        return gaussian_cross_entropy(p_mean, p_variance, q_mean, q_variance)
    return F.smooth_l1_loss(q_mean, p_mean, beta=1.0 / 9.0, reduction="none")
