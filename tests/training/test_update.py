"""Precision, checkpointing and learning rates of an update. What several processes do is in test_processes."""

from __future__ import annotations

import copy
import math
from typing import Any

import pytest
import torch
from tiny_detector import HEIGHT, WIDTH
from torch import Tensor

from ptedge.detector.backbone import batch_norms
from ptedge.detector.model import ProbabilisticFasterRCNN
from ptedge.errors import TrainingError
from ptedge.training.batches.loader import AUTO, MOST_WORKERS, worker_count
from ptedge.training.batches.steps import Batch, Share, image_generators
from ptedge.training.config import OptimConfig
from ptedge.training.losses.assign import Sampling
from ptedge.training.losses.equations import Normaliser
from ptedge.training.losses.source import ImageLabels, sample_source, source_losses
from ptedge.training.optim import build_optimizer, describe_step, scaled, step_images
from ptedge.training.update import StepFunction, Updater

OPTIM = OptimConfig(optimizer="sgd", steps=10, batch=2, lr=0.01, warmup=0, clip=1e9)


def make_batch(seed: int = 0) -> Batch:
    images = torch.randint(
        0, 256, (2, 3, HEIGHT, WIDTH), dtype=torch.uint8, generator=torch.Generator().manual_seed(seed)
    )
    boxes = torch.tensor([[10.0, 8.0, 40.0, 40.0]])
    targets = [ImageLabels(boxes + 4 * i, torch.tensor([i]), torch.zeros(0, 4)) for i in range(2)]
    return Batch(images, targets)


def supervised(model: ProbabilisticFasterRCNN, seen: list[Tensor] | None = None) -> StepFunction:
    def losses_of(step: int, batches: list[Batch], normalise: Normaliser) -> tuple[dict[str, Tensor], dict[str, Any]]:
        images, draws = batches[0].images.float(), image_generators(0, 10, step, batches[0])
        if seen is not None:
            rpn = model.rpn(model.features(images))
            seen.extend([model.features(images), rpn.logits, rpn.deltas, rpn.variances])
            out = model.roi(model.features(images), model.proposals(rpn, training=True))
            seen.extend([out.logits, out.deltas, out.variances])
        outputs, known = model(images), batches[0].targets
        samples = sample_source(outputs, known, Sampling(), draws)
        roi = model.roi(outputs.features, samples.proposals)
        return source_losses(outputs.rpn, roi, samples, known, True, normalise), {}

    return losses_of


def updater(model: ProbabilisticFasterRCNN, precision: str = "fp32", seen: list[Tensor] | None = None) -> Updater:
    return Updater(supervised(model, seen), model, [], build_optimizer(model, OPTIM), OPTIM, precision)


def test_updater__checkpointing_changes_neither_gradient_nor_statistics(model: ProbabilisticFasterRCNN) -> None:
    model.backbone.frozen_statistics = False
    other = copy.deepcopy(model)
    other.backbone.checkpointing = True
    values = [updater(m.train())(0, [[make_batch()]])[0] for m in (model, other)]
    assert values[0] == values[1]
    assert all(int(layer.num_batches_tracked) == 1 for layer in batch_norms(other))  # type: ignore[arg-type]
    for (name, one), two in zip(model.state_dict().items(), other.state_dict().values(), strict=True):
        assert torch.equal(one, two), name
    for one, two in zip(model.parameters(), other.parameters(), strict=True):
        assert (one.grad is None) == (two.grad is None)
        assert one.grad is None or two.grad is None or torch.equal(one.grad, two.grad)


def test_updater__checkpointing_passes_frozen_stages_over(model: ProbabilisticFasterRCNN) -> None:
    model.backbone.body.features[0].requires_grad_(False)  # type: ignore[index, union-attr]
    model.backbone.body.features[1].requires_grad_(False)  # type: ignore[index, union-attr]
    other = copy.deepcopy(model)
    other.backbone.checkpointing = True
    assert updater(model)(0, [[make_batch()]])[0] == updater(other)(0, [[make_batch()]])[0]


def test_updater__bf16_keeps_boxes_and_losses_in_float32(model: ProbabilisticFasterRCNN) -> None:
    full = updater(copy.deepcopy(model))(0, [[make_batch()]])[0]
    seen: list[Tensor] = []
    values = updater(model, "bf16", seen)(0, [[make_batch()]])[0]
    assert seen[0].dtype == torch.bfloat16  # the backbone really works in half precision
    assert all(x.dtype == torch.float32 for x in seen[1:])
    assert all(
        p.dtype == torch.float32 and (p.grad is None or p.grad.dtype == torch.float32) for p in model.parameters()
    )
    assert values["loss"] == pytest.approx(full["loss"], rel=0.05) and values["loss"] != full["loss"]


def test_updater__fp16_scales_the_loss_and_remembers_it(model: ProbabilisticFasterRCNN) -> None:
    full = updater(copy.deepcopy(model))(0, [[make_batch()]])[0]
    half = updater(model, "fp16")
    values = half(0, [[make_batch()]])[0]
    assert values["loss"] == pytest.approx(full["loss"], rel=0.05)
    assert values["grad_norm"] == pytest.approx(full["grad_norm"], rel=0.1)  # before clipping, unscaled
    state = half.state()
    assert state["scale"] > 1
    again = updater(model, "fp16")
    again.load_state({**state, "scale": 8.0})
    assert again.state()["scale"] == 8.0
    updater(model).load_state(state)  # a run that goes on without scaling takes no notice


def test_updater__fp16_leaves_a_step_out_when_the_gradient_overflows(model: ProbabilisticFasterRCNN) -> None:
    half = updater(model, "fp16")
    half.losses_of = half.module.losses_of = _overflowing(model)  # type: ignore[assignment]
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    scale = half.state()["scale"]
    values = half(0, [[make_batch()]])[0]
    assert not math.isfinite(values["grad_norm"])
    assert half.state()["scale"] == scale / 2
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    half.load_state({**half.state(), "scale": 0.5})  # so small a loss overflows for another reason
    with pytest.raises(TrainingError, match="gradient is not finite at step 3"):
        half(3, [[make_batch()]])
    half.losses_of = half.module.losses_of = supervised(model)  # type: ignore[assignment]
    assert math.isfinite(half(4, [[make_batch()]])[0]["grad_norm"])  # a guard may have put good weights back


def _overflowing(model: ProbabilisticFasterRCNN) -> StepFunction:
    return lambda step, batches, normalise: ({"a": (model.roi_head.logits.bias * 0).sum().sqrt()}, {})


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


def test_share__all_parts_of_a_step_are_there_once() -> None:
    for step in (0, 3):
        shares = [Share(accumulate=3, rank=rank, processes=2) for rank in range(2)]
        found = [share.part(step, number) for share in shares for number in range(3)]
        assert found == list(range(6 * step, 6 * step + 6))


def test_worker_count__shares_out_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: set(range(16)), raising=False)
    assert worker_count(3, 2, 1) == 3 and worker_count(0, 1, 1) == 0
    assert worker_count(AUTO, 1, 1) == MOST_WORKERS
    assert worker_count(AUTO, 2, 1) == 7 and worker_count(AUTO, 2, 4) == 1
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0}, raising=False)
    assert worker_count(AUTO, 1, 1) == 1
