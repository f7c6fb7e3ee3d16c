"""The label-free monitors, by hand."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from made_detections import nothing, raw, scored

from ptedge.detector.model import ProbabilisticFasterRCNN
from ptedge.detector.roi_heads import RawDetections
from ptedge.training.losses.pseudo import PseudoRule, make_pseudo_boxes
from ptedge.training.watch.monitor import (
    agreement,
    anchor_numbers,
    detection_signals,
    pseudo_numbers,
    refound_share,
    side_ratios,
    total_variation,
)

P = torch.tensor([[0.6, 0.3, 0.1], [0.2, 0.2, 0.6]])  # background last: an object, and one that is rather none
RULE = PseudoRule(tau_cls=0.5, tau_box=0.5, focal_cls=0.5, focal_box=0.5, clamp_focal=False)
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


def test_refound_share__over_all_images_and_with_the_lower_score() -> None:
    start = [scored((0.4, 0, NEAR)), scored((0.8, 1, FAR))]
    now = [scored((0.3, 0, ALMOST)), scored((0.9, 1, FAR))]
    assert refound_share(now, start) == pytest.approx((0.3 + 0.8) / 1.2)


def test_agreement__half_an_overlap_is_not_enough() -> None:
    # IoU 1/2 exactly, and a little more
    whole, half, more = [0.0, 0.0, 10.0, 10.0], [0.0, 0.0, 10.0, 5.0], [0.0, 0.0, 10.0, 5.5]
    assert agreement([scored((0.8, 0, whole))], [scored((0.8, 0, half))]) == 0.0
    assert agreement([scored((0.8, 0, whole))], [scored((0.8, 0, more))]) == pytest.approx(1.0)


def test_agreement__the_nearest_pair_first_though_it_comes_last() -> None:
    # the first box would take the counterpart of the second, which would then have none
    far, near = [3.0, 0.0, 13.0, 10.0], [0.5, 0.0, 10.5, 10.0]
    first = scored((0.6, 0, far), (0.8, 0, near))
    assert agreement([first], [scored((0.9, 0, NEAR))]) == pytest.approx(2 * 0.8 / 2.3)


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


def test_anchor_numbers__are_shapes_in_pixels(model: ProbabilisticFasterRCNN) -> None:
    assert anchor_numbers(model) == {"anchors": [[33.94, 16.97], [24.0, 24.0], [16.97, 33.94]]}
