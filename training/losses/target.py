"""Losses on unlabelled target images: the student learns distributions from pseudo boxes. L_T of the paper.

Functions of what the network said; they never run it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn import functional as F

from ptedge.config import require
from ptedge.detector.config import ROI_WEIGHTS, RPN_WEIGHTS
from ptedge.detector.gaussian import convert_variance, encode
from ptedge.detector.model import Outputs
from ptedge.detector.roi_heads import ROIOutput
from ptedge.detector.rpn import RPNOutput

from .assign import BACKGROUND, Draws, Samples, Sampling, choose_samples
from .equations import (
    Normaliser,
    beta_weight,
    gaussian_cross_entropy,
    mean_over,
    objectness_cross_entropy,
    own_count,
    smooth_l1,
    soft_cross_entropy,
)
from .pseudo import PseudoBoxes


@dataclass(frozen=True)
class TargetRule:
    """What of a target image is learnt.

    A scale of 0 switches a part off: ``cls_scale = 0`` leaves localisation only, ``box_scale = 0`` classification only.

    Attributes:
        background: also learn background from anchors and proposals that match no pseudo box (the paper: no).
        cls_scale: factor on the class terms.
        box_scale: factor on the box terms. Labelled images divide box terms by the number of all sampled proposals,
            of which a quarter at most is positive; here all are positive, and 0.25 keeps the two losses on one scale.
        rpn_divisor: anchors an image that the RPN's terms are divided by (the authors' code: 256); 0: by those that
            match.
        box_beta: factor s^(2 beta) on Gaussian terms, of source images as well, see
            :func:`~ptedge.training.losses.equations.beta_weight`.
    """

    background: bool = False
    cls_scale: float = 1.0
    box_scale: float = 0.25
    rpn_divisor: int = 0
    box_beta: float = 0.0

    def __post_init__(self) -> None:
        require("cls_scale", self.cls_scale, 0)
        require("box_scale", self.box_scale, 0)
        require("rpn_divisor", self.rpn_divisor, 0)
        require("box_beta", self.box_beta, 0, 1)


def sample_target(
    outputs: Outputs, pseudo: list[PseudoBoxes], rule: TargetRule, sampling: Sampling, draws: Draws
) -> Samples:
    """Which anchors and proposals learn from pseudo boxes.

    Args:
        outputs: of the student's first stage.
        pseudo: pseudo boxes in the pixels of the student's view, one entry an image; may be empty.
        rule: whether background is learnt too. Without it all that are drawn may be positive.
        sampling: how many.
        draws: draws the sample.

    Reference:
        method.md section 4.
    """
    if rule.background:
        shares = replace(sampling, rpn_positive=0.5)
    else:
        shares = replace(sampling, rpn_positive=1.0, roi_positive=1.0)
    boxes = [one.boxes for one in pseudo]
    return choose_samples(outputs.rpn.anchors, outputs.proposals, boxes, shares, draws, background=rule.background)


def target_losses(
    rpn: RPNOutput,
    roi: ROIOutput,
    samples: Samples,
    pseudo: list[PseudoBoxes],
    rule: TargetRule,
    probabilistic: bool,
    normalise: Normaliser = own_count,
) -> dict[str, Tensor]:
    """The four losses of a target batch.

    Args:
        rpn: what the student's RPN says of every anchor.
        roi: what its ROI head says of ``samples.proposals``.
        samples: of :func:`sample_target`.
        pseudo: one entry an image.
        rule: what is learnt.
        probabilistic: the box heads have variances; smooth L1 without.
        normalise: counts of anchors and proposals to what sums over them are divided by.

    Returns:
        ``target_rpn_cls``, ``target_rpn_box``, ``target_roi_cls``, ``target_roi_box``: scalars; 0 with a gradient for a
        batch without pseudo boxes.

    Reference:
        method.md section 4.
    """
    return {
        **target_rpn_losses(rpn, samples, pseudo, rule, probabilistic, normalise),
        **target_roi_losses(roi, samples, pseudo, rule, probabilistic, normalise),
    }


def target_rpn_losses(
    rpn: RPNOutput,
    samples: Samples,
    pseudo: list[PseudoBoxes],
    rule: TargetRule,
    probabilistic: bool,
    normalise: Normaliser = own_count,
) -> dict[str, Tensor]:
    """``target_rpn_cls`` and ``target_rpn_box`` of sampled anchors, with gradient to their shapes."""
    fixed = rpn.anchors.detach()
    cls_terms, box_terms, cls_count, box_count = [], [], 0, 0
    for i, (rows, boxes) in enumerate(zip(samples.anchors, pseudo, strict=True)):
        cls = objectness_cross_entropy(boxes.probabilities[rows.box], rpn.logits[i][rows.positive])
        cls_terms.append(boxes.class_weight[rows.box] * cls)
        cls_count += len(rows.positive)
        if rule.background:
            zero = torch.zeros(len(rows.negative), device=fixed.device)
            logits = rpn.logits[i][rows.negative]
            cls_terms.append(F.binary_cross_entropy_with_logits(logits, zero, reduction="none"))
            cls_count += len(rows.negative)
        objects = boxes.foreground[rows.box]
        anchor, own = rows.positive[objects], rows.box[objects]  # [P] anchors that stand for an object
        mean = encode(boxes.boxes[own], rpn.anchors[anchor], RPN_WEIGHTS)  # with gradient to the anchors
        variance = convert_variance(boxes.variances[own], boxes.proposals[own], ROI_WEIGHTS, fixed[anchor], RPN_WEIGHTS)
        q_mean, q_variance = rpn.deltas[i][anchor], rpn.variances[i][anchor]
        term = _box_term(mean, variance, q_mean, q_variance, rule) if probabilistic else smooth_l1(q_mean, mean)
        box_terms.append(boxes.box_weight[own] * term)
        box_count += len(anchor)
    if rule.rpn_divisor:
        cls_count = box_count = rule.rpn_divisor * len(pseudo)
    cls_divisor, box_divisor = normalise("target_rpn_cls", cls_count), normalise("target_rpn_box", box_count)
    return {
        "target_rpn_cls": rule.cls_scale * mean_over(torch.cat(cls_terms), cls_divisor, rpn.logits),
        "target_rpn_box": rule.box_scale * mean_over(torch.cat(box_terms), box_divisor, rpn.deltas),
    }


def target_roi_losses(
    roi: ROIOutput,
    samples: Samples,
    pseudo: list[PseudoBoxes],
    rule: TargetRule,
    probabilistic: bool,
    normalise: Normaliser = own_count,
) -> dict[str, Tensor]:
    """``target_roi_cls`` and ``target_roi_box`` of sampled proposals; see :func:`target_losses`."""
    cls_terms, box_terms, cls_count, box_count, start = [], [], 0, 0, 0
    for rows, matched, boxes in zip(samples.proposals, samples.matches, pseudo, strict=True):
        here = slice(start, start + len(rows))
        start += len(rows)
        logits, deltas, variances = roi.logits[here], roi.deltas[here], roi.variances[here]
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
        q_mean, q_variance = deltas[row, label], variances[row, label]
        term = _box_term(mean, variance, q_mean, q_variance, rule) if probabilistic else smooth_l1(q_mean, mean)
        box_terms.append(boxes.box_weight[own] * term)
        box_count += len(row)
    cls_divisor, box_divisor = normalise("target_roi_cls", cls_count), normalise("target_roi_box", box_count)
    return {
        "target_roi_cls": rule.cls_scale * mean_over(torch.cat(cls_terms), cls_divisor, roi.logits),
        "target_roi_box": rule.box_scale * mean_over(torch.cat(box_terms), box_divisor, roi.deltas),
    }


def _box_term(mean: Tensor, variance: Tensor, q_mean: Tensor, q_variance: Tensor, rule: TargetRule) -> Tensor:
    return beta_weight(q_variance, rule.box_beta) * gaussian_cross_entropy(mean, variance, q_mean, q_variance)
