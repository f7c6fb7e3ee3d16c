"""Presets: 16 images a step whatever the memory, below --config and --set."""

from __future__ import annotations

from pathlib import Path

import pytest
from training_shell import Shell

from ptedge.config import load_config
from ptedge.training.cli import PRESETS as NAMES
from ptedge.training.config import SOURCE_FREE_DEFAULTS, AdaptConfig, TrainConfig
from ptedge.training.presets import PRESETS, describe_preset, preset_values


def test_presets__the_command_line_knows_them() -> None:
    assert tuple(PRESETS) == NAMES


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("cls", "defaults"), [(TrainConfig, {}), (AdaptConfig, {}), (AdaptConfig, SOURCE_FREE_DEFAULTS)]
)
def test_preset_values__the_papers_batch_and_its_rate(
    name: str, cls: type[TrainConfig | AdaptConfig], defaults: dict[str, dict[str, float]]
) -> None:
    usual = load_config(cls, None, (), defaults)
    config = load_config(cls, None, (), preset_values(name, defaults, usual.optim))
    assert config.optim.batch * config.optim.accumulate == 16
    assert config.optim.lr == pytest.approx(usual.optim.lr * 16 / usual.optim.batch)
    assert config.optim.anchor_lr == pytest.approx(usual.optim.anchor_lr * 16 / usual.optim.batch)
    assert config.precision == "bf16"
    if defaults:
        assert isinstance(config, AdaptConfig) and config.teacher.adabn  # what else source-free sets stays


def test_describe_preset__by_hand() -> None:
    text = describe_preset("8gb", preset_values("8gb", {}, TrainConfig().optim))
    assert text == (
        "preset 8gb: precision=bf16, checkpointing=true, optim.batch=4, optim.accumulate=4, optim.lr=0.016, "
        "optim.anchor_lr=0, optim.lr_scaling=linear"
    )


def test_train__preset_is_printed_and_written_and_gives_way(ptedge: Shell, source_data: Path, tmp_path: Path) -> None:
    status, err = ptedge.train(source_data, tmp_path / "run", "--preset", "12gb", steps=1)  # which sets batch and lr
    assert status == 0, err
    assert "preset 12gb: precision=bf16" in err
    assert "4 images a step (2 a part, 2 parts, 1 processes), learning rate 0.0005 (0.002 for 16 images" in err
    written = load_config(TrainConfig, tmp_path / "run" / "config.toml")
    assert (written.precision, written.optim.batch, written.optim.accumulate) == ("bf16", 2, 2)
