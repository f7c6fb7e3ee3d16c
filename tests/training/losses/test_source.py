"""L_S on a tiny detector: values by hand, who gets a gradient, and images without anything."""

from __future__ import annotations

import math

import pytest
import torch
from loss_inputs import BOX, MANY, NONE, generator, gradient, images, one_anchor_of_three
from torch import Tensor

from ptedge.detector.model import Outputs, ProbabilisticFasterRCNN
from ptedge.detector.rpn import RPNOutput
from ptedge.training.losses.source import ImageLabels, sample_source, source_losses, source_rpn_losses


def labels(boxes: Tensor, label: int = 1, ignore: Tensor = NONE) -> ImageLabels:
    return ImageLabels(boxes, torch.full((len(boxes),), label, dtype=torch.int64), ignore)


def source(model: ProbabilisticFasterRCNN, known: list[ImageLabels]) -> dict[str, Tensor]:
    outputs = model(images(len(known)))
    samples = sample_source(outputs, known, MANY, generator())
    roi = model.roi(outputs.features, samples.proposals)
    return source_losses(outputs.rpn, roi, samples, known, model.config.probabilistic)


def rpn_losses(rpn: RPNOutput, known: list[ImageLabels], probabilistic: bool) -> dict[str, Tensor]:
    outputs = Outputs(NONE, NONE, rpn, [NONE] * len(known))
    return source_rpn_losses(rpn, sample_source(outputs, known, MANY, generator()), known, probabilistic)


def test_source_losses__move_weights_but_not_anchors(model: ProbabilisticFasterRCNN) -> None:
    losses = source(model, [labels(BOX), labels(NONE)])
    assert set(losses) == {"rpn_cls", "rpn_box", "roi_cls", "roi_box"}
    assert all(bool(torch.isfinite(loss)) and loss.shape == () for loss in losses.values())
    grads = gradient(model, torch.stack(list(losses.values())).sum())
    assert grads.pop("anchors.log_wh") is None
    for name, grad in grads.items():
        assert grad is not None and torch.isfinite(grad).all(), name
        assert grad.any(), name


def test_source_losses__images_without_boxes_teach_background(model: ProbabilisticFasterRCNN) -> None:
    losses = source(model, [labels(NONE), labels(NONE)])
    assert float(losses["rpn_box"].detach()) == float(losses["roi_box"].detach()) == 0.0
    # fresh heads: objectness near 1/2, three classes nearly alike
    assert float(losses["rpn_cls"].detach()) == pytest.approx(math.log(2.0), abs=0.05)
    assert float(losses["roi_cls"].detach()) == pytest.approx(math.log(3.0), abs=0.05)
    grads = gradient(model, torch.stack(list(losses.values())).sum())
    logits = grads["roi_head.logits.bias"]
    assert logits is not None and bool(logits[2] < 0) and bool((logits[:2] > 0).all())  # background rises
    box = grads["roi_head.deltas.weight"]
    assert box is not None and not box.any()


def test_source_losses__an_ignore_region_over_everything_leaves_nothing(model: ProbabilisticFasterRCNN) -> None:
    everywhere = torch.tensor([[-200.0, -200.0, 400.0, 400.0]])
    losses = source(model, [labels(NONE, ignore=everywhere)])
    assert all(float(loss.detach()) == 0.0 for loss in losses.values())
    grads = gradient(model, torch.stack(list(losses.values())).sum())
    grads.pop("anchors.log_wh")
    assert all(grad is not None and not grad.any() for grad in grads.values())


def test_source_rpn_losses__by_hand() -> None:
    # one anchor 30 x 24 with IoU 0.8 against the box 24 x 24: t = (-0.1, 0, log 0.8, 0); two anchors are background
    output = one_anchor_of_three(logit=math.log(3.0), delta=0.1, variance=0.25)
    losses = rpn_losses(output, [labels(BOX)], True)
    t = [-0.1, 0.0, math.log(0.8), 0.0]
    nll = sum(0.5 * (math.log(2 * math.pi) + math.log(0.25) + (v - 0.1) ** 2 / 0.25) for v in t)
    assert float(losses["rpn_box"]) == pytest.approx(nll / 3, rel=1e-5)  # over all three sampled anchors
    assert float(losses["rpn_cls"]) == pytest.approx(-(math.log(0.75) + 2 * math.log(0.25)) / 3, rel=1e-5)


def test_source_rpn_losses__without_variances_is_smooth_l1() -> None:
    losses = rpn_losses(one_anchor_of_three(0.0, 0.0, 0.0), [labels(BOX)], False)
    # beta 1/9: below it 0.5 x^2 / beta, above it x - beta / 2
    expected = 0.5 * 0.1**2 * 9 + (-math.log(0.8) - 0.5 / 9)
    assert float(losses["rpn_box"]) == pytest.approx(expected / 3, rel=1e-5)
