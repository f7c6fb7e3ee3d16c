"""Learning rates by hand."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from ptedge.detector.model import ProbabilisticFasterRCNN
from ptedge.training.config import OptimConfig
from ptedge.training.optim import (
    NotFiniteError,
    add_parameters,
    build_optimizer,
    checked,
    describe_step,
    rate_factor,
    restore_optimizer,
    scaled,
    set_rates,
    step_images,
)


def config(**changes: Any) -> OptimConfig:
    values: dict[str, Any] = {
        "optimizer": "sgd",
        "steps": 101,
        "batch": 1,
        "lr": 0.1,
        "momentum": 0.0,
        "weight_decay": 0.5,
        "warmup": 0,
        "schedule": "constant",
        "clip": 1e9,
        "anchor_lr": 0.01,
    }
    return OptimConfig(**(values | changes))


def test_build_optimizer__anchors_in_a_group_of_their_own(model: ProbabilisticFasterRCNN) -> None:
    model.backbone.body.features[0].weight.requires_grad_(False)  # type: ignore[index, union-attr]
    weights, anchors = build_optimizer(model, config()).param_groups
    assert [id(p) for p in anchors["params"]] == [id(model.anchors.log_wh)]
    assert (anchors["lr"], anchors["weight_decay"]) == (0.01, 0.0)
    assert (weights["lr"], weights["weight_decay"]) == (0.1, 0.5)
    trainable = {id(p) for p in model.parameters() if p.requires_grad}
    assert {id(p) for p in weights["params"]} == trainable - {id(model.anchors.log_wh)}


def test_build_optimizer__roi_head_with_a_rate_of_its_own(model: ProbabilisticFasterRCNN) -> None:
    optimizer = build_optimizer(model, config(roi_rate=3.0))
    weights, anchors, head = optimizer.param_groups
    assert {id(p) for p in head["params"]} == {id(p) for p in model.roi_head.parameters()}
    everything = [id(p) for group in optimizer.param_groups for p in group["params"]]
    assert sorted(everything) == sorted(id(p) for p in model.parameters())  # each once
    assert head["weight_decay"] == 0.5
    set_rates(optimizer, 1, config(roi_rate=3.0, warmup=4))  # half of the way up
    assert [group["lr"] for group in (weights, anchors, head)] == pytest.approx([0.05, 0.005, 0.15])


@pytest.mark.parametrize(
    ("step", "warmup", "schedule", "expected"),
    [
        (0, 4, "constant", 0.25),
        (2, 4, "constant", 0.75),
        (3, 4, "constant", 1.0),
        (90, 4, "constant", 1.0),
        (0, 0, "constant", 1.0),
        (0, 0, "cosine", 1.0),
        (50, 0, "cosine", 0.505),  # half way between 1 and 0.01
        (100, 0, "cosine", 0.01),
        (150, 0, "cosine", 0.01),
        (0, 10, "cosine", 0.1),
    ],
)
def test_rate_factor__by_hand(step: int, warmup: int, schedule: str, expected: float) -> None:
    assert rate_factor(step, config(warmup=warmup, schedule=schedule)) == pytest.approx(expected)


def test_scaled__by_hand() -> None:
    config = OptimConfig(batch=2, accumulate=4, lr=0.016, anchor_lr=0.001, lr_scaling="linear")
    assert step_images(config, 1) == 8 and step_images(config, 4) == 32
    assert (scaled(config, 1).lr, scaled(config, 1).anchor_lr) == pytest.approx((0.008, 0.0005))
    assert scaled(config, 4).lr == pytest.approx(0.032)
    assert scaled(scaled(config, 4), 4).lr == pytest.approx(0.032)  # once
    plain = OptimConfig(batch=2, lr=0.016)
    assert scaled(plain, 4) is plain
    assert describe_step(config, 2) == (
        "16 images a step (2 a part, 4 parts, 2 processes), learning rate 0.016 (0.016 for 16 images, scaled linearly)"
    )
    assert describe_step(plain, 1) == "2 images a step, learning rate 0.016"


def test_build_optimizer__momentum_of_either_kind(model: ProbabilisticFasterRCNN) -> None:
    for group in build_optimizer(model, config(momentum=0.8)).param_groups:
        assert group["momentum"] == 0.8 and not group["nesterov"]
    for group in build_optimizer(model, config(optimizer="adamw", momentum=0.8)).param_groups:
        assert group["betas"] == (0.8, 0.999)


def test_set_rates__anchors_and_the_rest_have_their_own(model: ProbabilisticFasterRCNN) -> None:
    settings = config(warmup=4)
    optimizer = build_optimizer(model, settings)
    add_parameters(optimizer, torch.nn.Linear(1, 1), settings)
    assert [group["weight_decay"] for group in optimizer.param_groups] == [0.5, 0.0, 0.5]
    for step, factor in ((0, 0.25), (3, 1.0), (0, 0.25)):  # set, not multiplied
        set_rates(optimizer, step, settings)
        rates = [group["lr"] for group in optimizer.param_groups]
        assert rates == pytest.approx([0.1 * factor, 0.01 * factor, 0.1 * factor])


def test_restore_optimizer__momenta_of_then_settings_of_now(model: ProbabilisticFasterRCNN) -> None:
    before = build_optimizer(model, config(momentum=0.9))
    for parameter in model.parameters():
        parameter.grad = torch.full_like(parameter, 2.0)
    before.step()
    now = build_optimizer(model, config(lr=0.3, anchor_lr=0.02, momentum=0.5, weight_decay=0.1))
    restore_optimizer(now, before.state_dict())
    weights, anchors = now.param_groups
    assert (weights["lr"], weights["momentum"], weights["weight_decay"]) == (0.3, 0.5, 0.1)
    assert (anchors["lr"], anchors["momentum"], anchors["weight_decay"]) == (0.02, 0.5, 0.0)
    shapes = model.anchors.log_wh
    torch.testing.assert_close(now.state[shapes]["momentum_buffer"], torch.full_like(shapes, 2.0))


def test_checked__sum_of_the_losses_without_the_norm() -> None:
    told = checked({"a": 1.0, "b": 2.5, "grad_norm": 9.0}, 3)
    assert told == {"a": 1.0, "b": 2.5, "loss": 3.5, "grad_norm": 9.0}


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_checked__what_is_not_finite_is_named(bad: float) -> None:
    with pytest.raises(NotFiniteError, match="the loss is not finite at step 7"):
        checked({"a": bad, "grad_norm": 1.0}, 7)
    with pytest.raises(NotFiniteError, match="the loss is not finite"):  # fp16 forgives gradients, not losses
        checked({"a": bad, "grad_norm": bad}, 7, infinite_gradient=True)
    with pytest.raises(NotFiniteError, match="the gradient is not finite"):
        checked({"a": 1.0, "grad_norm": bad}, 7)
    told = checked({"a": 1.0, "grad_norm": bad}, 7, infinite_gradient=True)
    assert told["loss"] == 1.0 and not told["grad_norm"] < 1e9
