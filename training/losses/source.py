"""Supervised losses on labelled images: L_S of the paper. Functions of what the network said; they never run it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from ptedge.detector.config import ROI_WEIGHTS, RPN_WEIGHTS
from ptedge.detector.gaussian import encode
from ptedge.detector.model import Outputs
from ptedge.detector.roi_heads import ROIOutput
from ptedge.detector.rpn import RPNOutput

from .assign import Draws, Samples, Sampling, choose_samples
from .equations import Normaliser, beta_weight, gaussian_nll, mean_over, own_count, smooth_l1


@dataclass(frozen=True)
class ImageLabels:
    """Labels of one image.

    Attributes:
        boxes: [M, 4] xyxy in input pixels.
        labels: [M] int64.
        ignore: [I, 4] regions that are neither object nor background.
    """

    boxes: Tensor
    labels: Tensor
    ignore: Tensor


def sample_source(outputs: Outputs, labels: list[ImageLabels], sampling: Sampling, draws: Draws) -> Samples:
    """Which anchors and proposals learn from labels.

    Args:
        outputs: of the model's first stage.
        labels: one an image; an image without boxes teaches background.
        sampling: how many.
        draws: draws the sample.
    """
    boxes, ignore = [one.boxes for one in labels], [one.ignore for one in labels]
    return choose_samples(outputs.rpn.anchors, outputs.proposals, boxes, sampling, draws, ignore=ignore)


def source_losses(
    rpn: RPNOutput,
    roi: ROIOutput,
    samples: Samples,
    labels: list[ImageLabels],
    probabilistic: bool,
    normalise: Normaliser = own_count,
    beta: float = 0.0,
) -> dict[str, Tensor]:
    """The four supervised losses of a batch.

    Args:
        rpn: what the RPN says of every anchor.
        roi: what the ROI head says of ``samples.proposals``.
        samples: of :func:`sample_source`.
        labels: one an image.
        probabilistic: the box heads have variances; smooth L1 without.
        normalise: counts of sampled anchors and proposals to what sums over them are divided by.
        beta: power of :func:`~ptedge.training.losses.equations.beta_weight` on Gaussian terms, in [0, 1].

    Returns:
        ``rpn_cls``, ``rpn_box``, ``roi_cls``, ``roi_box``: scalars.

    Reference:
        method.md section 1.
    """
    return {
        **source_rpn_losses(rpn, samples, labels, probabilistic, normalise, beta),
        **source_roi_losses(roi, samples, labels, probabilistic, normalise, beta),
    }


def source_rpn_losses(
    rpn: RPNOutput,
    samples: Samples,
    labels: list[ImageLabels],
    probabilistic: bool,
    normalise: Normaliser = own_count,
    beta: float = 0.0,
) -> dict[str, Tensor]:
    """``rpn_cls`` and ``rpn_box``: cross-entropy and box loss of sampled anchors; see :func:`source_losses`."""
    anchors = rpn.anchors.detach()  # only target boxes move anchors (method.md section 6)
    cls_terms, box_terms, count = [], [], 0
    for i, (rows, own) in enumerate(zip(samples.anchors, labels, strict=True)):
        logits = rpn.logits[i][torch.cat([rows.positive, rows.negative])]
        truth = torch.cat([logits.new_ones(len(rows.positive)), logits.new_zeros(len(rows.negative))])
        cls_terms.append(F.binary_cross_entropy_with_logits(logits, truth, reduction="none"))
        deltas = encode(own.boxes[rows.box], anchors[rows.positive], RPN_WEIGHTS)
        mean, variance = rpn.deltas[i][rows.positive], rpn.variances[i][rows.positive]
        box_terms.append(
            beta_weight(variance, beta) * gaussian_nll(mean, variance, deltas)
            if probabilistic
            else smooth_l1(mean, deltas)
        )
        count += len(logits)
    divisor = normalise("rpn", count)
    return {
        "rpn_cls": mean_over(torch.cat(cls_terms), divisor, rpn.logits),
        "rpn_box": mean_over(torch.cat(box_terms), divisor, rpn.deltas),
    }


def source_roi_losses(
    roi: ROIOutput,
    samples: Samples,
    labels: list[ImageLabels],
    probabilistic: bool,
    normalise: Normaliser = own_count,
    beta: float = 0.0,
) -> dict[str, Tensor]:
    """``roi_cls`` and ``roi_box``: cross-entropy and box loss of sampled proposals; see :func:`source_losses`."""
    num_classes = roi.deltas.shape[1]
    classes, boxes = [], []
    for matched, own in zip(samples.matches, labels, strict=True):
        background = torch.full_like(matched, num_classes)
        if len(own.boxes):
            classes.append(torch.where(matched >= 0, own.labels[matched.clamp(min=0)], background))
            boxes.append(own.boxes[matched.clamp(min=0)])
        else:
            classes.append(background)
            boxes.append(torch.zeros(len(matched), 4, device=matched.device))
    label, box, proposal = torch.cat(classes), torch.cat(boxes), torch.cat(samples.proposals)
    positive = torch.nonzero(label < num_classes).flatten()
    deltas = encode(box[positive], proposal[positive], ROI_WEIGHTS)
    mean, variance = roi.deltas[positive, label[positive]], roi.variances[positive, label[positive]]
    box_terms = (
        beta_weight(variance, beta) * gaussian_nll(mean, variance, deltas) if probabilistic else smooth_l1(mean, deltas)
    )
    cls_terms = F.cross_entropy(roi.logits, label, reduction="none")
    divisor = normalise("roi", len(label))
    return {
        "roi_cls": mean_over(cls_terms, divisor, roi.logits),
        "roi_box": mean_over(box_terms, divisor, roi.deltas),
    }
