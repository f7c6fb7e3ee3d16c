"""Inputs of losses that several tests share: a box, pictures, an RPN's answer made by hand."""

from __future__ import annotations

import torch
from torch import Tensor

from ptedge.detector.model import ProbabilisticFasterRCNN
from ptedge.detector.rpn import RPNOutput
from ptedge.training.losses.assign import Sampling

MANY = Sampling(rpn_count=256, rpn_positive=0.5, roi_count=64, roi_positive=0.25)
BOX = torch.tensor([[20.0, 16.0, 44.0, 40.0]])  # 24 x 24 around (32, 28)
NONE = torch.zeros(0, 4)


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
