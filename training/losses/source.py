"""Supervised losses on labelled images: L_S of the paper."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from ptedge.config import require
from ptedge.detector.gaussian import ROI_WEIGHTS, RPN_WEIGHTS, encode
from ptedge.detector.model import ProbabilisticFasterRCNN
from ptedge.detector.roi_heads import ROIOutput
from ptedge.detector.rpn import RPNOutput

from .assign import Draws, generator_of, match, sample
from .equations import Normaliser, gaussian_nll, mean_over, own_count


@dataclass(frozen=True)
class Targets:
    """Labels of one image.

    Attributes:
        boxes: [M, 4] xyxy in input pixels.
        labels: [M] int64.
        ignore: [I, 4] regions that are neither object nor background.
    """

    boxes: Tensor
    labels: Tensor
    ignore: Tensor


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


def source_losses(
    model: ProbabilisticFasterRCNN,
    images: Tensor,
    targets: list[Targets],
    sampling: Sampling,
    generator: Draws,
    normalise: Normaliser = own_count,
) -> dict[str, Tensor]:
    """The four supervised losses of a batch.

    Args:
        model: in training mode.
        images: [B, 3, H, W] RGB 0..255.
        targets: one an image; an image without boxes teaches background.
        sampling: how many anchors and proposals learn.
        generator: draws the sample.
        normalise: counts of sampled anchors and proposals to what sums over them are divided by.

    Returns:
        ``rpn_cls``, ``rpn_box``, ``roi_cls``, ``roi_box``: scalars.

    Reference:
        method.md section 1; Gaussian negative log-likelihood for boxes, smooth L1 for the vanilla detector.
    """
    features = model.features(images)
    rpn = model.rpn(features)
    losses = _rpn_losses(rpn, targets, sampling, generator, model.config.probabilistic, normalise)
    proposals = model.proposals(rpn, training=True)
    matches: list[Tensor] = []
    sampled: list[Tensor] = []
    for i, (boxes, target) in enumerate(zip(proposals, targets, strict=True)):
        candidates = torch.cat([boxes, target.boxes])  # the labels too: early proposals rarely hit them
        matched = match(candidates, target.boxes, 0.5, 0.5, best_for_each=False, ignore=target.ignore)
        draws = generator_of(generator, i)
        positive, negative = sample(matched, sampling.roi_count, sampling.roi_positive, draws)
        index = torch.cat([positive, negative])
        sampled.append(candidates[index])
        matches.append(matched[index])
    output = model.roi(features, sampled)
    losses.update(_roi_losses(output, sampled, matches, targets, model.config.probabilistic, normalise))
    return losses


def _rpn_losses(
    rpn: RPNOutput,
    targets: list[Targets],
    sampling: Sampling,
    generator: Draws,
    probabilistic: bool,
    normalise: Normaliser = own_count,
) -> dict[str, Tensor]:
    anchors = rpn.anchors.detach()  # only target boxes move anchors (method.md section 6)
    cls_terms, box_terms, count = [], [], 0
    for i, target in enumerate(targets):
        matched = match(anchors, target.boxes, 0.7, 0.3, best_for_each=True, ignore=target.ignore)
        draws = generator_of(generator, i)
        positive, negative = sample(matched, sampling.rpn_count, sampling.rpn_positive, draws)
        logits = rpn.logits[i][torch.cat([positive, negative])]
        truth = torch.cat([logits.new_ones(len(positive)), logits.new_zeros(len(negative))])
        cls_terms.append(F.binary_cross_entropy_with_logits(logits, truth, reduction="none"))
        deltas = encode(target.boxes[matched[positive]], anchors[positive], RPN_WEIGHTS)
        box_terms.append(_box_loss(rpn.deltas[i][positive], rpn.variances[i][positive], deltas, probabilistic))
        count += len(logits)
    divisor = normalise("rpn", count)
    return {
        "rpn_cls": mean_over(torch.cat(cls_terms), divisor, rpn.logits),
        "rpn_box": mean_over(torch.cat(box_terms), divisor, rpn.deltas),
    }


def _roi_losses(
    output: ROIOutput,
    sampled: list[Tensor],
    matches: list[Tensor],
    targets: list[Targets],
    probabilistic: bool,
    normalise: Normaliser = own_count,
) -> dict[str, Tensor]:
    num_classes = output.deltas.shape[1]
    labels, boxes = [], []
    for matched, target in zip(matches, targets, strict=True):
        background = torch.full_like(matched, num_classes)
        if len(target.boxes):
            labels.append(torch.where(matched >= 0, target.labels[matched.clamp(min=0)], background))
            boxes.append(target.boxes[matched.clamp(min=0)])
        else:
            labels.append(background)
            boxes.append(torch.zeros(len(matched), 4, device=matched.device))
    label, box, proposal = torch.cat(labels), torch.cat(boxes), torch.cat(sampled)
    positive = torch.nonzero(label < num_classes).flatten()
    deltas = encode(box[positive], proposal[positive], ROI_WEIGHTS)
    own = label[positive]
    box_terms = _box_loss(output.deltas[positive, own], output.variances[positive, own], deltas, probabilistic)
    cls_terms = F.cross_entropy(output.logits, label, reduction="none")
    divisor = normalise("roi", len(label))
    return {
        "roi_cls": mean_over(cls_terms, divisor, output.logits),
        "roi_box": mean_over(box_terms, divisor, output.deltas),
    }


def _box_loss(mean: Tensor, variance: Tensor, target: Tensor, probabilistic: bool) -> Tensor:
    if probabilistic:
        return gaussian_nll(mean, variance, target)
    return F.smooth_l1_loss(mean, target, beta=1.0 / 9.0, reduction="none")
