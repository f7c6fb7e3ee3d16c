"""Deltas, variances and their way to pixels: by hand, by sampling, and there and back."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ptedge.calibration import MOST_OFFSET
from ptedge.detector.config import MAX_LOG_SCALE, ROI_WEIGHTS, RPN_WEIGHTS, Weights
from ptedge.detector.gaussian import (
    calibrate_sides,
    class_entropy,
    convert_variance,
    corner_sigma,
    decode,
    encode,
    logit_to_variance,
)

BOX = torch.tensor([[20.0, 30.0, 60.0, 110.0]])  # centre (40, 70), 40 x 80
REFERENCE = torch.tensor([[10.0, 50.0, 30.0, 90.0]])  # centre (20, 70), 20 x 40

boxes = st.tuples(st.floats(-200, 1000), st.floats(-200, 1000), st.floats(1, 800), st.floats(1, 800)).map(
    lambda v: torch.tensor([[v[0], v[1], v[0] + v[2], v[1] + v[3]]], dtype=torch.float64)
)


def test_logit_to_variance__by_hand() -> None:
    logits = torch.tensor([0.0, math.log(3.0), -math.log(3.0)], dtype=torch.float64)  # sigmoid 1/2, 3/4, 1/4
    expected = torch.tensor([0.2 + 0.8 * 0.5, 0.2 + 0.8 * 0.75, 0.2 + 0.8 * 0.25], dtype=torch.float64)
    torch.testing.assert_close(logit_to_variance(logits, 0.2), expected)


def test_logit_to_variance__with_another_ceiling() -> None:
    logits = torch.tensor([0.0, math.log(3.0), 1e4], dtype=torch.float64)
    expected = torch.tensor([8.1, 12.05, 16.0], dtype=torch.float64)  # 0.2 + 15.8 * (1/2, 3/4, 1)
    torch.testing.assert_close(logit_to_variance(logits, 0.2, 16.0), expected)


def test_logit_to_variance__never_below_the_floor_nor_above_one() -> None:
    variance = logit_to_variance(torch.tensor([-1e4, -100.0, 100.0, 1e4]), 1e-3)
    torch.testing.assert_close(variance, torch.tensor([1e-3, 1e-3, 1.0, 1.0]))


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        # shift (40 - 20) / 20 = 1 and 0, both sides twice as long
        (RPN_WEIGHTS, [1.0, 0.0, math.log(2.0), math.log(2.0)]),
        (ROI_WEIGHTS, [10.0, 0.0, 5 * math.log(2.0), 5 * math.log(2.0)]),
    ],
)
def test_encode__by_hand(weights: Weights, expected: list[float]) -> None:
    torch.testing.assert_close(encode(BOX, REFERENCE, weights), torch.tensor([expected]))


@pytest.mark.parametrize(
    ("weights", "deltas"),
    [(RPN_WEIGHTS, [1.0, -0.5, math.log(2.0), 0.0]), (ROI_WEIGHTS, [10.0, -5.0, 5 * math.log(2.0), 0.0])],
)
def test_decode__by_hand(weights: Weights, deltas: list[float]) -> None:
    # centre (20 + 20, 70 - 20) = (40, 50), size 40 x 40
    torch.testing.assert_close(
        decode(torch.tensor([deltas]), REFERENCE, weights), torch.tensor([[20.0, 30.0, 60.0, 70.0]])
    )


@given(box=boxes, reference=boxes, weights=st.sampled_from([RPN_WEIGHTS, ROI_WEIGHTS]))
def test_decode__inverts_encode(box: torch.Tensor, reference: torch.Tensor, weights: Weights) -> None:
    size = (box[:, 2:] - box[:, :2]) / (reference[:, 2:] - reference[:, :2])
    if bool((size.log() > MAX_LOG_SCALE).any()):  # decode does not let a box grow beyond that
        return
    torch.testing.assert_close(decode(encode(box, reference, weights), reference, weights), box, rtol=1e-9, atol=1e-6)


def test_decode__growth_is_bounded() -> None:
    deltas = torch.tensor([[0.0, 0.0, 1000.0, 1000.0]])
    box = decode(deltas, REFERENCE, RPN_WEIGHTS)
    torch.testing.assert_close(box[0, 2] - box[0, 0], torch.tensor(20.0 * 1000 / 16))
    assert torch.isfinite(box).all()


def test_encode__gradient_reaches_the_reference() -> None:
    half = torch.tensor([[10.0, 20.0]], requires_grad=True)
    centre = torch.tensor([[20.0, 70.0]])
    deltas = encode(BOX, torch.cat([centre - half, centre + half], dim=-1), RPN_WEIGHTS)
    deltas[0, 2].backward()  # tw = log(40 / (2 half)), so d tw / d half = -1 / half
    torch.testing.assert_close(half.grad, torch.tensor([[-0.1, 0.0]]))


def test_encode__no_boxes() -> None:
    assert encode(torch.zeros(0, 4), torch.zeros(0, 4), ROI_WEIGHTS).shape == (0, 4)


def test_encode__a_flat_box_stays_finite() -> None:
    flat = torch.tensor([[5.0, 5.0, 5.0, 9.0]])
    assert torch.isfinite(encode(flat, flat, ROI_WEIGHTS)).all()


def test_corner_sigma__by_hand() -> None:
    variances = torch.tensor([[0.25, 0.04, 0.01, 0.16]])
    box = torch.tensor([[0.0, 0.0, 100.0, 50.0]])
    reference = torch.tensor([[0.0, 0.0, 80.0, 60.0]])
    # std of cx: 0.5 * 80 / 10 = 4; of width: 0.1 * 100 / 5 = 2; so sqrt(16 + 4 / 4)
    # std of cy: 0.2 * 60 / 10 = 1.2; of height: 0.4 * 50 / 5 = 4; so sqrt(1.44 + 16 / 4)
    x, y = math.sqrt(17.0), math.sqrt(5.44)
    torch.testing.assert_close(corner_sigma(variances, box, reference, ROI_WEIGHTS), torch.tensor([[x, y, x, y]]))


def test_corner_sigma__against_sampling() -> None:
    generator = torch.Generator().manual_seed(3)
    variances = torch.tensor([[0.3, 0.1, 0.2, 0.05]], dtype=torch.float64)
    mean = torch.tensor([[0.4, -0.3, 0.5, -0.8]], dtype=torch.float64)
    reference = REFERENCE.double()
    noise = torch.randn(200_000, 4, generator=generator, dtype=torch.float64)
    drawn = decode(mean + noise * variances.sqrt(), reference, ROI_WEIGHTS)
    sigma = corner_sigma(variances, decode(mean, reference, ROI_WEIGHTS), reference, ROI_WEIGHTS)
    # the width is log-normal: to first order in its variance, 0.2 / 25, the two agree within a percent
    torch.testing.assert_close(sigma[0], drawn.std(dim=0), rtol=0.01, atol=0)


def test_corner_sigma__at_variance_one_three_percent_low() -> None:
    # a log-normal with log-variance v = 1 / 25 has std exp(v / 2) sqrt(exp(v) - 1) around median 1
    exact = math.exp(0.02) * math.sqrt(math.exp(0.04) - 1.0)
    box = torch.tensor([[0.0, 0.0, 1.0, 1.0]])
    sigma = corner_sigma(torch.tensor([[0.0, 0.0, 1.0, 1.0]]), box, box, ROI_WEIGHTS)[0, 0] * 2  # sigma is half of it
    assert float(sigma) / exact == pytest.approx(0.97, abs=0.003)


def test_convert_variance__roi_to_rpn_on_the_same_box() -> None:
    variance = torch.full((1, 4), 0.5)
    converted = convert_variance(variance, BOX, ROI_WEIGHTS, BOX, RPN_WEIGHTS)
    # the paper's code keeps 0.5: 100 times too much for the centre, 25 times for the size
    torch.testing.assert_close(converted, torch.tensor([[0.5 / 100, 0.5 / 100, 0.5 / 25, 0.5 / 25]]))


def test_convert_variance__to_a_reference_of_another_size() -> None:
    variance = torch.tensor([[0.2, 0.3, 0.4, 0.5]])
    converted = convert_variance(variance, BOX, ROI_WEIGHTS, REFERENCE, ROI_WEIGHTS)
    # 40 x 80 to 20 x 40: the same pixels are twice as many units, the variance four times; log sizes stay
    torch.testing.assert_close(converted, torch.tensor([[0.8, 1.2, 0.4, 0.5]]))


def test_convert_variance__keeps_the_pixels() -> None:
    variance = torch.tensor([[0.2, 0.3, 0.4, 0.5]])
    other = torch.tensor([[0.0, 0.0, 33.0, 17.0]])
    converted = convert_variance(variance, BOX, ROI_WEIGHTS, other, RPN_WEIGHTS)
    before = corner_sigma(variance, BOX, BOX, ROI_WEIGHTS)
    torch.testing.assert_close(corner_sigma(converted, BOX, other, RPN_WEIGHTS), before)


@given(first=boxes, second=boxes)
def test_convert_variance__round_trip(first: torch.Tensor, second: torch.Tensor) -> None:
    variance = torch.tensor([[0.001, 0.1, 0.5, 0.9]], dtype=torch.float64)
    there = convert_variance(variance, first, ROI_WEIGHTS, second, RPN_WEIGHTS)
    back = convert_variance(there, second, RPN_WEIGHTS, first, ROI_WEIGHTS)
    torch.testing.assert_close(back, variance, rtol=1e-9, atol=0)


def test_class_entropy__by_hand() -> None:
    p = torch.tensor([[0.5, 0.25, 0.25], [1 / 3, 1 / 3, 1 / 3], [1.0, 0.0, 0.0]])
    torch.testing.assert_close(class_entropy(p), torch.tensor([1.5 * math.log(2.0), math.log(3.0), 0.0]))


def test_class_entropy__finite_at_extreme_logits() -> None:
    logits = torch.tensor([[500.0, -500.0, 0.0]])  # the softmax is exactly (1, 0, 0)
    assert float(class_entropy(logits.softmax(dim=-1))) == 0.0


def test_class_entropy__matches_numpy() -> None:
    p = np.random.default_rng(0).dirichlet(np.ones(5), 7)
    expected = -(p * np.log(p)).sum(axis=1)
    np.testing.assert_allclose(class_entropy(torch.from_numpy(p)).numpy(), expected, rtol=1e-12)


def test_calibrate_sides__by_hand() -> None:
    sigma = torch.tensor([[1.0, 2.0, 3.0, 4.0]])
    offset, scale = torch.tensor([0.1, -0.05, 0.2, 0.0]), torch.tensor([2.0, 1.0, 0.5, 3.0])
    moved, scaled = calibrate_sides(BOX, sigma, offset, scale)  # 40 wide, 80 high
    torch.testing.assert_close(moved, torch.tensor([[20 - 4.0, 30 + 4.0, 60 - 8.0, 110.0]]))
    torch.testing.assert_close(scaled, torch.tensor([[2.0, 2.0, 1.5, 12.0]]))


@given(boxes, st.lists(st.floats(-MOST_OFFSET, MOST_OFFSET), min_size=4, max_size=4))
def test_calibrate_sides__no_offset_turns_a_box_inside_out(box: torch.Tensor, offset: list[float]) -> None:
    moved, _ = calibrate_sides(box, torch.ones_like(box), box.new_tensor(offset), box.new_ones(4))
    centre = 0.5 * (box[:, :2] + box[:, 2:])  # stays inside, and with it some of the box in any picture it was in
    assert bool((moved[:, :2] < centre).all()) and bool((moved[:, 2:] > centre).all())
