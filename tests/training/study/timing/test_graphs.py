"""What graphs are fed that nobody gave an image."""

from __future__ import annotations

import numpy as np

from ptedge.training.study.timing.graphs import feeds_of


def test_feeds_of__noise_in_the_range_of_its_type() -> None:
    feeds = feeds_of({"images": ((1, 3, 8, 8), np.dtype(np.uint8)), "x": (("batch", 4), np.dtype(np.float32))})
    assert feeds["images"].dtype == np.uint8 and feeds["images"].shape == (1, 3, 8, 8)
    assert int(feeds["images"].max()) > 200
    assert feeds["x"].dtype == np.float32 and feeds["x"].shape == (1, 4) and float(feeds["x"].max()) < 1
    again = feeds_of({"images": ((1, 3, 8, 8), np.dtype(np.uint8))})
    assert np.array_equal(again["images"], feeds["images"])
