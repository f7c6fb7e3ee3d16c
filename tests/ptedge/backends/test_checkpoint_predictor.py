from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_detector import CLASS_NAMES, tiny_config, use_tiny_detector

from ptedge.artifacts.checkpoint import Checkpoint, save_checkpoint
from ptedge.backends.checkpoint_predictor import CheckpointPredictor, detect_image
from ptedge.detector.model import ProbabilisticFasterRCNN
from ptedge.files import sha256_file


def test_checkpoint_predictor__answers_like_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_tiny_detector(monkeypatch)
    torch.manual_seed(0)
    model = ProbabilisticFasterRCNN(tiny_config(), len(CLASS_NAMES))
    checkpoint, saved = Checkpoint(tiny_config(), CLASS_NAMES, model.state_dict()), tmp_path / "model.pt"
    save_checkpoint(saved, checkpoint)
    predictor = CheckpointPredictor(saved)
    assert predictor.class_names == CLASS_NAMES
    assert predictor.input_size == (64, 96)
    assert predictor.model_hash == sha256_file(saved)
    image = np.random.default_rng(0).integers(0, 256, (128, 192, 3), dtype=np.uint8)
    found = predictor.detect(image)
    expected = detect_image(checkpoint.build(), image)
    assert len(found) > 0
    np.testing.assert_allclose(found.boxes, expected.boxes, atol=1e-3)
    assert found.boxes[:, 2].max() > 96  # pixels of the image, twice the input
    predictor.close()
