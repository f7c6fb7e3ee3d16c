"""An update by hand, its precision and its checkpointing. What several processes do is in test_processes."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from tiny_detector import HEIGHT, WIDTH
from torch import Tensor

from ptedge.detector.backbone import batch_norms
from ptedge.detector.model import ProbabilisticFasterRCNN
from ptedge.errors import TrainingError
from ptedge.training.batches.batch import SourceBatch
from ptedge.training.batches.steps import image_generators
from ptedge.training.config import OptimConfig
from ptedge.training.losses.assign import Sampling
from ptedge.training.losses.equations import Normaliser
from ptedge.training.losses.source import ImageLabels, sample_source, source_losses
from ptedge.training.optim import build_optimizer
from ptedge.training.state import state_of
from ptedge.training.update import Updater

OPTIM = OptimConfig(optimizer="sgd", steps=10, batch=2, lr=0.01, warmup=0, clip=1e9)
Losses = Callable[..., tuple[dict[str, Tensor], dict[str, Any]]]


class Stub:
    """As much of a task as an update needs; counts how often parts are prepared."""

    def __init__(self, student: ProbabilisticFasterRCNN, losses: Losses) -> None:
        self.student, self.losses = student, losses
        self.others: list[torch.nn.Module] = []
        self.prepared = 0

    def prepare(self, given: Any) -> Any:
        self.prepared += 1
        return given


def optim_config(**changes: Any) -> OptimConfig:
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


def update(
    model: ProbabilisticFasterRCNN, settings: OptimConfig, losses: Callable[[], dict[str, Tensor]], step: int
) -> dict[str, float]:
    task = Stub(model, lambda *_: (losses(), {}))
    return Updater(task, build_optimizer(model, settings), settings)(step, [None])[0]


def make_batch(seed: int = 0) -> SourceBatch:
    images = torch.randint(
        0, 256, (2, 3, HEIGHT, WIDTH), dtype=torch.uint8, generator=torch.Generator().manual_seed(seed)
    )
    boxes = torch.tensor([[10.0, 8.0, 40.0, 40.0]])
    return SourceBatch(images, [ImageLabels(boxes + 4 * i, torch.tensor([i]), torch.zeros(0, 4)) for i in range(2)])


def supervised(model: ProbabilisticFasterRCNN, seen: list[Tensor] | None = None) -> Losses:
    def losses(step: int, part: SourceBatch, normalise: Normaliser) -> tuple[dict[str, Tensor], dict[str, Any]]:
        draws = image_generators(0, 10, step, part)
        outputs = model(part.images.float())
        samples = sample_source(outputs, part.labels, Sampling(), draws)
        roi = model.roi(outputs.features, samples.proposals)
        if seen is not None:
            rpn = outputs.rpn
            seen.extend([outputs.features, rpn.logits, rpn.deltas, rpn.variances])
            seen.extend([roi.logits, roi.deltas, roi.variances])
        return source_losses(outputs.rpn, roi, samples, part.labels, True, normalise), {}

    return losses


def overflowing(model: ProbabilisticFasterRCNN) -> Losses:
    return lambda *_: ({"a": (model.roi_head.logits.bias * 0).sum().sqrt()}, {})


def updater(model: ProbabilisticFasterRCNN, precision: str = "fp32", seen: list[Tensor] | None = None) -> Updater:
    return Updater(Stub(model, supervised(model, seen)), build_optimizer(model, OPTIM), OPTIM, precision)


def test_updater__sgd_by_hand(model: ProbabilisticFasterRCNN) -> None:
    settings = optim_config(warmup=2)  # the first step runs at half the rates
    bias, anchors = model.roi_head.logits.bias, model.anchors.log_wh
    with torch.no_grad():
        bias.fill_(2.0)
    before = anchors.detach().clone()
    values = update(model, settings, lambda: {"a": 3 * bias.sum(), "b": 4 * anchors.sum()}, step=0)
    # 2 - 0.05 (3 + 0.5 * 2) and, without decay, x - 0.005 * 4
    torch.testing.assert_close(bias.detach(), torch.full((3,), 1.8))
    torch.testing.assert_close(anchors.detach(), before - 0.02)
    assert values["a"] == pytest.approx(18.0)
    assert values["loss"] == pytest.approx(18.0 + 4 * float(before.sum()), rel=1e-5)
    assert values["grad_norm"] == pytest.approx(math.sqrt(3 * 9 + 6 * 16))


def test_updater__adamw_by_hand(model: ProbabilisticFasterRCNN) -> None:
    settings = optim_config(optimizer="adamw", momentum=0.9)
    assert isinstance(build_optimizer(model, settings), torch.optim.AdamW)
    bias, anchors = model.roi_head.logits.bias, model.anchors.log_wh
    with torch.no_grad():
        bias.fill_(2.0)
    before = anchors.detach().clone()
    update(model, settings, lambda: {"a": 3 * bias.sum(), "b": -4 * anchors.sum()}, step=0)
    # the first step is the learning rate times the sign; weights also decay by 0.1 * 0.5
    torch.testing.assert_close(bias.detach(), torch.full((3,), 2.0 * 0.95 - 0.1))
    torch.testing.assert_close(anchors.detach(), before + 0.01)


def test_updater__clips_the_gradient(model: ProbabilisticFasterRCNN) -> None:
    settings = optim_config(clip=1.0, weight_decay=0.0)
    bias = model.roi_head.logits.bias
    values = update(model, settings, lambda: {"a": 10 * bias.sum()}, step=0)
    assert values["grad_norm"] == pytest.approx(10 * math.sqrt(3))
    torch.testing.assert_close(bias.detach(), torch.full((3,), -0.1 / math.sqrt(3)), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("optimizer_name", ["sgd", "adamw"])
def test_updater__anchors_do_not_decay(model: ProbabilisticFasterRCNN, optimizer_name: str) -> None:
    settings = optim_config(optimizer=optimizer_name)
    before = state_of(model)
    task = Stub(model, lambda *_: ({"nothing": sum(0.0 * p.sum() for p in model.parameters())}, {}))
    some = Updater(task, build_optimizer(model, settings), settings)
    for step in range(3):
        some(step, [None])
    after = state_of(model)
    torch.testing.assert_close(after["anchors.log_wh"], before["anchors.log_wh"], rtol=0, atol=0)
    shrunk = before["roi_head.fc1.weight"] * 0.95**3  # 1 - 0.1 * 0.5
    torch.testing.assert_close(after["roi_head.fc1.weight"], shrunk)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_updater__a_loss_that_is_not_finite(model: ProbabilisticFasterRCNN, bad: float) -> None:
    settings = optim_config()
    before = state_of(model)
    losses = {"fine": model.roi_head.logits.bias.sum(), "broken": model.anchors.log_wh.sum() * bad}
    with pytest.raises(TrainingError, match=r"loss is not finite at step 7.*'broken': (nan|inf)"):
        update(model, settings, lambda: losses, step=7)
    for name, tensor in state_of(model).items():
        torch.testing.assert_close(tensor, before[name], rtol=0, atol=0)


def test_updater__a_gradient_that_is_not_finite(model: ProbabilisticFasterRCNN) -> None:
    settings = optim_config()
    with torch.no_grad():
        model.roi_head.logits.bias.zero_()
    before = state_of(model)
    root: Tensor = model.roi_head.logits.bias.abs().sqrt().sum()  # 0, with an infinite slope
    with pytest.raises(TrainingError, match="gradient is not finite at step 2"):
        update(model, settings, lambda: {"root": root}, step=2)
    for name, tensor in state_of(model).items():
        torch.testing.assert_close(tensor, before[name], rtol=0, atol=0)


def test_updater__checkpointing_changes_neither_gradient_nor_statistics(model: ProbabilisticFasterRCNN) -> None:
    model.backbone.frozen_statistics = False
    other = copy.deepcopy(model)
    other.backbone.checkpointing = True
    values = [updater(m.train())(0, [make_batch()])[0] for m in (model, other)]
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
    assert updater(model)(0, [make_batch()])[0] == updater(other)(0, [make_batch()])[0]


def test_updater__bf16_keeps_boxes_and_losses_in_float32(model: ProbabilisticFasterRCNN) -> None:
    full = updater(copy.deepcopy(model))(0, [make_batch()])[0]
    seen: list[Tensor] = []
    values = updater(model, "bf16", seen)(0, [make_batch()])[0]
    assert seen[0].dtype == torch.bfloat16  # the backbone really works in half precision
    assert all(x.dtype == torch.float32 for x in seen[1:])
    assert all(
        p.dtype == torch.float32 and (p.grad is None or p.grad.dtype == torch.float32) for p in model.parameters()
    )
    assert values["loss"] == pytest.approx(full["loss"], rel=0.05) and values["loss"] != full["loss"]


def test_updater__fp16_scales_the_loss_and_remembers_it(model: ProbabilisticFasterRCNN) -> None:
    full = updater(copy.deepcopy(model))(0, [make_batch()])[0]
    half = updater(model, "fp16")
    values = half(0, [make_batch()])[0]
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
    half.task.losses = overflowing(model)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    scale = half.state()["scale"]
    values = half(0, [make_batch()])[0]
    assert not math.isfinite(values["grad_norm"])
    assert half.state()["scale"] == scale / 2
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    half.load_state({**half.state(), "scale": 0.5})  # so small a loss overflows for another reason
    with pytest.raises(TrainingError, match="gradient is not finite at step 3"):
        half(3, [make_batch()])
    half.task.losses = supervised(model)
    assert math.isfinite(half(4, [make_batch()])[0]["grad_norm"])  # a guard may have put good weights back


@pytest.mark.parametrize("parts", [1, 3])
def test_updater__parts_are_prepared_once_and_counted_first(model: ProbabilisticFasterRCNN, parts: int) -> None:
    passes: list[bool] = []

    def losses(step: int, part: Any, normalise: Normaliser) -> tuple[dict[str, Tensor], dict[str, Any]]:
        passes.append(torch.is_grad_enabled())
        return {"a": model.roi_head.logits.bias.sum() / normalise("a", part)}, {"part": part}

    task = Stub(model, losses)
    values, numbers = Updater(task, build_optimizer(model, OPTIM), OPTIM)(0, [2 * i + 1 for i in range(parts)])
    assert task.prepared == parts and numbers == {"part": 2 * parts - 1}
    assert passes == [True] if parts == 1 else passes == [False] * 3 + [True] * 3
    # 1 + 3 + 5 in three parts: each is divided by a third of the sum
    assert values["grad_norm"] == pytest.approx(math.sqrt(3) / (1 if parts == 1 else 3))


def test_updater__tells_the_mean_of_its_parts(model: ProbabilisticFasterRCNN) -> None:
    def losses(step: int, part: float, normalise: Normaliser) -> tuple[dict[str, Tensor], dict[str, Any]]:
        return {"a": model.roi_head.logits.bias.sum() * 0 + part, "b": torch.tensor(2 * part)}, {}

    values = Updater(Stub(model, losses), build_optimizer(model, OPTIM), OPTIM)(0, [1.0, 4.0])[0]
    assert (values["a"], values["b"], values["loss"]) == (2.5, 5.0, 7.5)


def test_updater__divides_by_the_mean_count_of_the_parts(model: ProbabilisticFasterRCNN) -> None:
    told: list[list[float]] = []

    def losses(step: int, part: int, normalise: Normaliser) -> tuple[dict[str, Tensor], dict[str, Any]]:
        told.append([normalise("some", part), normalise("none", 0), normalise("one", part // 5)])
        return {"a": model.roi_head.logits.bias.sum()}, {}

    Updater(Stub(model, losses), build_optimizer(model, OPTIM), OPTIM)(0, [3, 5])
    assert told[:2] == [[3.0, 1.0, 1.0], [5.0, 1.0, 1.0]]  # while counting: the part's own, at least 1
    assert told[2:] == [[4.0, 0.5, 0.5]] * 2  # 8, none (taken as 1) and 1, of two parts


def test_updater__counting_leaves_statistics_alone(model: ProbabilisticFasterRCNN) -> None:
    model.backbone.frozen_statistics = False
    model.train()

    def losses(step: int, part: Tensor, normalise: Normaliser) -> tuple[dict[str, Tensor], dict[str, Any]]:
        return {"a": model.features(part).mean()}, {}

    pictures = [torch.rand(2, 3, HEIGHT, WIDTH) * 255 for _ in range(3)]
    once = copy.deepcopy(model)
    Updater(Stub(model, losses), build_optimizer(model, OPTIM), OPTIM)(0, pictures)
    for part in pictures:
        once.features(part)
    for own, expected in zip(batch_norms(model.backbone), batch_norms(once.backbone), strict=True):
        torch.testing.assert_close(own.running_mean, expected.running_mean)
        torch.testing.assert_close(own.running_var, expected.running_var)
