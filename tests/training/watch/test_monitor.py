"""The label-free monitors, by hand."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from ptedge.detector.model import ProbabilisticFasterRCNN
from ptedge.detector.roi_heads import RawDetections
from ptedge.frames.source import index_frames
from ptedge.training.batches.augment import AugmentConfig
from ptedge.training.losses.pseudo import PseudoRule, make_pseudo_boxes
from ptedge.training.teacher import make_teacher
from ptedge.training.watch.monitor import (
    agreement,
    anchor_numbers,
    detection_signals,
    pseudo_numbers,
    refound_share,
    side_ratios,
    total_variation,
)
from ptedge.training.watch.monitor_set import MonitorConfig, MonitorSet, moved_detections

P = torch.tensor([[0.6, 0.3, 0.1], [0.2, 0.2, 0.6]])  # background last: an object, and one that is rather none
RULE = PseudoRule(tau_cls=0.5, tau_box=0.5, focal_cls=0.5, focal_box=0.5, clamp_focal=False)


def raw(p: Tensor, labels: list[int], boxes: list[list[float]], variance: float = 0.2) -> RawDetections:
    """Detections with class probabilities ``p`` of two classes; the score is that of the label."""
    index, rows = torch.tensor(labels, dtype=torch.int64), torch.tensor(boxes).reshape(-1, 4)
    return RawDetections(
        boxes=rows,
        scores=p[torch.arange(len(p)), index],
        labels=index,
        logits=p.log(),
        variances=torch.full((len(p), 4), variance),
        proposals=rows,
        sigma=torch.tensor([1.0, 2.0, 3.0, 4.0]).repeat(len(p), 1),
        entropy=-torch.special.xlogy(p, p).sum(dim=1),
    )


def nothing() -> RawDetections:
    return raw(torch.zeros(0, 3), [], [])


def scored(*found: tuple[float, int, list[float]]) -> RawDetections:
    """Detections from (score, label, box)."""
    p = torch.tensor([[score if k == label else (1 - score) / 2 for k in range(3)] for score, label, _ in found])
    return raw(p.reshape(-1, 3), [label for _, label, _ in found], [box for _, _, box in found])


NEAR, ALMOST, FAR = [0.0, 0.0, 10.0, 10.0], [1.0, 0.0, 11.0, 10.0], [50.0, 0.0, 60.0, 10.0]


def test_pseudo_numbers__by_hand() -> None:
    box = [10.0, 20.0, 30.0, 50.0]
    detections = [raw(P, [0, 1], [box, box]), nothing()]
    numbers = pseudo_numbers(detections, [make_pseudo_boxes(d, RULE) for d in detections])
    entropy = -(P * P.log()).sum(dim=1)
    weight = (1 - entropy / math.log(3.0)).sqrt()
    box_weight = math.sqrt(math.log(5.0) / math.log(2 * math.pi * math.e))
    assert {name: float(value) for name, value in numbers.items()} == pytest.approx(
        {
            "pseudo_boxes": 1.0,  # two boxes in two images
            "pseudo_foreground": 0.5,
            "pseudo_score": 0.4,
            "class_entropy": float(entropy.mean()),
            "box_variance": 0.2,
            "class_weight": float(weight.mean()),
            "class_weight_max": float(weight.max()),
            "box_weight": box_weight,
            "box_weight_max": box_weight,
        },
        abs=1e-5,
    )


def test_pseudo_numbers__no_boxes_are_zeros() -> None:
    numbers = pseudo_numbers([nothing()], [make_pseudo_boxes(nothing(), RULE)])
    assert {float(value) for value in numbers.values()} == {0.0}


def test_detection_signals__by_hand() -> None:
    found = detection_signals([raw(P, [0, 1], [[0, 0, 10, 40], [0, 0, 5, 5]]), nothing()], 2)
    # scores 0.6 and 0.2, so weights 3/4 and 1/4; sigma 2.5 pixels on boxes of 400 and 25 square pixels
    entropy = -(P * P.log()).sum(dim=1)
    expected = {"boxes": 1.0, "objects": 0.4, "sigma": 0.75 * 2.5 / 20 + 0.25 * 2.5 / 5, "variance": 0.2}
    expected["entropy"] = float(0.75 * entropy[0] + 0.25 * entropy[1])
    assert found.pop("classes") == [0.75, 0.25]
    assert found == pytest.approx(expected, abs=1e-6)


def test_detection_signals__nothing_found() -> None:
    found = detection_signals([nothing(), nothing()], 2)
    assert (found["boxes"], found["objects"]) == (0.0, 0.0)
    assert found["entropy"] is found["sigma"] is found["variance"] is found["classes"] is None


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (scored((0.8, 0, NEAR)), scored((0.8, 0, ALMOST)), 1.0),  # IoU 9/11
        (scored((0.8, 0, NEAR)), scored((0.4, 0, ALMOST)), 2 * 0.4 / 1.2),
        (scored((0.8, 0, NEAR)), scored((0.8, 1, ALMOST)), 0.0),  # another class
        (scored((0.8, 0, NEAR)), scored((0.8, 0, FAR)), 0.0),
        (scored((0.8, 0, NEAR), (0.2, 0, FAR)), scored((0.8, 0, ALMOST)), 1.6 / 1.8),  # clutter weighs little
        (scored((0.8, 0, NEAR), (0.6, 0, ALMOST)), scored((0.8, 0, NEAR)), 1.6 / 2.2),  # one to one, the nearest first
        (scored((0.8, 0, NEAR)), nothing(), 0.0),
        (nothing(), nothing(), 1.0),
    ],
)
def test_agreement__by_hand(first: RawDetections, second: RawDetections, expected: float) -> None:
    assert agreement([first], [second]) == pytest.approx(expected)
    assert agreement([second], [first]) == pytest.approx(expected)


def test_agreement__over_images() -> None:
    first = [scored((0.8, 0, NEAR)), scored((0.8, 0, NEAR))]
    assert agreement(first, [scored((0.8, 0, ALMOST)), nothing()]) == pytest.approx(2 / 3)


def test_refound_share__does_not_fall_when_more_is_found() -> None:
    start, more = scored((0.4, 0, NEAR)), scored((0.8, 0, ALMOST), (0.9, 1, FAR))
    assert refound_share([more], [start]) == pytest.approx(1.0)
    assert refound_share([start], [more]) == pytest.approx(0.4 / 1.7)
    assert refound_share([nothing()], [start]) == 0.0
    assert refound_share([start], [nothing()]) is None


detections = st.lists(
    st.tuples(
        st.floats(0.05, 0.99),
        st.integers(0, 1),
        st.tuples(st.floats(0, 40), st.floats(0, 40), st.floats(1, 40), st.floats(1, 40)).map(
            lambda b: [b[0], b[1], b[0] + b[2], b[1] + b[3]]
        ),
    ),
    max_size=6,
)


@given(detections, detections)
def test_agreement__is_a_share(
    first: list[tuple[float, int, list[float]]], second: list[tuple[float, int, list[float]]]
) -> None:
    value = agreement([scored(*first)], [scored(*second)])
    assert 0.0 <= value <= 1.0 + 1e-6
    assert agreement([scored(*first)], [scored(*first)]) == pytest.approx(1.0)


def test_side_ratios__by_hand() -> None:
    start = [scored((0.8, 0, [0.0, 0.0, 10.0, 20.0]), (0.4, 0, [50.0, 0.0, 60.0, 10.0])), scored((0.5, 1, ALMOST))]
    # the first is a tenth narrower, the second a fifth lower; the third has another class, so it has no counterpart
    now = [scored((0.6, 0, [0.0, 0.0, 9.0, 20.0]), (0.9, 0, [50.0, 0.0, 60.0, 8.0])), scored((0.5, 0, ALMOST))]
    width, height = side_ratios(now, start)
    assert width == pytest.approx(0.9 ** (0.6 / 1.0))  # shared scores 0.6 and 0.4
    assert height == pytest.approx(0.8 ** (0.4 / 1.0))
    assert side_ratios(start, start) == pytest.approx((1.0, 1.0))
    assert side_ratios([nothing()], [scored((0.8, 0, ALMOST))]) == (None, None)


def test_total_variation__by_hand() -> None:
    assert total_variation([0.5, 0.3, 0.2], [0.2, 0.3, 0.5]) == pytest.approx(0.3)
    assert total_variation([1.0, 0.0], [0.0, 1.0]) == 1.0


def test_moved_detections__follow_the_view_and_leave_it() -> None:
    found = scored((0.9, 0, [10.0, 10.0, 20.0, 20.0]), (0.8, 1, [80.0, 10.0, 90.0, 20.0]))
    moved = moved_detections(found, torch.tensor([1.5, -3.0, 0.0]), (64, 96))
    # the second one lies at 117 to 132, outside a picture 96 wide
    torch.testing.assert_close(moved.boxes, torch.tensor([[12.0, 15.0, 27.0, 30.0]]))
    assert moved.labels.tolist() == [0]
    torch.testing.assert_close(moved.scores, torch.tensor([0.9]))


def test_anchor_numbers__are_shapes_in_pixels(model: ProbabilisticFasterRCNN) -> None:
    assert anchor_numbers(model) == {"anchors": [[33.94, 16.97], [24.0, 24.0], [16.97, 33.94]]}


def test_monitor_set__asks_the_same_frames_again(model: ProbabilisticFasterRCNN, target_frames: Path) -> None:
    def watched() -> MonitorSet:
        config = MonitorConfig(frames=3, every=1)
        frames = index_frames(str(target_frames))
        return MonitorSet(frames, (64, 96), AugmentConfig(), config, 7, torch.device("cpu"))

    first, again = watched(), watched()
    assert len(first.weak) == 3
    assert torch.equal(first.weak, again.weak) and torch.equal(first.strong, again.strong)
    teacher = make_teacher(model)
    first.remember(teacher)
    again.remember(teacher)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    signals = first.read(teacher, model)
    assert signals == again.read(teacher, model)
    assert signals["source_agreement"] == pytest.approx(1.0)
    assert signals["histogram_distance"] in (0.0, None)
    # reading leaves no trace in the student: neither statistics nor mode
    assert model.training
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, before[name])


def test_monitor_config__readings_fall_on_logged_steps() -> None:
    assert MonitorConfig(every=20).steps(20) == 20
    assert MonitorConfig(every=20).steps(15) == 30
    assert MonitorConfig(every=20).steps(50) == 50
