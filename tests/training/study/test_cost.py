"""Counts of the tiny detector by hand, and the same on the CPU, where tensors have values."""

from __future__ import annotations

import pytest
from tiny_detector import tiny_config

from ptedge.training.study.cost import image_cost

# 64 x 96 pixels: 4 channels of 16 x 24 after the first stage, 8 of 4 x 6 after the second
FIRST, SECOND = 4 * 16 * 24, 8 * 4 * 6


def test_image_cost__operations_are_twice_the_products() -> None:
    cost = image_cost(tiny_config(), 2, 10, half=False)
    assert cost.frozen == 0
    assert cost.trained == 2 * (FIRST * 3 * 25 + SECOND * 4 * 25)
    anchors = 3
    rpn = SECOND * 8 * 9 + 4 * 6 * 8 * (anchors * (1 + 4 + 4))
    roi = 10 * (8 * 49 * 32 + 32 * 32 + 32 * (3 + 8 + 8))
    assert cost.heads == 2 * (rpn + roi)


def test_image_cost__frozen_stages_keep_nothing_and_have_no_gradient() -> None:
    whole, half_frozen = (image_cost(tiny_config(frozen_stages=n), 2, 10, half=False) for n in (0, 1))
    assert half_frozen.frozen == 2 * FIRST * 3 * 25
    assert half_frozen.frozen + half_frozen.trained == whole.trained
    assert half_frozen.kept < whole.kept and half_frozen.trained_parameters < whole.trained_parameters
    assert half_frozen.parameters == whole.parameters
    # what goes into the second stage, and into its BatchNorm and ReLU, whose output is kept for the next layer
    assert half_frozen.between == 4 * SECOND


def test_image_cost__half_precision_halves_what_is_kept_of_activations() -> None:
    whole, half = (image_cost(tiny_config(), 2, 10, half=half) for half in (False, True))
    assert half.between == whole.between / 2 and half.widest == whole.widest / 2
    assert half.kept < 0.6 * whole.kept
    assert half.trained == whole.trained


def test_image_cost__the_widest_layer_is_the_picture_and_its_first_map() -> None:
    assert image_cost(tiny_config(), 2, 10, half=False).widest == 4 * (3 * 64 * 96 + FIRST)


@pytest.mark.parametrize("probabilistic", [True, False])
def test_image_cost__variances_cost_only_where_there_are_some(probabilistic: bool) -> None:
    cost = image_cost(tiny_config(probabilistic=probabilistic), 2, 10, half=False)
    assert (cost.heads == image_cost(tiny_config(), 2, 10, half=False).heads) == probabilistic
