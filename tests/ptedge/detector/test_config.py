from __future__ import annotations

import pytest

from ptedge.detector.config import check_input_size, nearest_input_size


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
