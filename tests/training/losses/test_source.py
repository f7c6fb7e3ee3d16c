"""L_S on a tiny detector: values by hand, who gets a gradient, and images without anything."""

from __future__ import annotations

import math

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
    varied_roi,
    varied_rpn,
)
from tiny_detector import HEIGHT, WIDTH
from torch import Tensor

from ptedge.detector.config import ROI_WEIGHTS, RPN_WEIGHTS
from ptedge.detector.model import Outputs, ProbabilisticFasterRCNN
from ptedge.detector.rpn import RPNOutput
from ptedge.training.losses.assign import BACKGROUND, AnchorSample, Samples
from ptedge.training.losses.source import (
    ImageLabels,
    sample_source,
    source_losses,
    source_roi_losses,
    source_rpn_losses,
)


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


def rows(*index: int) -> Tensor:
    return torch.tensor(index, dtype=torch.int64)


@pytest.mark.parametrize(("probabilistic", "beta"), [(True, 0.0), (True, 0.5), (False, 0.0)])
def test_source_rpn_losses__against_a_slow_loop(probabilistic: bool, beta: float) -> None:
    anchors = torch.cat([NEAR, TWO + 3])  # 5 anchors
    output, counts = varied_rpn(2, anchors), Counts()
    known = [ImageLabels(TWO, rows(1, 0), NONE), ImageLabels(TWO[1:], rows(0), NONE)]
    chosen = [AnchorSample(rows(1, 0), rows(1, 0), rows(2)), AnchorSample(rows(4), rows(0), rows(0, 2))]
    losses = source_rpn_losses(output, Samples(chosen, [], []), known, probabilistic, counts, beta)
    cls = box = 0.0
    for i, (one, own) in enumerate(zip(chosen, known, strict=True)):
        for anchor, label in zip(one.positive.tolist(), one.box.tolist(), strict=True):
            cls -= log_sigmoid(float(output.logits[i, anchor]))
            t = deltas_by_hand(own.boxes[label], anchors[anchor], RPN_WEIGHTS)
            said = zip(t, output.deltas[i, anchor].tolist(), output.variances[i, anchor].tolist(), strict=True)
            box += sum(s2**beta * box_term(value, 0.0, mean, s2, probabilistic) for value, mean, s2 in said)
        cls -= sum(log_sigmoid(-float(output.logits[i, anchor])) for anchor in one.negative.tolist())
    assert float(losses["rpn_cls"]) == pytest.approx(cls / 10, rel=1e-5)
    assert float(losses["rpn_box"]) == pytest.approx(box / 10, rel=1e-5)
    assert counts.seen == {"rpn": 6}  # three anchors of each image; both sums go over all of them


@pytest.mark.parametrize(("probabilistic", "beta"), [(True, 0.0), (True, 0.5), (False, 0.0)])
def test_source_roi_losses__against_a_slow_loop(probabilistic: bool, beta: float) -> None:
    # labels of both classes, the first of class 1: whose row counts, and in which order, shows
    known = [ImageLabels(TWO, rows(1, 0), NONE), ImageLabels(NONE, rows(), NONE), ImageLabels(TWO[1:], rows(0), NONE)]
    proposals = [NEAR, NEAR[2:], NEAR[1:]]
    matches = [rows(0, 1, BACKGROUND), rows(BACKGROUND), rows(0, BACKGROUND)]
    output, counts = varied_roi(6), Counts()
    losses = source_roi_losses(output, Samples([], proposals, matches), known, probabilistic, counts, beta)
    cls, box, row = 0.0, 0.0, 0
    for found, matched, own in zip(proposals, matches, known, strict=True):
        for proposal, index in zip(found, matched.tolist(), strict=True):
            label = int(own.labels[index]) if index >= 0 else 2
            cls -= log_softmax(output.logits[row])[label]
            if label < 2:
                t = deltas_by_hand(own.boxes[index], proposal, ROI_WEIGHTS)
                said = zip(t, output.deltas[row, label].tolist(), output.variances[row, label].tolist(), strict=True)
                box += sum(s2**beta * box_term(value, 0.0, mean, s2, probabilistic) for value, mean, s2 in said)
            row += 1
    assert float(losses["roi_cls"]) == pytest.approx(cls / 10, rel=1e-5)
    assert float(losses["roi_box"]) == pytest.approx(box / 10, rel=1e-5)
    assert counts.seen == {"roi": 6}


def test_source_losses__half_precision_costs_them_nothing_on_the_same_samples(model: ProbabilisticFasterRCNN) -> None:
    pictures = torch.randint(0, 256, (2, 3, HEIGHT, WIDTH), generator=generator()).float()
    known = [ImageLabels(TWO, rows(1, 0), NONE)] * 2
    with torch.no_grad():
        outputs = model(pictures)
        samples = sample_source(outputs, known, MANY, generator())
        full = source_losses(outputs.rpn, model.roi(outputs.features, samples.proposals), samples, known, True)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            half = model(pictures)
            losses = source_losses(half.rpn, model.roi(half.features, samples.proposals), samples, known, True)
    # the steps differ where autocast is switched on because near-ties among proposals draw another sample
    assert {k: float(v) for k, v in losses.items()} == pytest.approx({k: float(v) for k, v in full.items()}, rel=0.02)


def test_source_losses__are_those_of_both_stages() -> None:
    output, roi, known = varied_rpn(1, NEAR), varied_roi(3), [ImageLabels(TWO, rows(1, 0), NONE)]
    samples = Samples([AnchorSample(rows(0), rows(0), rows(2))], [NEAR], [rows(0, 1, BACKGROUND)])
    losses, counts = {}, Counts()
    for probabilistic in (True, False):
        losses = source_losses(output, roi, samples, known, probabilistic, counts)
        parts = source_rpn_losses(output, samples, known, probabilistic, lambda *_: 10.0)
        parts |= source_roi_losses(roi, samples, known, probabilistic, lambda *_: 10.0)
        assert {name: float(loss) for name, loss in losses.items()} == {k: float(v) for k, v in parts.items()}
    assert counts.seen == {"rpn": 2, "roi": 3}
    assert list(losses) == ["rpn_cls", "rpn_box", "roi_cls", "roi_box"]


def test_sample_source__an_ignore_region_belongs_to_its_image() -> None:
    output = Outputs(NONE, NONE, varied_rpn(2, NEAR), [NEAR[2:], NEAR[2:]])
    known = [labels(NONE), labels(NONE, ignore=NEAR[2:])]
    samples = sample_source(output, known, MANY, generator())
    assert [one.negative.tolist() for one in samples.anchors] == [[0, 1, 2], [0, 1]]
    assert [len(one) for one in samples.proposals] == [1, 0]
