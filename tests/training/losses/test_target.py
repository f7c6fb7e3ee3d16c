"""L_T on a tiny detector: values by hand, who gets a gradient, and images without pseudo boxes."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from loss_inputs import BOX, MANY, NONE, generator, gradient, images, one_anchor_of_three
from tiny_detector import tiny_config
from torch import Tensor

from ptedge.detector.gaussian import ROI_WEIGHTS, RPN_WEIGHTS, encode
from ptedge.detector.model import Outputs, ProbabilisticFasterRCNN
from ptedge.detector.rpn import RPNOutput
from ptedge.training.losses.assign import match
from ptedge.training.losses.pseudo import PseudoBoxes
from ptedge.training.losses.target import TargetRule, sample_target, target_losses, target_rpn_losses


def pseudo(boxes: Tensor = BOX, p: tuple[float, ...] = (0.1, 0.8, 0.1), **changes: Any) -> PseudoBoxes:
    n = len(boxes)
    values: dict[str, Any] = {
        "boxes": boxes,
        "labels": torch.ones(n, dtype=torch.int64),
        "probabilities": torch.tensor([p]).repeat(n, 1),
        "variances": torch.full((n, 4), 0.2),
        "proposals": boxes + torch.tensor([0.0, 0.0, 6.0, 0.0]),  # 30 x 24
        "class_weight": torch.full((n,), 0.7),
        "box_weight": torch.full((n, 4), 0.5),
        "score": torch.full((n,), 0.8),
    }
    return PseudoBoxes(**(values | changes))


def target(
    model: ProbabilisticFasterRCNN, boxes: list[PseudoBoxes], rule: TargetRule | None = None
) -> dict[str, Tensor]:
    rule = rule or TargetRule(background=False, box_scale=1.0)
    outputs = model(images(len(boxes)))
    samples = sample_target(outputs, boxes, rule, MANY, generator())
    roi = model.roi(outputs.features, samples.proposals)
    return target_losses(outputs.rpn, roi, samples, boxes, rule, model.config.probabilistic)


def rpn_losses(rpn: RPNOutput, boxes: list[PseudoBoxes], rule: TargetRule) -> dict[str, Tensor]:
    outputs = Outputs(NONE, NONE, rpn, [NONE] * len(boxes))
    return target_rpn_losses(rpn, sample_target(outputs, boxes, rule, MANY, generator()), boxes, rule, True)


def test_target_rpn_losses__by_hand() -> None:
    output = one_anchor_of_three(logit=math.log(3.0), delta=0.1, variance=0.25)
    rule = TargetRule(background=False, box_scale=0.5)
    losses = rpn_losses(output, [pseudo()], rule)
    # the teacher's proposal is the anchor, so its variance 0.2 only changes weights: by 1/100 and 1/25
    t, s2 = [-0.1, 0.0, math.log(0.8), 0.0], [0.002, 0.002, 0.008, 0.008]
    h = sum(
        0.5 * (math.log(2 * math.pi) + math.log(0.25) + (v + (m - 0.1) ** 2) / 0.25) for m, v in zip(t, s2, strict=True)
    )
    assert float(losses["target_rpn_box"].detach()) == pytest.approx(0.5 * 0.5 * h, rel=1e-5)  # weight, scale
    cls = -(0.9 * math.log(0.75) + 0.1 * math.log(0.25))  # foreground mass 0.9
    assert float(losses["target_rpn_cls"]) == pytest.approx(0.7 * cls, rel=1e-5)


def test_target_rpn_losses__background_is_an_option() -> None:
    output = one_anchor_of_three(logit=math.log(3.0), delta=0.1, variance=0.25)
    rule = TargetRule(background=True, box_scale=1.0)
    losses = rpn_losses(output, [pseudo()], rule)
    cls = -0.7 * (0.9 * math.log(0.75) + 0.1 * math.log(0.25)) - 2 * math.log(0.25)
    assert float(losses["target_rpn_cls"]) == pytest.approx(cls / 3, rel=1e-5)


def test_target_rpn_losses__background_box_teaches_no_box() -> None:
    output = one_anchor_of_three(logit=0.0, delta=0.1, variance=0.25)
    boxes = pseudo(p=(0.1, 0.2, 0.7))
    losses = rpn_losses(output, [boxes], TargetRule())
    assert float(losses["target_rpn_box"].detach()) == 0.0
    assert float(losses["target_rpn_cls"]) == pytest.approx(0.7 * math.log(2.0), rel=1e-5)


def test_target_losses__roi_by_hand(model: ProbabilisticFasterRCNN, monkeypatch: pytest.MonkeyPatch) -> None:
    proposal = BOX + torch.tensor([0.0, 0.0, 6.0, 0.0])
    monkeypatch.setattr(model, "proposals", lambda output, training: [torch.cat([proposal, BOX + 300])])
    losses = target(model, [pseudo()])
    rows = torch.cat([proposal, BOX])  # the matching proposal, and the pseudo box itself
    with torch.no_grad():
        output = model.roi(model.features(images()), [rows])
    log_p = output.logits.log_softmax(dim=-1)
    cls = -(log_p * torch.tensor([0.1, 0.8, 0.1])).sum(dim=1).mean() * 0.7
    torch.testing.assert_close(losses["target_roi_cls"].detach(), cls)
    mean = encode(BOX.expand(2, 4), rows, ROI_WEIGHTS)
    # second row: the pseudo box is 24 wide where the teacher's proposal is 30: the centre's variance grows
    s2 = torch.tensor([[0.2] * 4, [0.2 * (30 / 24) ** 2, 0.2, 0.2, 0.2]])
    q_mean, q_s2 = output.deltas[:, 1], output.variances[:, 1]  # the row of the pseudo box's class
    h = 0.5 * (math.log(2 * math.pi) + q_s2.log() + (s2 + (mean - q_mean) ** 2) / q_s2)
    torch.testing.assert_close(losses["target_roi_box"].detach(), 0.5 * h.sum() / 2)


@pytest.mark.parametrize("background", [False, True])
@pytest.mark.parametrize("probabilistic", [True, False])
def test_target_losses__no_pseudo_boxes(background: bool, probabilistic: bool) -> None:
    torch.manual_seed(0)
    model = ProbabilisticFasterRCNN(tiny_config(probabilistic=probabilistic), 2).train()
    losses = target(model, [pseudo(NONE), pseudo(NONE)], TargetRule(background=background))
    assert set(losses) == {"target_rpn_cls", "target_rpn_box", "target_roi_cls", "target_roi_box"}
    assert float(losses["target_rpn_box"].detach()) == float(losses["target_roi_box"].detach()) == 0.0
    assert (float(losses["target_rpn_cls"].detach()) > 0) == background
    assert (float(losses["target_roi_cls"].detach()) > 0) == background
    grads = gradient(model, torch.stack(list(losses.values())).sum())
    anchors = grads.pop("anchors.log_wh")
    assert anchors is None or not anchors.any()
    for name, grad in grads.items():
        assert grad is not None and torch.isfinite(grad).all(), name
        assert background or not grad.any(), name


def test_target_losses__one_image_of_two_without_boxes(model: ProbabilisticFasterRCNN) -> None:
    losses = target(model, [pseudo(NONE), pseudo()])
    grads = gradient(model, torch.stack(list(losses.values())).sum())
    for name, grad in grads.items():
        assert grad is not None and torch.isfinite(grad).all() and grad.any(), name


def test_target_losses__anchors_learn_from_the_rpn_boxes_alone(model: ProbabilisticFasterRCNN) -> None:
    for name in ("target_rpn_cls", "target_roi_cls", "target_roi_box"):
        grad = gradient(model, target(model, [pseudo()])[name])["anchors.log_wh"]
        assert grad is None or not grad.any(), name
    grad = gradient(model, target(model, [pseudo()])["target_rpn_box"])["anchors.log_wh"]
    assert grad is not None and grad.any() and torch.isfinite(grad).all()


def test_target_losses__anchors_move_toward_boxes_of_another_size(model: ProbabilisticFasterRCNN) -> None:
    wide = torch.tensor([[12.0, 10.0, 60.0, 42.0]])  # 48 x 32: larger than every anchor
    model.requires_grad_(False)
    model.anchors.log_wh.requires_grad_()
    start = model.anchors.shapes().detach()
    best = match(model.anchors(4, 6).detach(), wide, 0.7, 0.3, best_for_each=True).ge(0).nonzero().flatten() % 3
    for _ in range(25):
        model.zero_grad(set_to_none=True)
        target(model, [pseudo(wide)])["target_rpn_box"].backward()
        with torch.no_grad():
            assert model.anchors.log_wh.grad is not None
            model.anchors.log_wh -= 0.01 * model.anchors.log_wh.grad
    end = model.anchors.shapes().detach()
    truth = torch.tensor([48.0, 32.0])
    a = int(best[0])
    assert ((end[a] - truth).abs() < (start[a] - truth).abs()).all()


def test_target_losses__vanilla_detector_uses_smooth_l1() -> None:
    torch.manual_seed(0)
    model = ProbabilisticFasterRCNN(tiny_config(probabilistic=False), 2).train()
    boxes = pseudo(variances=torch.zeros(1, 4), box_weight=torch.ones(1, 4))
    losses = target(model, [boxes])
    assert all(float(loss.detach()) > 0 for loss in losses.values())
    assert encode(BOX, BOX, RPN_WEIGHTS).abs().max() == 0
