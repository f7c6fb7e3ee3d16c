"""Learning rates by hand."""

from __future__ import annotations

from typing import Any

import pytest

from ptedge.detector.model import ProbabilisticFasterRCNN
from ptedge.training.config import OptimConfig
from ptedge.training.optim import build_optimizer, describe_step, rate_factor, scaled, step_images


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
