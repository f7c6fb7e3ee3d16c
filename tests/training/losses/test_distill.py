"""What a light head has yet to learn of a full one, by hand."""

from __future__ import annotations

import math

import pytest
import torch

from ptedge.detector.config import ModelConfig
from ptedge.detector.roi_heads import ROIOutput
from ptedge.errors import ConfigError
from ptedge.training.losses.distill import DistillConfig, check_distill, distill_losses


def said(logits: list[list[float]], deltas: float, variances: float) -> ROIOutput:
    """Of one class: the same four deltas and variances for every proposal."""
    rows = len(logits)
    box = torch.full((rows, 1, 4), deltas).requires_grad_()
    spread = torch.full((rows, 1, 4), variances)
    return ROIOutput(torch.tensor(logits).requires_grad_(), box, spread, torch.zeros(rows, 8))


def test_distill_losses__by_hand() -> None:
    # the full head gives the two proposals 3/4 and 1/4 for the class
    full = said([[math.log(3.0), 0.0], [0.0, math.log(3.0)]], deltas=1.0, variances=0.5)
    light = said([[0.0, 0.0], [0.0, 0.0]], deltas=3.0, variances=0.25)
    losses = distill_losses(light, full, probabilistic=True)
    assert losses["distill_cls"].item() == pytest.approx(math.log(2.0))
    gaussians = 0.5 * (math.log(2.0 * math.pi) + math.log(0.25) + (0.5 + 2.0**2) / 0.25)
    assert losses["distill_box"].item() == pytest.approx((0.75 + 0.25) * 4 * gaussians / 2, rel=1e-6)
    sum(losses.values()).backward()  # type: ignore[union-attr]
    assert light.logits.grad is not None and light.deltas.grad is not None
    assert full.logits.grad is None and full.deltas.grad is None


def test_distill_losses__vanilla_heads_by_smooth_l1() -> None:
    full = said([[0.0, 0.0]], deltas=1.0, variances=0.0)
    light = said([[0.0, 0.0]], deltas=3.0, variances=0.0)
    losses = distill_losses(light, full, probabilistic=False, normalise=lambda name, count: 2.0 * count)
    assert losses["distill_box"].item() == pytest.approx(0.5 * 4 * (2.0 - 0.5 / 9.0) / 2.0)
    assert losses["distill_cls"].item() == pytest.approx(math.log(2.0) / 2.0)


def test_distill_losses__no_proposals_give_nothing_with_a_gradient() -> None:
    nothing = ROIOutput(torch.zeros(0, 2), torch.zeros(0, 1, 4), torch.zeros(0, 1, 4), torch.zeros(0, 8))
    light = ROIOutput(
        torch.zeros(0, 2, requires_grad=True), torch.zeros(0, 1, 4, requires_grad=True), *[nothing.variances] * 2
    )
    losses = distill_losses(light, nothing, probabilistic=True)
    assert {name: value.item() for name, value in losses.items()} == {"distill_cls": 0.0, "distill_box": 0.0}
    sum(losses.values()).backward()  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("model", "distill", "fine"),
    [
        ({"roi_hidden": 256}, {"weight": 1.0}, True),
        ({"roi_channels": 64}, {"weight": 1.0}, True),
        ({}, {"weight": 1.0}, False),
        ({}, {"weight": 0.0}, True),
        ({"roi_channels": 64, "roi_hidden": 512}, {"weight": 1.0, "channels": 32, "hidden": 512}, False),
        ({"roi_channels": 32, "roi_hidden": 256}, {"weight": 1.0, "channels": 64, "hidden": 256}, True),
    ],
)
def test_check_distill__the_teacher_must_be_wider(model: dict[str, int], distill: dict[str, float], fine: bool) -> None:
    if fine:
        check_distill(DistillConfig(**distill), ModelConfig(**model))  # type: ignore[arg-type]
        return
    with pytest.raises(ConfigError, match="no wider than"):
        check_distill(DistillConfig(**distill), ModelConfig(**model))  # type: ignore[arg-type]
