"""Pseudo boxes by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from ptedge.detector.config import ROI_WEIGHTS
from ptedge.detector.gaussian import decode, encode
from ptedge.detector.roi_heads import RawDetections
from ptedge.training.losses.pseudo import PseudoBoxes, PseudoRule, cut_at, make_pseudo_boxes

P = torch.tensor([[0.6, 0.3, 0.1], [0.2, 0.2, 0.6]])  # background last: an object, and one that is rather none
RULE: dict[str, Any] = {
    "tau_cls": 0.5,
    "tau_box": 0.5,
    "focal_cls": 0.5,
    "focal_box": 0.5,
    "clamp_focal": False,
    "score_threshold": 0.0,
    "hard_labels": False,
}


def raw(p: Tensor, labels: list[int], boxes: Tensor | None = None, variance: float = 0.2) -> RawDetections:
    """Detections with class probabilities ``p``; the score is the probability of the label."""
    count = len(p)
    if boxes is None:
        boxes = torch.tensor([[10.0, 20.0, 30.0, 50.0]]).repeat(count, 1)
    index = torch.tensor(labels, dtype=torch.int64)
    return RawDetections(
        boxes=boxes,
        scores=p[torch.arange(count), index],
        labels=index,
        logits=p.log(),
        variances=torch.full((count, 4), variance),
        proposals=boxes + torch.tensor([2.0, 2.0, 4.0, 4.0]),
        sigma=torch.ones(count, 4),
        entropy=-(p * p.log()).sum(dim=1),
    )


def nothing() -> RawDetections:
    return raw(torch.zeros(0, 3), [], torch.zeros(0, 4))


def test_make_pseudo_boxes__sharpened_by_hand() -> None:
    pseudo = make_pseudo_boxes(raw(P, [0, 1]), PseudoRule(**RULE))
    # squares over their sum: 0.36, 0.09, 0.01 and 0.04, 0.04, 0.36
    expected = torch.tensor([[36 / 46, 9 / 46, 1 / 46], [4 / 44, 4 / 44, 36 / 44]])
    torch.testing.assert_close(pseudo.probabilities, expected)
    torch.testing.assert_close(pseudo.variances, torch.full((2, 4), 0.1))
    assert pseudo.labels.tolist() == [0, 1]
    assert pseudo.foreground.tolist() == [True, False]
    torch.testing.assert_close(pseudo.score, torch.tensor([0.6, 0.2]))


def test_make_pseudo_boxes__weights_come_from_before_sharpening() -> None:
    pseudo = make_pseudo_boxes(raw(P, [0, 1]), PseudoRule(**RULE))
    entropy = -(P * P.log()).sum(dim=1)
    torch.testing.assert_close(pseudo.class_weight, (1 - entropy / math.log(3.0)).sqrt())
    weight = math.sqrt(math.log(5.0) / math.log(2 * math.pi * math.e))  # variance 1/5
    torch.testing.assert_close(pseudo.box_weight, torch.full((2, 4), weight))


def test_make_pseudo_boxes__clamped_weights() -> None:
    detections = raw(P, [0, 1], variance=0.001)
    assert float(make_pseudo_boxes(detections, PseudoRule(**RULE)).box_weight.max()) > 1.5
    clamped = make_pseudo_boxes(detections, PseudoRule(**{**RULE, "clamp_focal": True}))
    torch.testing.assert_close(clamped.box_weight, torch.ones(2, 4))


def test_make_pseudo_boxes__hard_labels() -> None:
    pseudo = make_pseudo_boxes(raw(P, [0, 1]), PseudoRule(**{**RULE, "hard_labels": True}))
    assert pseudo.probabilities.tolist() == [[1, 0, 0], [0, 1, 0]]
    assert not pseudo.variances.any()
    assert pseudo.foreground.tolist() == [True, True]


def test_make_pseudo_boxes__score_threshold() -> None:
    pseudo = make_pseudo_boxes(raw(P, [0, 1]), PseudoRule(**{**RULE, "score_threshold": 0.5}))
    assert pseudo.labels.tolist() == [0]
    assert all(len(value) == 1 for value in (pseudo.boxes, pseudo.variances, pseudo.class_weight, pseudo.box_weight))


def test_make_pseudo_boxes__at_the_threshold_is_not_above_it() -> None:
    p = torch.tensor([[0.5, 0.25, 0.25], [0.75, 0.125, 0.125]])
    pseudo = make_pseudo_boxes(raw(p, [0, 0]), PseudoRule(**{**RULE, "score_threshold": 0.5}))
    assert pseudo.score.tolist() == [0.75]


def test_make_pseudo_boxes__without_variances_every_box_counts_alike() -> None:
    detections = raw(P, [0, 1], variance=0.0)
    pseudo = make_pseudo_boxes(detections, PseudoRule(**RULE), probabilistic=False)
    torch.testing.assert_close(pseudo.box_weight, torch.ones(2, 4))


def test_make_pseudo_boxes__none() -> None:
    pseudo = make_pseudo_boxes(nothing(), PseudoRule(**RULE))
    assert pseudo.boxes.shape == pseudo.variances.shape == (0, 4)
    assert pseudo.probabilities.shape == (0, 3)
    assert pseudo.foreground.tolist() == []
    assert pseudo.moved(torch.tensor([0.5, 1.0, 2.0])).boxes.shape == (0, 4)


def test_moved__by_hand() -> None:
    pseudo = make_pseudo_boxes(raw(P, [0, 1]), PseudoRule(**RULE))
    moved = pseudo.moved(torch.tensor([0.5, 24.0, 16.0]))
    torch.testing.assert_close(moved.boxes[0], torch.tensor([29.0, 26.0, 39.0, 41.0]))
    torch.testing.assert_close(moved.proposals[0], torch.tensor([30.0, 27.0, 41.0, 43.0]))
    assert moved.variances is pseudo.variances and moved.class_weight is pseudo.class_weight
    # deltas relative to the proposal do not change, which is why variances need not
    torch.testing.assert_close(
        encode(moved.boxes, moved.proposals, ROI_WEIGHTS), encode(pseudo.boxes, pseudo.proposals, ROI_WEIGHTS)
    )
    deltas = encode(pseudo.boxes, pseudo.proposals, ROI_WEIGHTS)
    torch.testing.assert_close(decode(deltas, moved.proposals, ROI_WEIGHTS), moved.boxes)


def varied() -> PseudoBoxes:
    """Three boxes, the second beyond the right border of 64 x 96; no field holds what another holds."""
    return PseudoBoxes(
        boxes=torch.tensor([[10.0, 10.0, 30.0, 20.0], [100.0, 0.0, 130.0, 10.0], [1.0, 2.0, 3.0, 4.0]]),
        labels=torch.tensor([0, 1, 2]),
        probabilities=torch.tensor([[0.5, 0.4, 0.1], [0.2, 0.7, 0.1], [0.3, 0.3, 0.4]]),
        variances=torch.arange(12.0).reshape(3, 4) / 20,
        proposals=torch.arange(12.0).reshape(3, 4) + 50,
        class_weight=torch.tensor([0.1, 0.2, 0.3]),
        box_weight=torch.arange(12.0).reshape(3, 4) / 100,
        score=torch.tensor([0.9, 0.8, 0.7]),
    )


def test_moved__and_clipped_keep_what_else_a_box_has() -> None:
    whole = varied()
    moved, cut = whole.moved(torch.tensor([0.5, 24.0, 16.0])), whole.clipped(torch.tensor([0.0, 0.0, 96.0, 64.0]))
    rest = {name: value for name, value in vars(whole).items() if name != "boxes"}
    for name, value in rest.items():
        assert torch.equal(getattr(cut, name), value[[0, 2]]), name
        if name != "proposals":
            assert torch.equal(getattr(moved, name), value), name


def test_pseudo_boxes_clipped__more_than_half_must_be_left() -> None:
    # 20 x 10 each: 8, 10, 12 of 20 columns inside, then 4, 5, 6 of 10 rows
    over_left = [[x - 20.0, 10.0, float(x), 20.0] for x in (8, 10, 12)]
    over_bottom = [[10.0, 64.0 - y, 30.0, 74.0 - y] for y in (4, 5, 6)]
    boxes = torch.tensor([*over_left, *over_bottom])
    whole = make_pseudo_boxes(raw(P[:1].repeat(6, 1), [0, 1, 0, 1, 0, 1], boxes), PseudoRule(**RULE))
    cut = whole.clipped(torch.tensor([0.0, 0.0, 96.0, 64.0]))
    assert cut.boxes.tolist() == [[0.0, 10.0, 12.0, 20.0], [10.0, 58.0, 30.0, 64.0]]
    assert cut.labels.tolist() == [0, 1]


def test_pseudo_boxes_clipped__cut_at_the_border_and_dropped_when_mostly_outside() -> None:
    boxes = torch.tensor([[10.0, 10.0, 30.0, 20.0], [-8.0, 10.0, 12.0, 20.0], [90.0, 0.0, 130.0, 10.0]])
    count = len(boxes)
    whole = PseudoBoxes(
        boxes=boxes,
        labels=torch.arange(count),
        probabilities=torch.full((count, 2), 0.5),
        variances=torch.full((count, 4), 0.1),
        proposals=boxes.clone(),
        class_weight=torch.ones(count),
        box_weight=torch.ones(count, 4),
        score=torch.tensor([0.9, 0.8, 0.7]),
    )
    cut = whole.clipped(torch.tensor([0.0, 0.0, 96.0, 64.0]))
    # the second keeps 12 of 20 columns, the third 6 of 40; the proposal, which the variance refers to, stays whole
    assert cut.boxes.tolist() == [[10.0, 10.0, 30.0, 20.0], [0.0, 10.0, 12.0, 20.0]]
    assert cut.proposals.tolist() == boxes[:2].tolist()
    assert cut.labels.tolist() == [0, 1]
    assert len(cut.variances) == len(cut.box_weight) == len(cut.class_weight) == len(cut.score) == 2


def test_cut_at__a_box_over_the_pictures_edge_ends_there_and_not_at_the_inputs() -> None:
    picture = torch.tensor([4.0, 8.0, 60.0, 50.0])  # a zoomed picture on a canvas of 64 x 64
    boxes = torch.tensor([[0.0, 0.0, 10.0, 20.0], [50.0, 40.0, 70.0, 63.0], [10.0, 10.0, 20.0, 20.0]])
    assert cut_at(boxes, picture).tolist() == [
        [4.0, 8.0, 10.0, 20.0],
        [50.0, 40.0, 60.0, 50.0],
        [10.0, 10.0, 20.0, 20.0],
    ]


def test_make_pseudo_boxes__background_kept_or_dropped() -> None:
    p = torch.tensor([[0.2, 0.1, 0.7], [0.6, 0.1, 0.3]])
    boxes = torch.tensor([[0.0, 0.0, 9.0, 9.0], [9.0, 9.0, 19.0, 19.0]])
    soft = make_pseudo_boxes(raw(p, [0, 0], boxes), PseudoRule(**RULE))
    drop = make_pseudo_boxes(raw(p, [0, 0], boxes), PseudoRule(**{**RULE, "background": "drop"}))
    assert len(soft.boxes) == 2 and drop.boxes.tolist() == [[9.0, 9.0, 19.0, 19.0]]


@pytest.mark.parametrize(
    ("field", "value", "allowed"),
    [
        ("tau_cls", 0.0, "above 0"),
        ("tau_box", 0.0, "above 0"),
        ("focal_cls", -0.5, "at least 0"),
        ("focal_box", -0.5, "at least 0"),
        ("score_threshold", 1.5, "at least 0 and at most 1"),
    ],
)
def test_pseudo_rule__refuses_with_name_value_and_range(field: str, value: float, allowed: str) -> None:
    with pytest.raises(ValueError, match=f"^{field} is {value}; it must be {allowed}$"):
        PseudoRule(**{field: value})  # type: ignore[arg-type]
