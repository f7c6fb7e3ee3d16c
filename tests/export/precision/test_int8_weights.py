"""Weights as int8 in the file, and as the pair that TensorRT 8 reads: the same numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from ptedge.export.onnx_run import open_graph
from ptedge.export.precision.int8_weights import pair_weights, store_int8
from ptedge.export.precision.quantize import only_these
from ptedge.graph_contract import IMAGES


def answers(proto: Any) -> list[np.ndarray[Any, Any]]:
    onnx.checker.check_model(proto, full_check=True)
    session = open_graph(proto.SerializeToString())
    images = np.random.default_rng(2).integers(0, 256, session.get_inputs()[0].shape, dtype=np.uint8)
    found: list[np.ndarray[Any, Any]] = session.run(None, {IMAGES: images})
    return found


def one_layer(scale: np.ndarray[Any, Any], axis: int) -> Any:
    """y = x + Dequantize(Quantize(w)), w [2, 3]."""
    weight = np.array([[0.1, -0.26, 9.0], [0.25, 0.35, -9.0]], np.float32)
    zero = np.zeros(scale.shape, np.int8)
    nodes = [
        onnx.helper.make_node("QuantizeLinear", ["w", "s", "z"], ["q"], name="q", axis=axis),
        onnx.helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"], name="d", axis=axis),
        onnx.helper.make_node("Add", ["x", "d"], ["y"], name="add"),
    ]
    values = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2, 3]) for name in "xy"]
    constants = [numpy_helper.from_array(array, name) for name, array in (("w", weight), ("s", scale), ("z", zero))]
    graph = onnx.helper.make_graph(nodes, "g", values[:1], values[1:], constants)
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)


def test_store_int8__rounds_to_even_and_saturates() -> None:
    # 0.1 / 0.1, -2.6, 90; 2.5 -> 2 and 3.5 -> 4; -90. In float32 0.25 / 0.1 is 2.5 and 0.35 / 0.1 is 3.5
    stored = store_int8(one_layer(np.array(0.1, np.float32), 0))
    assert [node.op_type for node in stored.graph.node] == ["DequantizeLinear", "Add"]
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in stored.graph.initializer}
    assert set(constants) == {"q", "s", "z"} and constants["q"].dtype == np.int8
    assert constants["q"].tolist() == [[1, -3, 90], [2, 4, -90]]
    by_row = store_int8(one_layer(np.array([0.1, 0.05], np.float32), 0))
    by_column = store_int8(one_layer(np.array([0.1, 0.1, 0.01], np.float32), 1))
    rounded = [
        numpy_helper.to_array(t).tolist() for p in (by_row, by_column) for t in p.graph.initializer if t.name == "q"
    ]
    assert rounded == [[[1, -3, 90], [5, 7, -128]], [[1, -3, 127], [2, 4, -128]]]


def test_store_int8__and_back_are_the_same_graph(graphs: tuple[Any, Any]) -> None:
    proto, quantised = graphs
    every = only_these(proto, quantised, ["/a/Conv", "/b/Conv", "/c/Conv"])
    stored = store_int8(every)
    paired = pair_weights(stored)
    kinds = [[node.op_type for node in graph.graph.node] for graph in (every, stored, paired)]
    assert [k.count("QuantizeLinear") for k in kinds] == [6, 3, 6]
    assert [k.count("DequantizeLinear") for k in kinds] == [6, 6, 6]
    int8 = [t for t in stored.graph.initializer if t.data_type == onnx.TensorProto.INT8 and len(t.dims) == 4]
    assert [list(t.dims) for t in int8] == [[3, 3, 1, 1]] * 3
    assert not [t for t in paired.graph.initializer if t.data_type == onnx.TensorProto.INT8 and len(t.dims) == 4]
    wanted = answers(every)
    for other in (stored, paired):
        assert all(np.array_equal(a, b) for a, b in zip(answers(other), wanted, strict=True))


def test_store_int8__a_graph_without_int8_stays(graphs: tuple[Any, Any]) -> None:
    proto = graphs[0]
    assert store_int8(proto).graph.node == proto.graph.node
    assert pair_weights(proto).graph.node == proto.graph.node
