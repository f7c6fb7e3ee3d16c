"""Frames for the quantiser, and a graph in which some layers stay as they were."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx

from ptedge.export.precision.layers import find_layers
from ptedge.export.precision.quantize import FrameReader, only_these

NAMES = ["/a/Conv", "/b/Conv", "/c/Conv"]


def test_frame_reader__gives_whole_batches() -> None:
    frames = np.arange(5, dtype=np.uint8).reshape(5, 1, 1, 1)
    reader = FrameReader(frames, 2)
    assert len(reader) == 3
    batches = [reader.get_next() for _ in range(4)]
    assert [None if b is None else b["images"].ravel().tolist() for b in batches] == [[0, 1], [2, 3], [4, 4], None]
    reader.set_range(1, 2)
    assert [reader.get_next() is None for _ in range(2)] == [False, True]


def test_only_these__the_others_are_as_they_were(graphs: tuple[Any, Any]) -> None:
    proto, quantised = graphs
    assert only_these(proto, quantised, []).graph.node == proto.graph.node
    assert {t.name for t in only_these(proto, quantised, []).graph.initializer} == {
        t.name for t in proto.graph.initializer
    }
    one = only_these(proto, quantised, ["/b/Conv"])
    onnx.checker.check_model(one, full_check=True)
    assert [node.op_type for node in one.graph.node if node.name not in {n.name for n in proto.graph.node}] == [
        *["QuantizeLinear", "DequantizeLinear"] * 2  # of its input and of its weights
    ]
    assert find_layers(one).weighted == tuple(NAMES)
    rounded = {node.name for node in one.graph.node if any("Dequantize" in name for name in node.input)}
    assert rounded == {"/b/Conv"}
