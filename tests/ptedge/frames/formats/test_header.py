"""Turning pictures upright: by hand for all eight orientations."""

from __future__ import annotations

import io

import numpy as np
import pytest

from ptedge.frames.formats.header import Header, HeaderError, take, turned, unpack

# the stored picture [[1, 2, 3], [4, 5, 6]] as it has to be shown, by EXIF orientation
UPRIGHT = {
    1: [[1, 2, 3], [4, 5, 6]],
    2: [[3, 2, 1], [6, 5, 4]],
    3: [[6, 5, 4], [3, 2, 1]],
    4: [[4, 5, 6], [1, 2, 3]],
    5: [[1, 4], [2, 5], [3, 6]],
    6: [[4, 1], [5, 2], [6, 3]],
    7: [[6, 3], [5, 2], [4, 1]],
    8: [[3, 6], [2, 5], [1, 4]],
}


@pytest.mark.parametrize("orientation", UPRIGHT)
def test_turned(orientation: int) -> None:
    image = turned(np.array([[1, 2, 3], [4, 5, 6]], np.uint8), orientation)
    assert image.tolist() == UPRIGHT[orientation] and image.flags["C_CONTIGUOUS"]
    assert Header("x", 3, 2, orientation).size == image.shape[::-1]


def test_take__short_data_are_an_error() -> None:
    assert take(io.BytesIO(b"abc"), 2) == b"ab"
    for call in (lambda: take(io.BytesIO(b"abc"), 4), lambda: unpack(io.BytesIO(b"abc"), ">I")):
        with pytest.raises(HeaderError):
            call()
