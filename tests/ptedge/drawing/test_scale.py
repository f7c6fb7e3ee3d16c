from __future__ import annotations

import numpy as np
import pytest

from ptedge.detections import Detections
from ptedge.drawing.scale import at_shown_width

FOUND = Detections(
    np.array([[10.0, 20.0, 30.0, 40.0]], np.float32),
    np.array([0.5], np.float32),
    np.zeros(1, np.int64),
    np.array([[1.0, 2.0, 3.0, 4.0]], np.float32),
    np.zeros(1, np.float32),
)


@pytest.mark.parametrize(("width", "factor"), [(50, 2.0), (400, 0.5), (150, 1.0)])
def test_at_shown_width__frame_boxes_and_sigma_together(width: int, factor: float) -> None:
    image, found = at_shown_width(np.full((60, width, 3), 7, np.uint8), FOUND, 100, 200)
    assert image.shape == (60 * factor, width * factor, 3) and (image == 7).all()
    assert found.boxes.tolist() == [[10 * factor, 20 * factor, 30 * factor, 40 * factor]]
    assert found.sigma.tolist() == [[factor, 2 * factor, 3 * factor, 4 * factor]]
