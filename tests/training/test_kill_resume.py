"""SIGKILL at any moment, also in the midst of a write: --resume ends with the same weights, bit for bit."""

from __future__ import annotations

import random
import signal
from pathlib import Path

import torch
from tiny_processes import Job, run
from training_shell import LOOP, MODEL, assert_equal, comparable

from ptedge.artifacts.checkpoint import load_checkpoint

STEPS = 14
SETS = ("checkpoint_every=1", f"optim.steps={STEPS}", "curves=false")


def options(*sets: str) -> list[str]:
    return [word for value in sets for word in ("--set", value)]


def check(words: list[str], straight: Path, killed: Path, seed: int) -> None:
    """Run without a break, then with three kills at random moments, and compare."""
    rng = random.Random(seed)
    first, again = [*words, "--out", str(killed)], [*words, "--out", str(killed), "--resume"]
    attempts = [first, again, again]
    # before the first checkpoint, while one is written, after the last: all are good cases
    kills = [
        Job(attempt, sends=signal.SIGKILL, when=str(killed / "config.toml"), later=rng.uniform(0, 0.6))
        for attempt in attempts
    ]
    answers = run(Job([*words, "--out", str(straight)]), *kills, Job(again))
    assert answers[0]["status"] == answers[-1]["status"] == [0], answers
    assert any(answer["status"] == [-signal.SIGKILL] for answer in answers)
    assert not list(killed.glob(".*")), "a half-written file is left"
    one, two = (load_checkpoint(folder / "model.pt").state for folder in (straight, killed))
    for name, tensor in one.items():
        assert torch.equal(tensor, two[name]), name
    assert_equal(straight, killed)
    assert comparable(straight) == comparable(killed)


def test_train__killed_at_any_moment_ends_with_the_same_weights(source_data: Path, tmp_path: Path) -> None:
    words = ["train", str(source_data), *options(*LOOP, *MODEL, *SETS)]
    check(words, tmp_path / "straight", tmp_path / "killed", 0)


def test_adapt__killed_at_any_moment_ends_with_the_same_weights(
    pretrained: Path, source_data: Path, target_frames: Path, tmp_path: Path
) -> None:
    sets = options(*LOOP, *SETS, "teacher.ema=0.9", "teacher.adabn=true", "optim.anchor_lr=0.01", "optim.accumulate=2")
    words = ["adapt", str(pretrained), "--target", str(target_frames), "--source", str(source_data), *sets]
    check(words, tmp_path / "straight", tmp_path / "killed", 1)
