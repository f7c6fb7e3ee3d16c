"""What version 0.1.0 wrote, before the folders were laid anew, still opens: runs, settings, bundles, a field folder.

``made_before/`` was written by that version: ``train`` (2 steps), ``source_free`` and ``adapted`` (2 steps each from
its ``model.pt``), a ``bundle`` of a few nodes, and a ``field`` folder that it collected. The detector has 8 hidden
units.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny_detector import narrow_head, use_tiny_detector, write_pictures

from ptedge import cli as ptedge_cli
from ptedge.files import sha256_file

MADE = Path(__file__).with_name("made_before")


@pytest.fixture(autouse=True)
def _detector(monkeypatch: pytest.MonkeyPatch) -> None:
    use_tiny_detector(monkeypatch)
    monkeypatch.setattr("ptedge.detector.model.ROIHead", narrow_head(8))


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the files, and the pictures they were made from, in the working folder."""
    write_pictures(tmp_path / "source", 6)
    write_pictures(tmp_path / "target", 5, seed=1)
    shutil.copytree(MADE, tmp_path / "made")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "made"


def call(monkeypatch: pytest.MonkeyPatch, *words: Any) -> None:
    monkeypatch.setattr(sys, "argv", ["ptedge", *map(str, words)])
    try:
        ptedge_cli.main()
    except SystemExit as stop:
        assert not stop.code


def student(run: Path) -> dict[str, torch.Tensor]:
    state: dict[str, torch.Tensor] = torch.load(run / "last.pt", weights_only=True)["student"]
    return state


def second_step(run: Path) -> list[float]:
    line = json.loads((run / "metrics.jsonl").read_text("utf-8").splitlines()[1])
    return [line["loss"], line["grad_norm"]]


@pytest.mark.parametrize(
    ("run", "words"),
    [
        ("train", ["train", "source/data.json"]),
        ("source_free", ["adapt", "made/train/model.pt", "--target", "target/images", "--source-free"]),
        ("adapted", ["adapt", "made/train/model.pt", "--target", "target/images", "--source", "source/data.json"]),
    ],
)
def test_resume__a_run_goes_on_as_one_that_was_never_interrupted(
    run: str, words: list[str], made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = made / run / "config.toml"
    whole = [*words, "--config", settings, "--set", "optim.steps=4"]
    call(monkeypatch, *whole, "--out", made / "whole", "--set", "checkpoint_every=2")
    stored = student(made / run)
    call(monkeypatch, *words, "--out", made / run, "--resume", "--set", "optim.steps=4")
    assert json.loads((made / run / "summary.json").read_text("utf-8"))["steps"] == 4
    resumed, straight = student(made / run), student(made / "whole")
    assert resumed.keys() == stored.keys() == straight.keys()
    weights = {name: tensor for name, tensor in stored.items() if "running_" not in name and "num_" not in name}
    for name, tensor in weights.items():  # two steps of SGD at 0.002 from what was stored, and from nothing else
        assert (resumed[name] - tensor).abs().max() < 0.02, name
    if second_step(MADE / run) == pytest.approx(second_step(made / "whole"), abs=2e-6):
        # this torch draws the first half as the one that wrote it did
        for name, tensor in straight.items():  # not bit for bit: another processor may have made the first half
            torch.testing.assert_close(resumed[name], tensor, rtol=1e-3, atol=1e-5)
    steps = [json.loads(line)["step"] for line in (made / run / "metrics.jsonl").read_text("utf-8").splitlines()]
    assert steps == [1, 2, 3, 4]


def test_checkpoint__is_scored_exported_and_told(
    made: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    call(monkeypatch, "eval", made / "source_free/model.pt", "source/data.json", "--json")
    assert json.loads(capsys.readouterr().out)["boxes"] == 5
    call(monkeypatch, "inspect", made / "adapted/model.pt")
    assert "adapted" in capsys.readouterr().out
    call(monkeypatch, "export", made / "adapted/model.pt", "--out", "exported")
    manifest = json.loads(Path("exported/manifest.json").read_text("utf-8"))
    assert manifest["class_names"] == ["car", "person"]
    assert manifest["lineage"]["kind"] == "adapted"
    assert manifest["lineage"]["parents"] == [sha256_file(made / "train/model.pt")]


def test_bundle_and_field__are_run_and_collected_into(
    made: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path.name: path.read_bytes() for path in (made / "field/images").iterdir()}
    lines = (made / "field/frames.jsonl").read_text("utf-8").splitlines()
    assert len(before) == len(lines) == 5
    write_pictures(Path("more"), 3, seed=2)
    collect = ["--collect", made / "field", "--collect-random", 1, "--collect-interval", 0]
    call(monkeypatch, "run", made / "bundle", "more/images", "--out", "ran", *collect)
    for name, content in before.items():
        assert (made / "field/images" / name).read_bytes() == content
    now = (made / "field/frames.jsonl").read_text("utf-8").splitlines()
    assert now[:5] == lines and len(now) == 8
    detections = json.loads(Path("ran/detections.jsonl").read_text("utf-8").splitlines()[0])["detections"]
    np.testing.assert_allclose(detections[0]["box"], [8, 16, 40, 48], atol=0.01)
    capsys.readouterr()
    call(monkeypatch, "field", "summary", made / "field", "--json")
    assert json.loads(capsys.readouterr().out)["images"] == 8


def test_field__is_adapted_to(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = made / "source_free/config.toml"
    words = ["--target", made / "field", "--source-free", "--config", settings, "--set", "optim.steps=1"]
    call(monkeypatch, "adapt", made / "train/model.pt", *words, "--out", "second")
    assert json.loads(Path("second/summary.json").read_text("utf-8"))["target_frames"] == 5
