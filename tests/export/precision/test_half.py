"""What stays in float32 because float16 would overflow."""

from __future__ import annotations

import numpy as np
import onnx
from small_graph import small_graph

from ptedge.export.precision.half import LARGEST, largest_values, to_float16


def test_to_float16__a_large_weight_stays_in_float32() -> None:
    proto = onnx.load_from_string(small_graph(weight=2 * LARGEST))
    half, converted, kept = to_float16(proto, {})
    assert (converted, kept) == (["/c/Conv"], ["/a/Conv", "/b/Conv"])
    assert np.isfinite(np.concatenate([onnx.numpy_helper.to_array(t).ravel() for t in half.graph.initializer])).all()
    onnx.checker.check_model(half, full_check=True)


def test_to_float16__a_large_activation_stays_in_float32() -> None:
    proto = onnx.load_from_string(small_graph(weight=2000))
    images = np.full((1, 3, 16, 16), 255, np.uint8)
    largest = largest_values(proto, ["a", "b", "c"], images)
    np.testing.assert_allclose([largest[name] for name in "abc"], [255 * 3, 255 * 9 * 2000, 255 * 27 * 2000])
    half, converted, kept = to_float16(proto, largest)
    assert (converted, kept) == ([], ["/a/Conv", "/b/Conv", "/c/Conv"])
    assert half.graph.node == proto.graph.node
