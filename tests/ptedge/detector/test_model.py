"""Pixels as the backbone wants them, and detections image by image."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tiny_detector import NAME, tiny_config, use_tiny_detector

from ptedge.detector import backbone as backbone_module
from ptedge.detector.backbone import build_backbone
from ptedge.detector.model import ProbabilisticFasterRCNN
from ptedge.detector.roi_heads import ROIOutput
from ptedge.detector.rpn import RPNOutput
from ptedge.preprocess import PIXEL_MEAN, PIXEL_STD

# settings of which no two are alike
COUNTS: dict[str, Any] = {
    "rpn_train_top_n": (50, 7),
    "rpn_test_top_n": (40, 5),
    "rpn_nms": 0.6,
    "nms": 0.4,
    "score_rule": "certainty",
    "score_threshold": 0.15,
    "candidates": 9,
    "max_detections": 6,
}


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


def test_forward__takes_as_many_proposals_as_its_mode_asks_for(
    tiny: backbone_module.Backbone, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[Any, ...]] = []
    monkeypatch.setattr("ptedge.detector.model.propose", lambda output, *rest: asked.append(rest) or [])
    model = ProbabilisticFasterRCNN(tiny_config(**COUNTS), 2)
    for training in (True, False):
        model.train(training)(torch.zeros(1, 3, 64, 96))
    assert asked == [((64, 96), (50, 7), 0.6), ((64, 96), (40, 5), 0.6)]


def test_detect_features__goes_by_the_config_it_is_given(
    tiny: backbone_module.Backbone, monkeypatch: pytest.MonkeyPatch
) -> None:
    proposals = [torch.tensor([[0.0, 0.0, 20.0, 20.0]] * count) for count in (2, 3)]
    seen: list[Any] = []

    def propose(output: RPNOutput, *rest: Any) -> list[torch.Tensor]:
        seen.append(rest)
        return proposals

    def postprocess(output: ROIOutput, boxes: torch.Tensor, size: tuple[int, int], **settings: Any) -> int:
        assert len(output.logits) == len(boxes)
        seen.append((size, settings))
        return len(boxes)

    monkeypatch.setattr("ptedge.detector.model.propose", propose)
    monkeypatch.setattr("ptedge.detector.model.postprocess", postprocess)
    model = ProbabilisticFasterRCNN(tiny_config(), 2).eval()
    found = model.detect_features(torch.randn(2, 8, 4, 6), tiny_config(**COUNTS))
    settings = {
        "score_rule": "certainty",
        "score_threshold": 0.15,
        "nms_threshold": 0.4,
        "candidates": 9,
        "max_detections": 6,
        "cluster_iou": 0.3,
    }
    assert seen == [((64, 96), (40, 5), 0.6), ((64, 96), settings), ((64, 96), settings)]
    assert found == [2, 3]
    for own in ({"sigma_rule": "own"}, {"probabilistic": False}):  # a vanilla detector has no sigma to make one of
        model.detect_features(torch.randn(1, 8, 4, 6), tiny_config(**(COUNTS | own)))
        assert seen[-1][1]["cluster_iou"] is None


def test_set_sides__moves_and_scales_what_detect_answers(tiny: backbone_module.Backbone) -> None:
    model = ProbabilisticFasterRCNN(tiny_config(), 2).eval()
    image = torch.randint(0, 256, (1, 3, 64, 96), dtype=torch.uint8)
    before, names = model.detect(image)[0], set(model.state_dict())
    model.set_sides((0.1, 0.0, -0.2, 0.3), (2.0, 1.0, 1.0, 0.5))
    after = model.detect(image)[0]
    assert set(model.state_dict()) == names  # no part of the weights
    width, height = before.boxes[:, 2] - before.boxes[:, 0], before.boxes[:, 3] - before.boxes[:, 1]
    by = torch.stack([-0.1 * width, 0 * height, 0.2 * width, -0.3 * height], dim=1)
    limit = torch.tensor([96.0, 64.0, 96.0, 64.0])
    torch.testing.assert_close(after.boxes, torch.minimum((before.boxes + by).clamp(min=0), limit))
    torch.testing.assert_close(after.sigma, before.sigma * torch.tensor([2.0, 1.0, 1.0, 0.5]))
    for name in ("scores", "labels", "logits", "variances", "proposals", "entropy"):
        torch.testing.assert_close(getattr(after, name), getattr(before, name))


def test_feature_maps__early_and_last(tiny: backbone_module.Backbone) -> None:
    model, images = ProbabilisticFasterRCNN(tiny_config(), 2).eval(), torch.rand(1, 3, 64, 96) * 255
    with torch.no_grad():
        outputs, plain = model(images, 1), model(images)
        first = model.backbone.stages[0](model.normalise(images))
        torch.testing.assert_close(outputs.early, first)
        torch.testing.assert_close(plain.early, plain.features)  # all stages lie before it when none is named
        torch.testing.assert_close(outputs.features, model.features(images))
        torch.testing.assert_close(outputs.rpn.anchors, model.anchors(4, 6))
