"""Optimiser, learning rate and the guarded step."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from ptedge.detector.model import ProbabilisticFasterRCNN
from ptedge.errors import TrainingError

from .config import OptimConfig


def build_optimizer(model: ProbabilisticFasterRCNN, config: OptimConfig) -> torch.optim.Optimizer:
    """SGD or AdamW with the anchors in a group of their own: own learning rate, no weight decay.

    Args:
        model: parameters without gradient (frozen stages) are left out.
        config: learning rates and decay.

    Reference:
        method.md section 6. With weight decay the paper's raw-pixel anchors shrink by themselves.
    """
    anchors = [model.anchors.log_wh]
    weights = [p for p in model.parameters() if p.requires_grad and p is not model.anchors.log_wh]
    groups = [
        {"params": weights, "lr": config.lr, "weight_decay": config.weight_decay, "name": "weights"},
        {"params": anchors, "lr": config.anchor_lr, "weight_decay": 0.0, "name": "anchors"},
    ]
    if config.optimizer == "adamw":
        return torch.optim.AdamW(groups, lr=config.lr, betas=(config.momentum, 0.999))
    return torch.optim.SGD(groups, lr=config.lr, momentum=config.momentum)


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


def optimise(
    model: ProbabilisticFasterRCNN,
    optimizer: torch.optim.Optimizer,
    losses: dict[str, Tensor],
    step: int,
    config: OptimConfig,
) -> dict[str, float]:
    """One update from named losses, already weighted.

    Args:
        model: the student.
        optimizer: of :func:`build_optimizer`.
        losses: name -> scalar; their sum is minimised.
        step: counted from 0.
        config: learning rates, clipping.

    Returns:
        Each loss, their ``loss`` and the ``grad_norm`` before clipping, as numbers.

    Raises:
        TrainingError: a loss or the gradient is not finite; the weights are then unchanged.
    """
    total = torch.stack(list(losses.values())).sum()
    values = {name: float(loss.detach()) for name, loss in losses.items()}
    values["loss"] = float(total.detach())
    if not math.isfinite(values["loss"]):
        raise TrainingError(f"the loss is not finite at step {step}: {values}. Lower optim.lr or check the labels")
    factor = rate_factor(step, config)
    for group in optimizer.param_groups:
        group["lr"] = factor * (config.anchor_lr if group["name"] == "anchors" else config.lr)
    optimizer.zero_grad(set_to_none=True)
    total.backward()  # type: ignore[no-untyped-call]
    norm = float(torch.nn.utils.clip_grad_norm_(model.parameters(), config.clip))
    if not math.isfinite(norm):
        raise TrainingError(f"the gradient is not finite at step {step}: {values}. Lower optim.lr or check the labels")
    optimizer.step()
    values["grad_norm"] = norm
    return values
