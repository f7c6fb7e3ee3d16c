"""Optimiser, learning rates, and the check that a step is finite."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch

from ptedge.detector.model import ProbabilisticFasterRCNN
from ptedge.errors import TrainingError

from .config import PAPER_BATCH, OptimConfig


class NotFiniteError(TrainingError):
    """A loss or a gradient is not a number; the weights have not been changed by it."""


def build_optimizer(model: ProbabilisticFasterRCNN, config: OptimConfig) -> torch.optim.Optimizer:
    """SGD or AdamW with the anchors in a group of their own: own learning rate, no weight decay.

    The ROI head has a group of its own where its learning rate is another than that of all weights.

    Args:
        model: parameters without gradient (frozen stages) are left out.
        config: learning rates and decay.

    Reference:
        method.md section 6. With weight decay the paper's raw-pixel anchors shrink by themselves.
    """
    anchors = [model.anchors.log_wh]
    head = list(model.roi_head.parameters()) if config.roi_rate != 1.0 else []
    apart = {id(p) for p in (*anchors, *head)}
    weights = [p for p in model.parameters() if p.requires_grad and id(p) not in apart]
    rates = base_rates(config)
    groups = [
        {"params": weights, "lr": rates["weights"], "weight_decay": config.weight_decay, "name": "weights"},
        {"params": anchors, "lr": rates["anchors"], "weight_decay": 0.0, "name": "anchors"},
    ]
    if head:
        groups.append(
            {"params": head, "lr": rates["roi_head"], "weight_decay": config.weight_decay, "name": "roi_head"}
        )
    fused = anchors[0].is_cuda  # one kernel for all weights
    if config.optimizer == "adamw":
        return torch.optim.AdamW(groups, lr=config.lr, betas=(config.momentum, 0.999), fused=fused)
    return torch.optim.SGD(groups, lr=config.lr, momentum=config.momentum, fused=fused)


def base_rates(config: OptimConfig) -> dict[str, float]:
    """Learning rate of each group of parameters before warm-up and schedule, by the group's name."""
    return {
        "weights": config.lr,
        "extra": config.lr,
        "roi_head": config.lr * config.roi_rate,
        "anchors": config.anchor_lr,
    }


def step_images(config: OptimConfig, processes: int) -> int:
    """Images of each domain a step, of all accumulated parts and processes together."""
    return config.batch * config.accumulate * processes


def scaled(config: OptimConfig, processes: int) -> OptimConfig:
    """The settings with the learning rates that hold for the step's images.

    Args:
        config: as set.
        processes: that train together.

    Reference:
        Goyal et al. 2017, linear scaling; method.md section 7.
    """
    if config.lr_scaling == "none":
        return config
    factor = step_images(config, processes) / PAPER_BATCH
    return replace(config, lr=config.lr * factor, anchor_lr=config.anchor_lr * factor, lr_scaling="none")


def describe_step(config: OptimConfig, processes: int) -> str:
    """Images and learning rate of a step in one line, for the user."""
    text = f"{step_images(config, processes)} images a step"
    if config.accumulate > 1 or processes > 1:
        text += f" ({config.batch} a part, {config.accumulate} parts, {processes} processes)"
    text += f", learning rate {scaled(config, processes).lr:g}"
    if config.lr_scaling == "linear":
        text += f" ({config.lr:g} for {PAPER_BATCH} images, scaled linearly)"
    return text


def add_parameters(optimizer: torch.optim.Optimizer, module: torch.nn.Module, config: OptimConfig) -> None:
    """Let the optimiser also move a module that is no part of the detector, at the detector's learning rate."""
    group = {"params": list(module.parameters()), "lr": config.lr, "weight_decay": config.weight_decay, "name": "extra"}
    optimizer.add_param_group(group)


def restore_optimizer(optimizer: torch.optim.Optimizer, state: dict[str, Any]) -> None:
    """Load momenta of an earlier run; learning rate, momentum and decay stay those of the present settings."""
    settings = [{key: value for key, value in group.items() if key != "params"} for group in optimizer.param_groups]
    optimizer.load_state_dict(state)
    for group, values in zip(optimizer.param_groups, settings, strict=True):
        group.update(values)


def rate_factor(step: int, config: OptimConfig) -> float:
    """Factor on the learning rates at a step, counted from 0: linear warm-up, then constant or cosine."""
    warm = min(1.0, (step + 1) / config.warmup) if config.warmup else 1.0
    if config.schedule == "constant":
        return warm
    progress = min(1.0, step / max(1, config.steps - 1))
    return warm * (0.01 + 0.99 * 0.5 * (1.0 + math.cos(math.pi * progress)))


def set_rates(optimizer: torch.optim.Optimizer, step: int, config: OptimConfig) -> None:
    """Set the learning rates of a step, counted from 0."""
    factor = rate_factor(step, config)
    rates = base_rates(config)
    for group in optimizer.param_groups:
        group["lr"] = factor * rates[group["name"]]


def checked(values: Mapping[str, float], step: int, *, infinite_gradient: bool = False) -> dict[str, float]:
    """The losses of a step with their sum ``loss``.

    Args:
        values: each loss, and ``grad_norm``.
        step: counted from 0.
        infinite_gradient: let a gradient that is not finite pass.

    Raises:
        NotFiniteError: a loss or the gradient is not finite.
    """
    told = dict(values)
    norm = told.pop("grad_norm")
    told["loss"] = sum(told.values())
    what = "loss" if not math.isfinite(told["loss"]) else "gradient" if not math.isfinite(norm) else ""
    if what == "loss" or (what and not infinite_gradient):
        raise NotFiniteError(f"the {what} is not finite at step {step}: {told}. Lower optim.lr or check the labels")
    return {**told, "grad_norm": norm}
