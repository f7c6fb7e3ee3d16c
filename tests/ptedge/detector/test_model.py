"""Pixels as the backbone wants them, and detections image by image."""

from __future__ import annotations

import pytest
import torch
from tiny_detector import NAME, tiny_config, use_tiny_detector

from ptedge.detector import backbone as backbone_module
from ptedge.detector.backbone import build_backbone
from ptedge.detector.model import ProbabilisticFasterRCNN
from ptedge.preprocess import PIXEL_MEAN, PIXEL_STD


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> backbone_module.Backbone:
    use_tiny_detector(monkeypatch)
    torch.manual_seed(0)
    return build_backbone(NAME, 0)


def test_normalise__by_hand(tiny: backbone_module.Backbone) -> None:
    model = ProbabilisticFasterRCNN(tiny_config(), 2)
    pixel = torch.tensor([10, 20, 30], dtype=torch.uint8).reshape(1, 3, 1, 1)
    expected = [(v - m) / s for v, m, s in zip((10, 20, 30), PIXEL_MEAN, PIXEL_STD, strict=True)]
    torch.testing.assert_close(model.normalise(pixel).flatten(), torch.tensor(expected))
    assert not any("pixel" in name for name in model.state_dict())  # constants, not weights


@pytest.mark.parametrize("probabilistic", [True, False])
def test_detect__is_per_image(tiny: backbone_module.Backbone, probabilistic: bool) -> None:
    torch.manual_seed(1)
    model = ProbabilisticFasterRCNN(tiny_config(probabilistic=probabilistic), 2).eval()
    images = torch.randint(0, 256, (3, 3, 64, 96), dtype=torch.uint8)
    together = model.detect(images)
    assert len(together) == 3
    for i, found in enumerate(together):
        alone = model.detect(images[i : i + 1])[0]
        assert len(found.boxes) > 0
        torch.testing.assert_close(found.boxes, alone.boxes)
        torch.testing.assert_close(found.scores, alone.scores)
        assert bool((found.sigma > 0).all()) == probabilistic
        assert bool((found.scores[1:] <= found.scores[:-1]).all())
