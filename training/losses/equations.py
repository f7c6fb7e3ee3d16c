"""The equations of Probabilistic Teacher, each one a pure function of tensors.

Gaussians live in delta space; p is the teacher (already sharpened), q the student. Losses are per row and unreduced;
:func:`mean_over` reduces them and gives 0 with a gradient when there are no rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from ptedge.detector.gaussian import class_entropy

LOG_2PI = math.log(2.0 * math.pi)
# entropy of a Gaussian with variance 1, the largest the heads can say: the normaliser of the box weight
MAX_BOX_ENTROPY = 0.5 * math.log(2.0 * math.pi * math.e)
Normaliser = Callable[[str, int], float]  # (name of a count, its value in this batch) -> what a sum is divided by


def own_count(name: str, count: int) -> float:
    """The batch's own count, at least 1: the :data:`Normaliser` of a batch that is a whole step."""
    return float(max(count, 1))


def gaussian_nll(mean: Tensor, variance: Tensor, target: Tensor) -> Tensor:
    """Negative log-likelihood 1/2 [log(2 pi) + log s2 + (t - mu)^2 / s2] of each coordinate.

    Args:
        mean: [..., 4] predicted deltas.
        variance: [..., 4], above 0.
        target: [..., 4] true deltas.

    Returns:
        [..., 4] nats; negative where the prediction is sharp and right.

    Reference:
        method.md section 1. The paper's code adds 0.3 inside the normaliser only, which biases the variance.
    """
    return 0.5 * (LOG_2PI + torch.log(variance) + (target - mean) ** 2 / variance)


def gaussian_cross_entropy(p_mean: Tensor, p_variance: Tensor, q_mean: Tensor, q_variance: Tensor) -> Tensor:
    """Cross-entropy H(p, q) = 1/2 [log(2 pi) + log s2_q + (s2_p + (mu_p - mu_q)^2) / s2_q] of each coordinate.

    Args:
        p_mean: [..., 4] teacher deltas.
        p_variance: [..., 4] teacher variances; 0 gives :func:`gaussian_nll`.
        q_mean: [..., 4] student deltas.
        q_variance: [..., 4] student variances, above 0.

    Returns:
        [..., 4] nats; smallest at mu_q = mu_p, s2_q = s2_p.

    Reference:
        Paper, appendix (its body omits the 1/2 on the quadratic term); method.md section 4.
    """
    return 0.5 * (LOG_2PI + torch.log(q_variance) + (p_variance + (p_mean - q_mean) ** 2) / q_variance)


def beta_weight(variance: Tensor, beta: float) -> Tensor:
    """Factor s2^beta on a Gaussian term, without gradient: beta-NLL.

    The gradient of the mean is (mu - t) / s2: samples that the network is unsure of teach the mean little. 0 leaves
    the likelihood as it is, 1 teaches means as the squared error does; the variance's minimum is the same for all.

    Args:
        variance: [..., 4] predicted, above 0.
        beta: in [0, 1].

    Reference:
        Seitzer et al. 2022, "On the Pitfalls of Heteroscedastic Uncertainty Estimation with Probabilistic Neural
        Networks", equation 6.
    """
    return variance.detach() ** beta if beta else torch.ones_like(variance)


def smooth_l1(mean: Tensor, target: Tensor) -> Tensor:
    """Smooth L1 of each coordinate, the box loss of the vanilla detector: quadratic below 1/9, then linear.

    Args:
        mean: [..., 4] predicted deltas.
        target: [..., 4] true deltas.

    Returns:
        [..., 4].

    Reference:
        Faster R-CNN, section 3.1.2, with torchvision's beta.
    """
    return F.smooth_l1_loss(mean, target, beta=1.0 / 9.0, reduction="none")


def soft_cross_entropy(p: Tensor, q_logits: Tensor) -> Tensor:
    """Cross-entropy -sum p log softmax(q) of each row.

    Args:
        p: [N, C] teacher probabilities.
        q_logits: [N, C] student logits.

    Returns:
        [N] nats.

    Reference:
        method.md section 4, ROI-cls.
    """
    return -(p * F.log_softmax(q_logits, dim=-1)).sum(dim=-1)


def objectness_cross_entropy(p: Tensor, logits: Tensor) -> Tensor:
    """Cross-entropy between (background mass, sum of foreground masses) and (1 - sigmoid(z), sigmoid(z)).

    Args:
        p: [N, K+1] teacher probabilities, background last.
        logits: [N] student objectness z.

    Returns:
        [N] nats.

    Reference:
        method.md section 4, RPN-cls. The paper's code uses sigmoid(1 - z) for the background, which does not sum to 1.
    """
    return F.binary_cross_entropy_with_logits(logits, 1.0 - p[:, -1], reduction="none")


def sharpen_classes(logits: Tensor, tau: float) -> Tensor:
    """Teacher probabilities softmax(logits / tau).

    Args:
        logits: [N, K+1].
        tau: temperature above 0; below 1 sharpens.

    Reference:
        method.md section 3.
    """
    return torch.softmax(logits / tau, dim=-1)


def class_focal_weight(p: Tensor, power: float) -> Tensor:
    """Entropy focal weight (1 - E / log(K+1))^power of each pseudo box's class distribution.

    Args:
        p: [N, K+1] teacher probabilities before sharpening.
        power: lambda, at least 0; 0 gives weight 1.

    Returns:
        [N] in [0, 1], without gradient.

    Reference:
        Paper section 3.4; method.md section 5.
    """
    if power == 0:
        return torch.ones(p.shape[:-1], dtype=p.dtype, device=p.device)
    entropy = class_entropy(p.detach())
    return (1.0 - entropy / math.log(p.shape[-1])).clamp(min=0.0) ** power


def box_focal_weight(variance: Tensor, power: float, *, clamp: bool = False, ceiling: float = 1.0) -> Tensor:
    """Entropy focal weight (1 - E / E_norm)^power of each coordinate, E = 1/2 log(2 pi e s2), E_norm at the ceiling.

    Args:
        variance: teacher variances before sharpening, in the delta space of the teacher's head, in (0, 1].
        power: lambda, at least 0; 0 gives weight 1.
        ceiling: the highest variance the head can say, whose weight is 0; the paper's is 1.
        clamp: hold the weight in [0, 1] (source-free; the paper does not bound it).

    Returns:
        Same shape, without gradient: 0 at variance 1, 1 at 0.0585, 1.56 at 0.001.

    Reference:
        Paper section 3.4; method.md section 5.
    """
    if power == 0:
        return torch.ones_like(variance)
    entropy = MAX_BOX_ENTROPY + 0.5 * torch.log(variance.detach())
    weight = (1.0 - entropy / (MAX_BOX_ENTROPY + 0.5 * math.log(ceiling))).clamp(min=0.0)
    return (weight.clamp(max=1.0) if clamp else weight) ** power


def mean_over(values: Tensor, divisor: float, anchor_of_graph: Tensor) -> Tensor:
    """Sum of values over what a :data:`Normaliser` gave; 0 that still has a gradient when there are none.

    Args:
        values: any shape, possibly empty.
        divisor: above 0. For a batch that is one part of a step it is the mean count of all parts, so that the mean of
            the parts' losses is the loss of the step.
        anchor_of_graph: any tensor of the network, so that zero rows give zero gradients instead of none.

    Returns:
        Scalar.
    """
    return values.sum() / divisor + 0.0 * anchor_of_graph.sum()
