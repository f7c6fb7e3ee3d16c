"""``ptedge train`` and ``ptedge adapt`` as the shell runs them, with tiny settings, for tests."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_detector import NAME

from ptedge import cli as ptedge_cli
from ptedge.signals import unwatch

LOOP = [
    "optim.optimizer=sgd",
    "optim.batch=2",
    "optim.warmup=2",
    "workers=0",
    "log_every=1",
    "optim.lr=0.002",
    "optim.schedule=constant",  # a run that is resumed with more steps goes on at the same rate
    "optim.weight_decay=0.0001",
    "curves=false",
]
MODEL = [
    f"model.backbone={NAME}",
    "model.weights=none",
    "model.input_size=[64, 96]",
    "model.frozen_stages=0",
    "model.anchor_sizes=[24.0]",
    "model.rpn_train_top_n=[60, 20]",
    "model.rpn_test_top_n=[60, 20]",
    "model.candidates=40",
    "model.max_detections=10",
    "model.score_threshold=0.05",
]


def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *words: Any) -> tuple[int, str]:
    """Run ``ptedge`` as the shell does; returns exit status and stderr. Standard output must stay empty."""
    monkeypatch.setattr(sys, "argv", ["ptedge", *map(str, words)])
    status = 0
    try:
        ptedge_cli.main()
    except SystemExit as stop:
        status = stop.code if isinstance(stop.code, int) else 1
    unwatch()
    out, err = capsys.readouterr()
    assert out == ""
    return status, err


class Shell:
    """``ptedge train`` and ``ptedge adapt`` with tiny settings."""

    def __init__(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self.capsys, self.monkeypatch = capsys, monkeypatch

    def __call__(self, *words: Any, sets: list[str]) -> tuple[int, str]:
        options = [word for value in sets for word in ("--set", value)]
        return call(self.capsys, self.monkeypatch, *words, *options)

    def train(self, source: Path, out: Path, *words: Any, steps: int = 2, sets: tuple[str, ...] = ()) -> Any:
        return self("train", source, "--out", out, *words, sets=[*LOOP, *MODEL, f"optim.steps={steps}", *sets])

    def adapt(self, model: Path, out: Path, *words: Any, steps: int = 2, sets: tuple[str, ...] = ()) -> Any:
        watched = ["monitor.every=1", "monitor.frames=3", "teacher.ema=0.9996", "optim.anchor_lr=0"]
        return self("adapt", model, "--out", out, *words, sets=[*LOOP, *watched, f"optim.steps={steps}", *sets])


FILES = {"config.toml", "last.pt", "metrics.jsonl", "model.pt", "summary.json"}


ADAPT_FILES = FILES | {"checkpoints", "last_model.pt"}


def lines(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text("utf-8").splitlines()]


def summary(run: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((run / "summary.json").read_text("utf-8"))
    return document


def fails(result: tuple[int, str], *parts: str) -> None:
    status, err = result
    assert status == 1, err
    assert err.startswith("ptedge: ") and err.count("\n") == 1 and "Traceback" not in err, err
    for part in parts:
        assert part in err, err


def assert_equal(first: Path, second: Path) -> None:
    a, b = (torch.load(path, weights_only=True) for path in (first / "last.pt", second / "last.pt"))
    assert a["step"] == b["step"]
    for role in {"student", "teacher"} & set(a):
        for name, tensor in a[role].items():
            assert torch.equal(tensor, b[role][name]), f"{role} {name}"


def comparable(run: Path) -> list[dict[str, Any]]:
    timed = ("step_seconds", "data_wait", "images_per_second")
    return [{k: v for k, v in line.items() if k not in timed} for line in lines(run)]
