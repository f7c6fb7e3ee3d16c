"""Losses of domain alignment by gradient reversal, as pure functions. Source is domain 0, target is domain 1."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F


class _Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, features: Tensor) -> Tensor:
        return features.view_as(features)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        return -gradients[0]


def reverse_gradient(features: Tensor) -> Tensor:
    """The same values; the gradient changes its sign on the way back.

    Behind it a domain classifier learns to tell the domains apart, while what lies before it learns to hide them.

    Args:
        features: any shape.

    Reference:
        Ganin and Lempitsky, "Unsupervised Domain Adaptation by Backpropagation", 2015.
    """
    reversed_: Tensor = _Reverse.apply(features)
    return reversed_


def local_loss(logits: Tensor, domain: int) -> Tensor:
    """Least squares of a domain classifier at every place of a feature map: strong alignment of texture and colour.

    Args:
        logits: [B, 1, h, w] of the classifier; large means target.
        domain: 0 for source, 1 for target.

    Returns:
        Scalar: half the mean of (sigmoid(logit) - domain)^2.

    Reference:
        Saito et al., "Strong-Weak Distribution Alignment for Adaptive Object Detection", 2019, section 3.2.
    """
    return 0.5 * (logits.float().sigmoid() - domain).square().mean()


def global_loss(logits: Tensor, domain: int, gamma: float) -> Tensor:
    """Focal loss of a domain classifier of whole images: weak alignment, images easy to tell apart weigh little.

    Args:
        logits: [B] of the classifier; large means target.
        domain: 0 for source, 1 for target.
        gamma: power; 0 gives plain cross-entropy.

    Returns:
        Scalar: half the mean of -(1 - p)^gamma log p, p being the probability of the true domain.

    Reference:
        Saito et al. 2019, section 3.1.
    """
    log_p = F.logsigmoid(logits.float() if domain == 1 else -logits.float())
    return 0.5 * (-((1.0 - log_p.exp()) ** gamma) * log_p).mean()


def image_class_loss(logits: Tensor, present: Tensor) -> Tensor:
    """Which classes are in the picture: binary cross-entropy for each class (categorical regularisation, ICR).

    Args:
        logits: [B, K] of the image's classifier.
        present: [B, K] 1 where an object of the class is labelled, else 0.

    Returns:
        Scalar, mean over images and classes.

    Reference:
        Xu et al., "Exploring Categorical Regularization for Domain Adaptive Object Detection", 2020, section 3.2.
    """
    return F.binary_cross_entropy_with_logits(logits.float(), present.float())


def classes_present(labels: list[Tensor], num_classes: int) -> Tensor:
    """Multi-hot classes of images.

    Args:
        labels: [M_i] int64 of each image.
        num_classes: K.

    Returns:
        [B, K] float, 0 or 1.
    """
    rows = [torch.zeros(num_classes, device=one.device).index_fill(0, one, 1.0) for one in labels]
    return torch.stack(rows)


@torch.no_grad()
def consistency_weight(image_logits: Tensor, instance_logits: Tensor, image: Tensor) -> Tensor:
    """How much an instance counts in instance alignment: exp|p_image(c) - p_instance(c)|, c its most probable class.

    Where image and instance disagree, the instance is one whose domains are not aligned yet (CCR). Background counts 1.

    Args:
        image_logits: [B, K] of the images' classifier.
        instance_logits: [R, K+1] of the ROI head, background last.
        image: [R] int64, which image an instance is of.

    Returns:
        [R] in [1, e].

    Reference:
        Xu et al. 2020, section 3.3.
    """
    p = instance_logits.float().softmax(dim=-1)  # [R, K+1]
    best, label = p.max(dim=-1)
    background = p.shape[-1] - 1
    of_image = image_logits.float().sigmoid()[image].gather(1, label.clamp(max=background - 1).unsqueeze(1)).squeeze(1)
    return torch.where(label == background, torch.ones_like(best), (of_image - best).abs().exp())


def instance_loss(logits: Tensor, domain: int, divisor: float, weight: Tensor | None = None) -> Tensor:
    """Cross-entropy of a domain classifier of instances.

    Args:
        logits: [R] of the classifier; large means target.
        domain: 0 for source, 1 for target.
        divisor: of the sum over instances: how many there are, see
            :data:`~ptedge.training.losses.equations.Normaliser`.
        weight: [R] of :func:`consistency_weight`; ``None`` for 1.

    Returns:
        Scalar; 0 with a gradient when there are none.
    """
    truth = torch.full_like(logits, float(domain), dtype=torch.float32)
    terms = F.binary_cross_entropy_with_logits(logits.float(), truth, weight=weight, reduction="none")
    return terms.sum() / divisor
