"""Presets: the paper's recipe, and 16 images a step whatever the memory, below --config and --set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from training_shell import Shell

from ptedge.config import from_dict, load_config, to_dict
from ptedge.errors import ConfigError
from ptedge.training.cli import GPU_PRESETS
from ptedge.training.cli import PRESETS as NAMES
from ptedge.training.config import AdaptConfig, TrainConfig
from ptedge.training.recipes.presets import EDGE, KINDS, PAPER, PRESETS, describe_preset, preset_values

CLASSES: dict[str, type[TrainConfig | AdaptConfig]] = {
    "train": TrainConfig,
    "adapt": AdaptConfig,
    "source_free": AdaptConfig,
}
SGD = {"optimizer": "sgd", "steps": 4000, "batch": 4, "accumulate": 1, "lr_scaling": "none", "momentum": 0.9}
SGD |= {"weight_decay": 1e-4, "warmup": 400, "schedule": "constant", "clip": 10.0, "roi_rate": 1.0}
# what the commands did without settings before they chose a recipe by themselves
EARLIER: dict[str, dict[str, Any]] = {
    "train": {"optim": {**SGD, "lr": 0.004, "anchor_lr": 0.0}},
    "adapt": {"optim": {**SGD, "lr": 0.004, "anchor_lr": 0.001}},
    "source_free": {"optim": {**SGD, "lr": 0.0004, "anchor_lr": 0.0001}},
}


def test_presets__the_command_line_knows_them() -> None:
    assert tuple(PRESETS) == GPU_PRESETS
    assert (PAPER, EDGE, *GPU_PRESETS) == NAMES


@pytest.mark.parametrize("kind", KINDS)
def test_preset_values__paper_is_what_the_defaults_were(kind: str) -> None:
    cls = CLASSES[kind]
    got = to_dict(from_dict(cls, preset_values(PAPER, kind), "paper"))
    assert got["optim"] == EARLIER[kind]["optim"]
    assert got["sampling"] == {"rpn_count": 256, "rpn_positive": 0.5, "roi_count": 128, "roi_positive": 0.25}
    if cls is TrainConfig:
        assert got["view"] == "strong" and got["model"]["anchor_sizes"] == [128, 256, 512]
    else:
        assert got["teacher"]["ema"] == 0.9996
        assert got["teacher"]["adabn"] is got["pseudo"]["clamp_focal"] is (kind == "source_free")
    changed = {key: value for key, value in to_dict(cls()).items() if got[key] != value}
    assert set(changed) <= set(KINDS[kind])  # all else is as ever


@pytest.mark.parametrize("name", GPU_PRESETS)
@pytest.mark.parametrize("kind", KINDS)
def test_preset_values__the_papers_batch_and_its_rate(name: str, kind: str) -> None:
    usual = EARLIER[kind]["optim"]
    config = from_dict(CLASSES[kind], preset_values(name, kind), name)
    assert config.optim.batch * config.optim.accumulate == 16
    assert config.optim.lr == pytest.approx(usual["lr"] * 4)
    assert config.optim.anchor_lr == pytest.approx(usual["anchor_lr"] * 4)
    assert (config.precision, config.optim.optimizer, config.optim.steps) == ("bf16", "sgd", 4000)
    if kind == "source_free":
        assert isinstance(config, AdaptConfig) and config.teacher.adabn  # what else source-free sets stays


def test_describe_preset__by_hand() -> None:
    assert describe_preset("8gb", preset_values("8gb", "train")) == (
        "preset 8gb: view=strong, model.anchor_sizes=[128.0, 256.0, 512.0], optim.optimizer=sgd, optim.steps=4000, "
        "optim.batch=4, optim.lr=0.016, optim.weight_decay=0.0001, optim.warmup=400, optim.schedule=constant, "
        "optim.anchor_lr=0, optim.accumulate=4, optim.lr_scaling=linear, sampling.roi_count=128, precision=bf16, "
        "checkpointing=true"
    )


def test_train__preset_is_printed_and_written_and_gives_way(ptedge: Shell, source_data: Path, tmp_path: Path) -> None:
    status, err = ptedge.train(source_data, tmp_path / "run", "--preset", "12gb", steps=1)  # which sets batch and lr
    assert status == 0, err
    assert "preset 12gb: " in err and "precision=bf16" in err
    assert "4 images a step (2 a part, 2 parts, 1 processes), learning rate 0.0005 (0.002 for 16 images" in err
    written = load_config(TrainConfig, tmp_path / "run" / "config.toml")
    assert (written.precision, written.optim.batch, written.optim.accumulate) == ("bf16", 2, 2)


def test_preset_values__edge_is_a_light_head_that_a_full_one_teaches() -> None:
    config = from_dict(TrainConfig, preset_values(EDGE, "train"), "edge")
    assert (config.model.roi_channels, config.model.roi_hidden) == (64, 256)
    assert config.model.rpn_test_top_n == (600, 150)
    assert (config.distill.weight, config.optim.roi_rate) == (1.0, 3.0)
    assert config.optim.steps == TrainConfig().optim.steps  # all else is as ever


@pytest.mark.parametrize("kind", ["adapt", "source_free"])
def test_preset_values__edge_is_refused_where_the_model_is_there_already(kind: str) -> None:
    with pytest.raises(ConfigError, match="adaptation keeps the head of its checkpoint"):
        preset_values(EDGE, kind)
