"""Inputs of losses that several tests share, and their equations on single numbers, for slow references."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from ptedge.detector.model import ProbabilisticFasterRCNN
from ptedge.detector.roi_heads import ROIOutput
from ptedge.detector.rpn import RPNOutput
from ptedge.training.losses.assign import Sampling
from ptedge.training.losses.pseudo import PseudoBoxes

MANY = Sampling(rpn_count=256, rpn_positive=0.5, roi_count=64, roi_positive=0.25)
BOX = torch.tensor([[20.0, 16.0, 44.0, 40.0]])  # 24 x 24 around (32, 28)
NONE = torch.zeros(0, 4)
# two objects, and places: one near each and one far; no two sizes are alike, so that sides exchanged show
TWO = torch.tensor([[20.0, 16.0, 44.0, 40.0], [60.0, 10.0, 92.0, 26.0]])
NEAR = torch.tensor([[18.0, 18.0, 46.0, 36.0], [58.0, 12.0, 88.0, 30.0], [1.0, 40.0, 9.0, 60.0]])


def generator() -> torch.Generator:
    """Always the same draws."""
    return torch.Generator().manual_seed(0)


def images(count: int = 1) -> Tensor:
    """[count, 3, 64, 96] of noise."""
    return torch.rand(count, 3, 64, 96, generator=generator()) * 255


def gradient(model: ProbabilisticFasterRCNN, loss: Tensor) -> dict[str, Tensor | None]:
    """Of every parameter, by name."""
    model.zero_grad(set_to_none=True)
    loss.backward()
    return {name: p.grad for name, p in model.named_parameters()}


def one_anchor_of_three(logit: float, delta: float, variance: float) -> RPNOutput:
    """Three anchors that all say the same; the first is 30 x 24 over ``BOX``, the others are far away."""
    anchors = torch.cat([BOX + torch.tensor([0.0, 0.0, 6.0, 0.0]), BOX + 500, BOX + 600]).requires_grad_()
    return RPNOutput(torch.full((1, 3), logit), torch.full((1, 3, 4), delta), torch.full((1, 3, 4), variance), anchors)


def varied_rpn(images: int, anchors: Tensor) -> RPNOutput:
    """An RPN that says something else of every anchor, image and coordinate."""
    draws, shape = torch.Generator().manual_seed(3), (images, len(anchors), 4)
    return RPNOutput(
        torch.randn(shape[:2], generator=draws),
        torch.randn(shape, generator=draws) * 0.3,
        torch.rand(shape, generator=draws) * 0.8 + 0.1,
        anchors,
    )


def varied_roi(rows: int, classes: int = 2) -> ROIOutput:
    """A ROI head that says something else of every proposal, class and coordinate."""
    draws, shape = torch.Generator().manual_seed(4), (rows, classes, 4)
    return ROIOutput(
        torch.randn(rows, classes + 1, generator=draws),
        torch.randn(shape, generator=draws),
        torch.rand(shape, generator=draws) * 0.8 + 0.1,
        torch.zeros(rows, 1),
    )


def varied_pseudo() -> list[PseudoBoxes]:
    """Two images: two objects with a box that is rather background between them; one object. No value occurs twice."""
    boxes = torch.stack([TWO[0], NEAR[2], TWO[1]])
    p = torch.tensor([[0.2, 0.7, 0.1], [0.1, 0.3, 0.6], [0.65, 0.15, 0.2]])
    draws = torch.Generator().manual_seed(6)
    first = PseudoBoxes(
        boxes,
        torch.tensor([1, 0, 0]),
        p,
        torch.rand(3, 4, generator=draws),
        boxes + torch.tensor([[-3.0, 1.0, 2.0, 5.0], [1.0, 0.0, 3.0, 2.0], [2.0, -2.0, 1.0, 3.0]]),
        torch.tensor([0.9, 0.4, 0.6]),
        torch.rand(3, 4, generator=draws),
        torch.tensor([0.7, 0.3, 0.65]),
    )
    second = PseudoBoxes(
        boxes[2:] + 2,
        torch.tensor([1]),
        torch.tensor([[0.05, 0.9, 0.05]]),
        torch.rand(1, 4, generator=draws),
        boxes[2:] - 1,
        torch.tensor([0.5]),
        torch.rand(1, 4, generator=draws),
        torch.tensor([0.9]),
    )
    return [first, second]


def deltas_by_hand(box: Tensor, reference: Tensor, weights: Sequence[float]) -> list[float]:
    """(tx, ty, tw, th) of a box [4] relative to another."""
    (x1, y1, x2, y2), (a1, b1, a2, b2) = box.tolist(), reference.tolist()
    w, h = a2 - a1, b2 - b1
    plain = [
        ((x1 + x2) / 2 - (a1 + a2) / 2) / w,
        ((y1 + y2) / 2 - (b1 + b2) / 2) / h,
        math.log((x2 - x1) / w),
        math.log((y2 - y1) / h),
    ]
    return [weight * value for weight, value in zip(weights, plain, strict=True)]


def variances_by_hand(
    variances: Tensor, proposal: Tensor, own: Sequence[float], reference: Tensor, weights: Sequence[float]
) -> list[float]:
    """Variances [4] relative to ``proposal`` with weights ``own`` as variances relative to ``reference``."""
    old, new = (proposal[2:] - proposal[:2]).tolist(), (reference[2:] - reference[:2]).tolist()
    scale = [old[0] / new[0], old[1] / new[1], 1.0, 1.0]  # centres count in widths, log sizes do not
    values = zip(variances.tolist(), scale, weights, own, strict=True)
    return [value * (s * new_weight / old_weight) ** 2 for value, s, new_weight, old_weight in values]


def box_term(mean: float, s2: float, q_mean: float, q_s2: float, probabilistic: bool) -> float:
    """Cross-entropy of two Gaussians (likelihood for ``s2`` 0), or smooth L1 without variances."""
    if probabilistic:
        return 0.5 * (math.log(2 * math.pi * q_s2) + (s2 + (mean - q_mean) ** 2) / q_s2)
    error = abs(mean - q_mean)
    return 0.5 * error**2 * 9 if error < 1 / 9 else error - 0.5 / 9


def log_softmax(logits: Tensor) -> list[float]:
    """Of one row."""
    total = math.log(sum(math.exp(value) for value in logits.tolist()))
    return [value - total for value in logits.tolist()]


def log_sigmoid(value: float) -> float:
    """Log of the probability of an objectness."""
    return -math.log(1 + math.exp(-value))


class Counts:
    """A normaliser that divides by 10 and notes what it was asked for."""

    def __init__(self) -> None:
        self.seen: dict[str, int] = {}

    def __call__(self, name: str, count: int) -> float:
        self.seen[name] = count
        return 10.0
