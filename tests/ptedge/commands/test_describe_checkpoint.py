from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from made_artifacts import write_checkpoint

from ptedge.artifacts.lineage import Lineage
from ptedge.commands.inspect import describe
from ptedge.errors import ArtifactError


def test_describe__checkpoint(tmp_path: Path) -> None:
    got = describe(write_checkpoint(tmp_path / "model.pt"))
    assert got["kind"] == "checkpoint"
    assert got["class_names"] == ["car", "person"]
    assert got["input_size"] == [224, 400]
    assert got["backbone"] == "efficientnet_lite0"
    assert got["anchors"] == [[16.0, 32.0], [64.0, 8.0]]
    assert got["lineage"]["parents"] == ["ab" * 32]
    assert got["weights"] == 7
    assert len(got["sha256"]) == 64


def test_describe__checkpoint_as_the_library_writes_it(tmp_path: Path) -> None:
    from ptedge.artifacts.checkpoint import Checkpoint, save_checkpoint
    from ptedge.detector.config import ModelConfig

    config = ModelConfig(weights="none", input_size=(64, 96))
    state = {"anchors.log_wh": torch.full((1, 2), math.log(48.0))}
    save_checkpoint(tmp_path / "m.pt", Checkpoint(config, ("car",), state, Lineage(role="teacher")))
    got = describe(tmp_path / "m.pt")
    assert (got["kind"], got["class_names"], got["input_size"]) == ("checkpoint", ["car"], [64, 96])
    assert got["anchors"] == [[48.0, 48.0]]
    assert got["lineage"]["role"] == "teacher"


def test_describe__foreign_torch_file(tmp_path: Path) -> None:
    torch.save({"model": {"w": torch.zeros(2)}, "epoch": 3}, tmp_path / "other.pt")
    got = describe(tmp_path / "other.pt")
    assert got["kind"] == "torch file, not written by ptedge"
    assert got["entries"] == ["model", "epoch"]
    assert got["tensors"] == 1


def test_describe__truncated_and_empty_checkpoint(tmp_path: Path) -> None:
    whole = write_checkpoint(tmp_path / "model.pt").read_bytes()
    (tmp_path / "cut.pt").write_bytes(whole[:400])
    with pytest.raises(ArtifactError, match="truncated"):
        describe(tmp_path / "cut.pt")
    (tmp_path / "empty.pt").touch()
    with pytest.raises(ArtifactError, match="is empty"):
        describe(tmp_path / "empty.pt")
