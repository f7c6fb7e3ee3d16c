"""The guarded step, learning rates by hand, and the RUN folder."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_detector import CLASS_NAMES, tiny_config
from torch import Tensor

from ptedge.artifacts.checkpoint import Checkpoint, load_checkpoint
from ptedge.config import load_config
from ptedge.detector.model import ProbabilisticFasterRCNN
from ptedge.errors import ArtifactError, ConfigError, OutputError, TrainingError
from ptedge.training.config import AdaptConfig, OptimConfig, TrainConfig
from ptedge.training.optim import build_optimizer, optimise, rate_factor
from ptedge.training.run_folder import RunFolder, state_of


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


def test_optimise__sgd_by_hand(model: ProbabilisticFasterRCNN) -> None:
    settings = config(warmup=2)  # the first step runs at half the rates
    optimizer = build_optimizer(model, settings)
    bias, anchors = model.roi_head.logits.bias, model.anchors.log_wh
    with torch.no_grad():
        bias.fill_(2.0)
    before = anchors.detach().clone()
    values = optimise(model, optimizer, {"a": 3 * bias.sum(), "b": 4 * anchors.sum()}, 0, settings)
    # 2 - 0.05 (3 + 0.5 * 2) and, without decay, x - 0.005 * 4
    torch.testing.assert_close(bias.detach(), torch.full((3,), 1.8))
    torch.testing.assert_close(anchors.detach(), before - 0.02)
    assert values["a"] == pytest.approx(18.0)
    assert values["loss"] == pytest.approx(18.0 + 4 * float(before.sum()), rel=1e-5)
    assert values["grad_norm"] == pytest.approx(math.sqrt(3 * 9 + 6 * 16))


def test_optimise__adamw_by_hand(model: ProbabilisticFasterRCNN) -> None:
    settings = config(optimizer="adamw", momentum=0.9)
    optimizer = build_optimizer(model, settings)
    assert isinstance(optimizer, torch.optim.AdamW)
    bias, anchors = model.roi_head.logits.bias, model.anchors.log_wh
    with torch.no_grad():
        bias.fill_(2.0)
    before = anchors.detach().clone()
    optimise(model, optimizer, {"a": 3 * bias.sum(), "b": -4 * anchors.sum()}, 0, settings)
    # the first step is the learning rate times the sign; weights also decay by 0.1 * 0.5
    torch.testing.assert_close(bias.detach(), torch.full((3,), 2.0 * 0.95 - 0.1))
    torch.testing.assert_close(anchors.detach(), before + 0.01)


def test_optimise__clips_the_gradient(model: ProbabilisticFasterRCNN) -> None:
    settings = config(clip=1.0, weight_decay=0.0)
    optimizer = build_optimizer(model, settings)
    bias = model.roi_head.logits.bias
    values = optimise(model, optimizer, {"a": 10 * bias.sum()}, 0, settings)
    assert values["grad_norm"] == pytest.approx(10 * math.sqrt(3))
    torch.testing.assert_close(bias.detach(), torch.full((3,), -0.1 / math.sqrt(3)), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("optimizer_name", ["sgd", "adamw"])
def test_optimise__anchors_do_not_decay(model: ProbabilisticFasterRCNN, optimizer_name: str) -> None:
    settings = config(optimizer=optimizer_name)
    optimizer = build_optimizer(model, settings)
    before = state_of(model)
    for step in range(3):
        zero = sum((0.0 * p.sum() for p in model.parameters()), torch.zeros(()))
        optimise(model, optimizer, {"nothing": zero}, step, settings)
    after = state_of(model)
    torch.testing.assert_close(after["anchors.log_wh"], before["anchors.log_wh"], rtol=0, atol=0)
    shrunk = before["roi_head.fc1.weight"] * 0.95**3  # 1 - 0.1 * 0.5
    torch.testing.assert_close(after["roi_head.fc1.weight"], shrunk)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_optimise__a_loss_that_is_not_finite(model: ProbabilisticFasterRCNN, bad: float) -> None:
    settings = config()
    optimizer = build_optimizer(model, settings)
    before = state_of(model)
    losses = {"fine": model.roi_head.logits.bias.sum(), "broken": model.anchors.log_wh.sum() * bad}
    with pytest.raises(TrainingError, match=r"loss is not finite at step 7.*'broken': (nan|inf)"):
        optimise(model, optimizer, losses, 7, settings)
    for name, tensor in state_of(model).items():
        torch.testing.assert_close(tensor, before[name], rtol=0, atol=0)


def test_optimise__a_gradient_that_is_not_finite(model: ProbabilisticFasterRCNN) -> None:
    settings = config()
    optimizer = build_optimizer(model, settings)
    with torch.no_grad():
        model.roi_head.logits.bias.zero_()
    before = state_of(model)
    root: Tensor = model.roi_head.logits.bias.abs().sqrt().sum()  # 0, with an infinite slope
    with pytest.raises(TrainingError, match="gradient is not finite at step 2"):
        optimise(model, optimizer, {"root": root}, 2, settings)
    for name, tensor in state_of(model).items():
        torch.testing.assert_close(tensor, before[name], rtol=0, atol=0)


def _save(folder: RunFolder, model: ProbabilisticFasterRCNN, step: int) -> None:
    folder.save(Checkpoint(tiny_config(), CLASS_NAMES, state_of(model)), {"step": step, "student": state_of(model)})


def test_run_folder__saves_and_loads(model: ProbabilisticFasterRCNN, tmp_path: Path) -> None:
    _save(RunFolder(tmp_path / "run", resume=False), model, 5)
    state = RunFolder(tmp_path / "run", resume=True).load_state()
    assert state["step"] == 5
    for name, tensor in model.state_dict().items():
        torch.testing.assert_close(state["student"][name], tensor, rtol=0, atol=0)
    assert load_checkpoint(tmp_path / "run" / "model.pt").class_names == CLASS_NAMES


def test_run_folder__refuses_a_folder_with_a_run(model: ProbabilisticFasterRCNN, tmp_path: Path) -> None:
    _save(RunFolder(tmp_path, resume=False), model, 5)
    with pytest.raises(OutputError, match=r"already holds a run.*--resume"):
        RunFolder(tmp_path, resume=False)


def test_run_folder__nothing_to_resume(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match=r"no last\.pt to resume"):
        RunFolder(tmp_path, resume=True)


def test_run_folder__model_is_not_resume_state(model: ProbabilisticFasterRCNN, tmp_path: Path) -> None:
    _save(RunFolder(tmp_path, resume=False), model, 5)
    (tmp_path / "last.pt").write_bytes((tmp_path / "model.pt").read_bytes())
    with pytest.raises(ArtifactError, match="not a ptedge-resume file"):
        RunFolder(tmp_path, resume=True).load_state()


def test_start_metrics__cuts_what_will_be_repeated(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path, resume=False)
    folder.start_metrics(0)
    for step in (1, 2, 3, 4):
        folder.log({"step": step, "loss": 0.5})
    path = tmp_path / "metrics.jsonl"
    with open(path, "a") as file:
        file.write('{"step": 5, "lo')  # the power failed here
    folder.start_metrics(2)
    folder.log({"step": 3})
    assert [json.loads(line)["step"] for line in path.read_text().splitlines()] == [1, 2, 3]
    folder.start_metrics(0)
    assert path.read_text() == ""


@pytest.mark.parametrize("cls", [TrainConfig, AdaptConfig])
def test_write_config__is_complete_and_reads_back(cls: type[TrainConfig | AdaptConfig], tmp_path: Path) -> None:
    written = load_config(cls, None, ["seed=3", "optim.steps=17", "augment.zoom=[0.25, 0.75]"])
    RunFolder(tmp_path, resume=False).write_config(written)
    assert load_config(cls, tmp_path / "config.toml") == written


@pytest.mark.parametrize(
    "override",
    [
        "seed=-1",
        "optim.lr=0",
        "optim.schedule=step",
        "augment.zoom=[0.9, 0.5]",
        "augment.brightness=-0.5",
        "pseudo.tau_cls=0",
        "pseudo.focal_cls=-1",
        "sampling.rpn_count=0",
        "sampling.roi_positive=1.5",
        "target.box_scale=-1",
        "teacher.ema=1.5",
        "lambda_target=-1",
        "workers=-2",
        "precision=fp8",
        "optim.accumulate=0",
        "optim.lr_scaling=sqrt",
    ],
)
def test_adapt_config__refuses(override: str) -> None:
    with pytest.raises(ConfigError):
        load_config(AdaptConfig, None, [override])
