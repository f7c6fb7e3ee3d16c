"""Settings of the detector that cannot be, and input sizes that can."""

from __future__ import annotations

import pytest
from tiny_detector import tiny_config

from ptedge.detector.config import ModelConfig, check_input_size, nearest_input_size


@pytest.mark.parametrize(
    ("size", "near"),
    [((384, 640), (384, 640)), ((100, 128), (96, 128)), ((384, 647), (384, 640)), ((5, 0), (16, 16))],
)
def test_nearest_input_size__by_hand(size: tuple[int, int], near: tuple[int, int]) -> None:
    assert nearest_input_size(size) == near


def test_check_input_size__names_the_side_and_what_is_near() -> None:
    check_input_size((16, 32))
    with pytest.raises(ValueError, match="input height is 100; it must be a multiple of 16, for example 96"):
        check_input_size((100, 30))
    with pytest.raises(ValueError, match="input width is 0; it must be a multiple of 16, for example 16"):
        check_input_size((96, 0))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"backbone": "resnet18"}, "one of vgg16"),
        ({"input_size": (100, 160)}, "multiple of 16, for example 96"),
        ({"variance_floor": 0.0}, "above 0"),
        ({"anchor_sizes": ()}, "at least one"),
        ({"rpn_test_top_n": (4000, 100)}, "at most 3840"),
        ({"max_detections": 50}, "at most 40"),
        ({"score_rule": "sum"}, "class, certainty"),
        ({"sigma_rule": "sum"}, "cluster, own"),
    ],
)
def test_model_config__refuses(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tiny_config(**changes)


def test_model_config__counts_anchors() -> None:
    assert ModelConfig(anchor_sizes=(1.0, 2.0), anchor_ratios=(1.0, 2.0, 3.0)).num_anchors == 6
