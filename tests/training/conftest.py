"""A tiny detector and tiny data for the tests of training."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tiny_detector import CLASS_NAMES, tiny_config, use_tiny_detector, write_pictures
from training_shell import Shell

from ptedge.detector.model import ProbabilisticFasterRCNN


@pytest.fixture(autouse=True)
def _tiny_backbone(monkeypatch: pytest.MonkeyPatch) -> None:
    use_tiny_detector(monkeypatch)


@pytest.fixture
def model() -> ProbabilisticFasterRCNN:
    """64 x 96, two classes, three anchors; in training mode."""
    torch.manual_seed(0)
    return ProbabilisticFasterRCNN(tiny_config(), len(CLASS_NAMES)).train()


@pytest.fixture(scope="session")
def source_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A COCO file of six pictures; tests do not change it."""
    return write_pictures(tmp_path_factory.mktemp("source"), 6)


@pytest.fixture(scope="session")
def target_frames(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of five pictures."""
    return write_pictures(tmp_path_factory.mktemp("target"), 5, seed=1).parent / "images"


@pytest.fixture
def ptedge(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    """Runs ``ptedge train`` and ``ptedge adapt``."""
    return Shell(capsys, monkeypatch)


@pytest.fixture
def pretrained(ptedge: Shell, source_data: Path, tmp_path: Path) -> Path:
    """The ``model.pt`` of a run of one step."""
    status, err = ptedge.train(source_data, tmp_path / "pretrained", steps=1)
    assert status == 0, err
    return tmp_path / "pretrained" / "model.pt"
