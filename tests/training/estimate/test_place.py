"""What the end of ``train`` and ``adapt`` keeps of their frames, and what calibration and export leave of it."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from drift_streams import reference
from training_shell import Shell, summary

from ptedge.artifacts.bundle import open_bundle
from ptedge.artifacts.checkpoint import load_checkpoint, save_checkpoint
from ptedge.drift import reference as drift_reference
from ptedge.export.to_bundle import export_checkpoint


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five frames are enough."""
    monkeypatch.setattr(drift_reference, "FEWEST", 5)


def test_adapt__keeps_what_the_target_is_like(
    ptedge: Shell, few: None, pretrained: Path, target_frames: Path, tmp_path: Path
) -> None:
    status, err = ptedge.adapt(pretrained, tmp_path / "run", "--target", target_frames, "--source-free")
    assert status == 0, err
    kept = load_checkpoint(tmp_path / "run" / "model.pt").reference
    assert kept is not None and (kept.frames, kept.origin) == (5, "target")
    assert summary(tmp_path / "run")["reference"] == {"frames": 5, "origin": "target"}


def test_adapt__too_few_frames_are_told(ptedge: Shell, pretrained: Path, target_frames: Path, tmp_path: Path) -> None:
    status, err = ptedge.adapt(pretrained, tmp_path / "run", "--target", target_frames, "--source-free")
    assert status == 0 and "no reference for drift: 5 frames are too few" in err
    assert load_checkpoint(tmp_path / "run" / "model.pt").reference is None


def test_train__of_the_validation_set_or_of_what_it_learned_from(
    ptedge: Shell, few: None, source_data: Path, tmp_path: Path
) -> None:
    for words, origin in (((), "train"), (("--val", source_data), "val")):
        status, err = ptedge.train(source_data, tmp_path / origin, *words, steps=1)
        assert status == 0, err
        kept = load_checkpoint(tmp_path / origin / "model.pt").reference
        assert kept is not None and kept.origin == origin


def test_export__takes_it_along_at_the_same_size_only(pretrained: Path, tmp_path: Path) -> None:
    known = dataclasses.replace(reference(classes=2), origin="val")
    path = tmp_path / "model.pt"
    save_checkpoint(path, dataclasses.replace(load_checkpoint(pretrained), reference=known))
    told: list[str] = []
    export_checkpoint(path, tmp_path / "same", tell=told.append)
    assert open_bundle(tmp_path / "same").manifest.reference == known and not told
    export_checkpoint(path, tmp_path / "other", input_size=(96, 96), tell=told.append)
    assert open_bundle(tmp_path / "other").manifest.reference is None
    assert "another input size" in told[0]
