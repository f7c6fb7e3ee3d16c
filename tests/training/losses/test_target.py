"""L_T on a tiny detector: values by hand, who gets a gradient, and images without pseudo boxes."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from loss_inputs import (
    BOX,
    MANY,
    NEAR,
    NONE,
    TWO,
    Counts,
    box_term,
    deltas_by_hand,
    generator,
    gradient,
    images,
    log_sigmoid,
    log_softmax,
    one_anchor_of_three,
    variances_by_hand,
    varied_pseudo,
    varied_roi,
    varied_rpn,
)
from tiny_detector import tiny_config
from torch import Tensor

from ptedge.detector.config import ROI_WEIGHTS, RPN_WEIGHTS
from ptedge.detector.gaussian import encode
from ptedge.detector.model import Outputs, ProbabilisticFasterRCNN
from ptedge.detector.rpn import RPNOutput
from ptedge.training.losses.assign import BACKGROUND, AnchorSample, Samples, Sampling, match
from ptedge.training.losses.pseudo import PseudoBoxes
from ptedge.training.losses.target import (
    TargetRule,
    sample_target,
    target_losses,
    target_roi_losses,
    target_rpn_losses,
)


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


def index(*values: int) -> Tensor:
    return torch.tensor(values, dtype=torch.int64)


RULES = [TargetRule(background=False, cls_scale=0.5, box_scale=0.25), TargetRule(True, 2.0, 3.0, box_beta=0.5)]


@pytest.mark.parametrize("probabilistic", [True, False])
@pytest.mark.parametrize("rule", RULES)
def test_target_rpn_losses__against_a_slow_loop(rule: TargetRule, probabilistic: bool) -> None:
    anchors = torch.cat([NEAR, TWO + 3])  # 5 anchors
    output, taught, counts = varied_rpn(2, anchors), varied_pseudo(), Counts()
    chosen = [AnchorSample(index(1, 0, 2), index(2, 0, 1), index(4)), AnchorSample(index(4), index(0), index(0, 2))]
    losses = target_rpn_losses(output, Samples(chosen, [], []), taught, rule, probabilistic, counts)
    cls = box = 0.0
    for i, (one, own) in enumerate(zip(chosen, taught, strict=True)):
        for a, b in zip(one.positive.tolist(), one.box.tolist(), strict=True):
            background, z = float(own.probabilities[b, 2]), float(output.logits[i, a])
            cls -= float(own.class_weight[b]) * ((1 - background) * log_sigmoid(z) + background * log_sigmoid(-z))
            if background > 0.5:  # no object to find
                continue
            t = deltas_by_hand(own.boxes[b], anchors[a], RPN_WEIGHTS)
            s2 = variances_by_hand(own.variances[b], own.proposals[b], ROI_WEIGHTS, anchors[a], RPN_WEIGHTS)
            for c in range(4):
                q, q_s2 = float(output.deltas[i, a, c]), float(output.variances[i, a, c])
                beta = q_s2**rule.box_beta if probabilistic else 1.0
                box += beta * float(own.box_weight[b, c]) * box_term(t[c], s2[c], q, q_s2, probabilistic)
        if rule.background:
            cls -= sum(log_sigmoid(-float(output.logits[i, a])) for a in one.negative.tolist())
    assert float(losses["target_rpn_cls"]) == pytest.approx(rule.cls_scale * cls / 10, rel=1e-5)
    assert float(losses["target_rpn_box"]) == pytest.approx(rule.box_scale * box / 10, rel=1e-5)
    # four anchors stand for a pseudo box, three of them for an object; background is counted where it is learnt
    assert counts.seen == {"target_rpn_cls": 7 if rule.background else 4, "target_rpn_box": 3}


@pytest.mark.parametrize("probabilistic", [True, False])
@pytest.mark.parametrize("rule", RULES)
def test_target_roi_losses__against_a_slow_loop(rule: TargetRule, probabilistic: bool) -> None:
    taught, counts, output = varied_pseudo(), Counts(), varied_roi(5)
    proposals = [NEAR, torch.stack([TWO[1], TWO[0]])]
    matches = [index(2, 1, 0), index(0, BACKGROUND)]
    losses = target_roi_losses(output, Samples([], proposals, matches), taught, rule, probabilistic, counts)
    cls, box, row = 0.0, 0.0, 0
    for found, matched, own in zip(proposals, matches, taught, strict=True):
        for proposal, b in zip(found, matched.tolist(), strict=True):
            log_p = log_softmax(output.logits[row])
            if b == BACKGROUND:
                cls -= log_p[2]
            else:
                said = zip(own.probabilities[b].tolist(), log_p, strict=True)
                cls -= float(own.class_weight[b]) * sum(p * log_q for p, log_q in said)
            if b != BACKGROUND and float(own.probabilities[b, 2]) < 0.5:
                t = deltas_by_hand(own.boxes[b], proposal, ROI_WEIGHTS)
                s2 = variances_by_hand(own.variances[b], own.proposals[b], ROI_WEIGHTS, proposal, ROI_WEIGHTS)
                label = int(own.labels[b])
                for c in range(4):
                    q, q_s2 = float(output.deltas[row, label, c]), float(output.variances[row, label, c])
                    beta = q_s2**rule.box_beta if probabilistic else 1.0
                    box += beta * float(own.box_weight[b, c]) * box_term(t[c], s2[c], q, q_s2, probabilistic)
            row += 1
    assert float(losses["target_roi_cls"]) == pytest.approx(rule.cls_scale * cls / 10, rel=1e-5)
    assert float(losses["target_roi_box"]) == pytest.approx(rule.box_scale * box / 10, rel=1e-5)
    assert counts.seen == {"target_roi_cls": 5, "target_roi_box": 3}


def test_target_rpn_losses__divided_by_a_fixed_number_of_anchors_where_asked() -> None:
    output, taught, counts = varied_rpn(2, torch.cat([NEAR, TWO + 3])), varied_pseudo(), Counts()
    chosen = [AnchorSample(index(1, 0, 2), index(2, 0, 1), index(4)), AnchorSample(index(4), index(0), index(0, 2))]
    samples = Samples(chosen, [], [])
    target_rpn_losses(output, samples, taught, TargetRule(rpn_divisor=256), True, counts)
    assert counts.seen == {"target_rpn_cls": 512, "target_rpn_box": 512}  # two images, however many anchors match


def test_target_losses__are_those_of_both_stages() -> None:
    output, roi, taught = varied_rpn(1, NEAR), varied_roi(3), varied_pseudo()[:1]
    samples = Samples([AnchorSample(index(0), index(0), index(2))], [NEAR], [index(2, 1, BACKGROUND)])
    for probabilistic in (True, False):
        counts = Counts()
        losses = target_losses(output, roi, samples, taught, RULES[1], probabilistic, counts)
        parts = target_rpn_losses(output, samples, taught, RULES[1], probabilistic, lambda *_: 10.0)
        parts |= target_roi_losses(roi, samples, taught, RULES[1], probabilistic, lambda *_: 10.0)
        assert {name: float(loss) for name, loss in losses.items()} == {k: float(v) for k, v in parts.items()}
        assert counts.seen == {"target_rpn_cls": 2, "target_rpn_box": 1, "target_roi_cls": 3, "target_roi_box": 1}


def test_target_rpn_losses__gradient_of_an_anchor_in_closed_form() -> None:
    # the anchor moves the mean t of the teacher's Gaussian alone: its variance, which is told in the anchor's size
    # too, is the teacher's word and gives no gradient (otherwise anchors would grow to make it small)
    anchors = NEAR[:1].clone().requires_grad_()
    output, taught = varied_rpn(1, anchors), varied_pseudo()[0]
    samples = Samples([AnchorSample(index(0), index(0), index())], [], [])
    target_rpn_losses(output, samples, [taught], TargetRule(box_scale=0.5), True)["target_rpn_box"].backward()
    (a1, b1, a2, b2), (x1, y1, x2, y2) = NEAR[0].tolist(), taught.boxes[0].tolist()
    t = deltas_by_hand(taught.boxes[0], NEAR[0], RPN_WEIGHTS)
    # d loss / d t, the 1/2 of the cross-entropy against the 2 of the square; then the chain rule with
    # tx = (cx - (a1 + a2) / 2) / (a2 - a1) and tw = log((x2 - x1) / (a2 - a1))
    by_t = [
        0.5 * float(taught.box_weight[0, c]) * (t[c] - float(output.deltas[0, 0, c])) / float(output.variances[0, 0, c])
        for c in range(4)
    ]
    expected = []
    for sign in (1.0, -1.0):  # low sides, then high sides
        for low, high, centre, c in ((a1, a2, (x1 + x2) / 2, 0), (b1, b2, (y1 + y2) / 2, 1)):
            size = high - low
            shift = (centre - (low + high) / 2) / size**2
            expected.append(by_t[c] * (-0.5 / size + sign * shift) + by_t[c + 2] * sign / size)
    assert anchors.grad is not None
    torch.testing.assert_close(anchors.grad[0], torch.tensor(expected))


def test_target_roi_losses__background_box_teaches_no_box() -> None:
    output, boxes = varied_roi(1), pseudo(p=(0.1, 0.2, 0.7))
    losses = target_roi_losses(output, Samples([], [BOX], [index(0)]), [boxes], TargetRule(), True)
    assert float(losses["target_roi_box"]) == 0.0
    log_p = log_softmax(output.logits[0])
    expected = -0.7 * (0.1 * log_p[0] + 0.2 * log_p[1] + 0.7 * log_p[2])
    assert float(losses["target_roi_cls"]) == pytest.approx(expected, rel=1e-5)


def test_target_losses__pseudo_boxes_of_every_image_or_none() -> None:
    chosen = [AnchorSample(index(0), index(0), index())] * 2
    samples = Samples(chosen, [NEAR, NEAR], [index(0, 0, 0)] * 2)
    with pytest.raises(ValueError, match="shorter"):
        target_rpn_losses(varied_rpn(2, NEAR), samples, [pseudo()], TargetRule(), True)
    with pytest.raises(ValueError, match="shorter"):
        target_roi_losses(varied_roi(6), samples, [pseudo()], TargetRule(), True)


def test_sample_target__shares_of_positives() -> None:
    # 30 anchors and proposals on the box, 30 beside it; with background the usual shares hold, without all may be
    # positive, but background never fills up
    both = torch.cat([BOX.repeat(30, 1), BOX.repeat(30, 1) + 200])
    sampling = Sampling(rpn_count=8, rpn_positive=0.125, roi_count=20, roi_positive=0.1)
    outputs = Outputs(NONE, NONE, varied_rpn(1, both), [both])
    for background, anchors, proposals in ((True, (4, 4), (2, 18)), (False, (8, 0), (20, 0))):
        samples = sample_target(outputs, [pseudo()], TargetRule(background), sampling, generator())
        (one,), (matched,) = samples.anchors, samples.matches
        assert (len(one.positive), len(one.negative)) == anchors
        assert (int((matched == 0).sum()), int((matched == BACKGROUND).sum())) == proposals


def test_sample_target__background_begins_below_half() -> None:
    # 24 x 24: the first 14, 10 and 8 of 24 rows; IoU 0.58, 0.42 and 0.33
    found = torch.cat([BOX, BOX, BOX])
    found[:, 3] = torch.tensor([30.0, 26.0, 24.0])
    outputs = Outputs(NONE, NONE, varied_rpn(1, BOX), [found])
    samples = sample_target(outputs, [pseudo()], TargetRule(background=True), MANY, generator())
    rows = zip(samples.proposals[0][:, 3].tolist(), samples.matches[0].tolist(), strict=True)
    assert list(rows) == [(30.0, 0), (40.0, 0), (26.0, BACKGROUND), (24.0, BACKGROUND)]


@pytest.mark.parametrize(
    ("field", "value", "allowed"),
    [
        ("cls_scale", -1.0, "at least 0"),
        ("box_scale", -1.0, "at least 0"),
    ],
)
def test_target_rule__refuses_with_name_value_and_range(field: str, value: float, allowed: str) -> None:
    with pytest.raises(ValueError, match=f"^{field} is {value}; it must be {allowed}$"):
        TargetRule(**{field: value})  # type: ignore[arg-type]
