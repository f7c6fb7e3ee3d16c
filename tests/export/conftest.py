"""One small checkpoint and its bundle for all tests of the export."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Holds ``model.pt`` and ``bundle``; tests do not change them, and are skipped where there is no torch."""
    torch = pytest.importorskip("torch")
    from ptedge.artifacts.checkpoint import Checkpoint, save_checkpoint
    from ptedge.artifacts.lineage import Lineage
    from ptedge.detector.config import ModelConfig
    from ptedge.detector.model import ProbabilisticFasterRCNN
    from ptedge.export.to_bundle import export_checkpoint

    config = ModelConfig(
        weights="none",
        input_size=(96, 128),
        anchor_sizes=(16.0, 32.0, 64.0),
        rpn_test_top_n=(150, 40),
        candidates=60,
        max_detections=30,
    )
    torch.manual_seed(1)
    path = tmp_path_factory.mktemp("export")
    model = ProbabilisticFasterRCNN(config, 2)
    with torch.no_grad():  # fresh heads answer almost alike everywhere; spread them, so that few decisions are ties
        model.rpn_head.objectness.weight.mul_(30)
        model.roi_head.deltas.weight.mul_(30)
        model.roi_head.logits.weight.mul_(5)
    lineage = Lineage(kind="adapted", role="teacher", parents=("first", "second"))
    save_checkpoint(path / "model.pt", Checkpoint(config, ("car", "bus"), model.state_dict(), lineage))
    export_checkpoint(path / "model.pt", path / "bundle")
    return path


@pytest.fixture
def checkpoint(folder: Path) -> Path:
    """A checkpoint of two classes, 96 x 128."""
    return folder / "model.pt"


@pytest.fixture
def bundle(folder: Path) -> Path:
    """The checkpoint's bundle."""
    return folder / "bundle"
