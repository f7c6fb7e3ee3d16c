"""What train and adapt choose for the data and the machine, and what they leave alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from places import ROOT
from tiny_detector import write_pictures
from training_shell import Shell, summary

from ptedge.config import load_config
from ptedge.data import open_dataset
from ptedge.training.config import AdaptConfig, OptimConfig, TrainConfig
from ptedge.training.recipes.recipe import SCHEDULES, Situation, ema_for, fit_anchors, settle

NOTHING: frozenset[str] = frozenset()


@pytest.mark.parametrize(
    ("kind", "images", "gpu", "steps"),
    [
        ("train", 6, False, 400),  # at least
        ("train", 580, False, 400),  # 290 for two passes of 4 a step
        ("train", 1000, False, 500),
        ("train", 1001, False, 501),  # rounded up
        ("train", 118_000, False, 2000),  # at most, on a CPU
        ("train", 20_000, True, 10_000),
        ("train", 118_000, True, 20_000),
        ("adapt", 275, False, 100),
        ("adapt", 1200, False, 300),
        ("adapt", 8000, False, 400),
        ("adapt", 8000, True, 2000),
        ("source_free", 8000, True, 400),  # long runs make sigma too small, on any machine
    ],
)
def test_schedule_steps__by_hand(kind: str, images: int, gpu: bool, steps: int) -> None:
    assert SCHEDULES[kind].steps(images, 4, gpu=gpu) == steps


def test_schedule_said__the_rule_in_words() -> None:
    assert (
        SCHEDULES["train"].said()
        == "two passes over the images, 400 at least, 2,000 on a CPU and 20,000 on a GPU at most"
    )
    assert SCHEDULES["source_free"].said() == "one pass over the images, 100 at least, 400 at most"


@pytest.mark.parametrize(("steps", "ema"), [(100, 0.98), (400, 0.995), (20, 0.9), (5, 0.9), (0, 0.9), (26_000, 0.9996)])
def test_ema_for__half_life_of_a_third_of_the_run_within_bounds(steps: int, ema: float) -> None:
    assert ema_for(steps) == pytest.approx(ema)


def test_settle__the_measured_pair_gets_the_measured_recipe() -> None:
    """580 labelled images and 275 frames, two CPU cores: what docs/results.md was measured with."""
    trained = settle(TrainConfig(), NOTHING, Situation("train", 580, False)).config
    wanted = OptimConfig("adamw", 400, 4, 1, 3e-4, "none", 0.9, 0.01, 50, "cosine", 10.0, 0.0)
    assert (trained.view, trained.optim, trained.sampling.roi_count) == ("weak", wanted, 64)
    for kind in ("adapt", "source_free"):
        adapted = settle(AdaptConfig(), NOTHING, Situation(kind, 275, False)).config
        wanted = OptimConfig("adamw", 100, 4, 1, 1e-4, "none", 0.9, 0.01, 10, "cosine", 10.0, 1e-3)
        assert (adapted.optim, adapted.teacher.ema, adapted.teacher.adabn) == (wanted, 0.98, False)
        assert adapted.pseudo.clamp_focal is False


def test_settle__what_is_set_stays_and_the_rest_follows() -> None:
    config = load_config(AdaptConfig, None, ["optim.steps=50"])
    settled = settle(config, {"optim.steps"}, Situation("adapt", 275, False))
    assert (settled.config.optim.steps, settled.config.optim.warmup, settled.config.teacher.ema) == (50, 5, 0.96)
    assert settled.chosen == {"optim.warmup": 5, "optim.lr": 1e-4, "optim.weight_decay": 0.01, "teacher.ema": 0.96}
    own = {"optim.steps", "optim.warmup", "teacher.ema", "optim.lr", "optim.weight_decay"}
    kept = settle(config, own, Situation("adapt", 9999, True))
    assert kept.config == config and kept.chosen == {} and len(kept.lines) == 1
    assert settle(config, None, Situation("adapt", 9999, True)).config is config


def test_settle__several_processes_take_fewer_steps() -> None:
    config = settle(TrainConfig(), NOTHING, Situation("train", 4000, False, processes=2)).config
    assert config.optim.steps == 1000


def test_settle__sgd_has_the_papers_rate() -> None:
    config = load_config(TrainConfig, None, ["optim.optimizer=sgd"])
    optim = settle(config, {"optim.optimizer"}, Situation("train", 580, False)).config.optim
    assert (optim.lr, optim.weight_decay) == (0.004, 1e-4)


def test_settle__says_it_in_two_lines() -> None:
    assert settle(AdaptConfig(), NOTHING, Situation("source_free", 275, False)).lines == (
        "recipe: AdamW 0.0001, 100 steps (275 frames, CPU), cosine, EMA 0.98",
        "        --set KEY=VALUE changes a setting, --preset paper takes the paper's recipe",
    )


def test_fit_anchors__k_means_at_the_input_size(tmp_path: Path) -> None:
    dataset = open_dataset(write_pictures(tmp_path / "data", 6))
    sizes = [2 * float(w * h) ** 0.5 for s in dataset.samples for w, h in s.boxes[:, 2:] - s.boxes[:, :2]]
    fitted = fit_anchors(dataset, (128, 192))  # twice the pictures' size
    assert fitted is not None and list(fitted) == sorted(fitted)
    for k, mean in enumerate(fitted):
        own = [size for size in sizes if min(range(3), key=lambda j: abs(size - fitted[j])) == k]
        assert mean == pytest.approx(sum(own) / len(own), abs=0.06)


def test_schedules__training_page_tells_them() -> None:
    page = " ".join((ROOT / "docs" / "training.md").read_text("utf-8").split())
    assert [kind for kind, schedule in SCHEDULES.items() if schedule.said() not in page] == []


def test_fit_anchors__boxes_of_a_fraction_of_a_pixel(tmp_path: Path) -> None:
    dataset = open_dataset(write_pictures(tmp_path / "data", 3))
    assert fit_anchors(dataset, (16, 16)) is not None
    small = replace(dataset, samples=tuple(replace(s, boxes=s.boxes * 0.01) for s in dataset.samples))
    assert fit_anchors(small, (16, 16)) == (1.0, 1.0, 1.0)


def test_train__fits_anchors_says_so_and_can_be_repeated(ptedge: Shell, source_data: Path, tmp_path: Path) -> None:
    base = ["model.backbone=efficientnet_lite0", "model.weights=none", "model.input_size=[64, 96]", "optim.steps=2"]
    base += ["workers=0", "curves=false", "optim.batch=2"]
    status, err = ptedge("train", source_data, "--out", tmp_path / "run", sets=base)
    assert status == 0, err
    fitted = fit_anchors(open_dataset(source_data), (64, 96))
    assert fitted is not None
    shown = ", ".join(f"{size:g}" for size in fitted)
    assert "recipe: AdamW 0.0003, 2 steps (6 images, CPU), cosine, weak view, anchors " in err
    assert f"anchors {shown} px (fitted)" in err
    written = load_config(TrainConfig, tmp_path / "run" / "config.toml")
    assert written.model.anchor_sizes == fitted
    assert summary(tmp_path / "run")["recipe"]["model.anchor_sizes"] == list(fitted)
    words = ["--config", tmp_path / "run" / "config.toml"]
    status, err = ptedge("train", source_data, "--out", tmp_path / "again", *words, sets=[])
    assert status == 0, err
    assert "--preset paper" not in err  # nothing was left to choose
    assert load_config(TrainConfig, tmp_path / "again" / "config.toml") == written


def test_train__preset_paper_chooses_nothing(ptedge: Shell, source_data: Path, tmp_path: Path) -> None:
    sets = ["model.weights=none", "model.input_size=[64, 96]", "optim.steps=1", "workers=0", "curves=false"]
    status, err = ptedge("train", source_data, "--out", tmp_path / "run", "--preset", "paper", sets=sets)
    assert status == 0, err
    assert "recipe: SGD 0.004, 1 steps (6 images, CPU), constant rate, strong view, anchors 128, 256, 512 px" in err
    written = load_config(TrainConfig, tmp_path / "run" / "config.toml")
    assert (written.optim.warmup, written.sampling.roi_count) == (400, 128)
    assert summary(tmp_path / "run")["recipe"] == {}
