"""The layer that is to blame is found, in front of a selection and behind it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from ptedge.artifacts.bundle import open_bundle
from ptedge.export.made_images import make_scenes
from ptedge.export.verify.by_layer import compare_layers, graph_with_outputs, relative_error, run_cpu


def small_graph(weights: tuple[float, float] = (2.0, 3.0), bias: float = 0.0) -> bytes:
    """x [6] -> times 2 ("a") -> the best 3 ("top") -> times 3 ("b") -> plus bias ("c")."""
    nodes = [
        helper.make_node("Mul", ["x", "w0"], ["a"], name="first"),
        helper.make_node("TopK", ["a", "k"], ["top", "index"], name="select"),
        helper.make_node("Mul", ["top", "w1"], ["b"], name="second"),
        helper.make_node("Add", ["b", "bias"], ["c"], name="third"),
    ]
    constants = [
        numpy_helper.from_array(np.array([weights[0]], np.float32), "w0"),
        numpy_helper.from_array(np.array([weights[1]], np.float32), "w1"),
        numpy_helper.from_array(np.array([bias], np.float32), "bias"),
        numpy_helper.from_array(np.array([3], np.int64), "k"),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [6])
    c = helper.make_tensor_value_info("c", TensorProto.FLOAT, [3])
    graph = helper.make_graph(nodes, "small", [x], [c], constants)
    return bytes(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
    )


FEEDS = {"x": np.array([1, 2, 3, 4, 5, 6], np.float32)}


def test_graph_with_outputs__returns_what_is_asked_for() -> None:
    model = graph_with_outputs(small_graph(), ["a", "b"])
    found = run_cpu(model, FEEDS)
    assert found["a"].tolist() == [2, 4, 6, 8, 10, 12]
    assert found["b"].tolist() == [36, 30, 24]
    assert [node.name for node in onnx.load_from_string(model).graph.node] == ["first", "select", "second"]


def test_graph_with_outputs__a_tensor_handed_over_replaces_what_made_it() -> None:
    top = np.array([1, 1, 2], np.float32)
    model = graph_with_outputs(small_graph(), ["b"], {"top": top})
    graph = onnx.load_from_string(model).graph
    assert [node.name for node in graph.node] == ["second"]
    assert run_cpu(model, {"top": top})["b"].tolist() == [3, 3, 6]


def test_compare_layers__equal_graphs() -> None:
    found = compare_layers(small_graph(), small_graph(), FEEDS, 1e-3, run_cpu)
    assert (found.departure, found.skipped, found.largest) == (None, 0, 0.0)
    assert found.compared == 3  # a, b, c; the selection itself is handed over
    assert "no single layer departs" in str(found)


@pytest.mark.parametrize(
    ("suspect", "layer", "error"),
    [
        (small_graph((2.2, 3.0)), "first", 0.1),
        (small_graph((2.0, 3.3)), "second", 0.1),
        (small_graph(bias=float("nan")), "third", float("inf")),
    ],
)
def test_compare_layers__names_the_first(suspect: bytes, layer: str, error: float) -> None:
    found = compare_layers(small_graph(), suspect, FEEDS, 1e-3, run_cpu).departure
    assert found is not None
    assert (found.layer, found.error) == (layer, pytest.approx(error, rel=1e-4))
    assert layer in str(found)


def test_compare_layers__another_order_of_equals_is_no_departure() -> None:
    """Two rows almost equal come in the other order in the suspect; behind the selection nothing differs for that."""
    feeds = {"x": np.array([1, 2, 3, 4, 6, 6.0001], np.float32)}

    def swapping(model: bytes, inputs: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        return run_cpu(model, {**inputs, "x": np.array([1, 2, 3, 4, 6.0001, 6], np.float32)})

    assert compare_layers(small_graph(), small_graph(), feeds, 1e-3, swapping).departure is None


def test_compare_layers__without_handing_over_it_stops_at_the_selection() -> None:
    found = compare_layers(small_graph(), small_graph((2.0, 3.3)), FEEDS, 1e-3, run_cpu, hand_over=False)
    assert (found.departure, found.compared, found.skipped) == (None, 1, 3)  # the selected values as well
    assert "3 behind a selection cannot be compared by position" in str(found)


def test_compare_layers__graphs_without_common_names() -> None:
    proto = onnx.load_from_string(small_graph())
    for node in proto.graph.node:
        node.output[:] = [f"other_{name}" for name in node.output]
        node.input[:] = [f"other_{name}" if name in ("a", "top", "b") else name for name in node.input]
    proto.graph.output[0].name = "other_c"
    found = compare_layers(small_graph(), proto.SerializeToString(), FEEDS, 1e-3, run_cpu)
    assert found.compared == 0
    assert "no layer has the same name" in str(found)


@pytest.mark.parametrize("pattern", ["blocks.3.1/", "/conv/Conv", "fc1", "predictor"])
def test_compare_layers__a_changed_weight_of_the_detector(bundle: Path, pattern: str) -> None:
    model = open_bundle(bundle).model_path.read_bytes()
    proto = onnx.load_from_string(model)
    constants = {tensor.name: tensor for tensor in proto.graph.initializer}
    node = [n for n in proto.graph.node if pattern in n.name and n.op_type in ("Conv", "Gemm", "MatMul")][-1]
    tensor = constants[next(name for name in node.input if name in constants)]
    array = numpy_helper.to_array(tensor).copy()
    array[0] += np.float32(np.abs(array).max())  # weights of one output channel, or of one input
    tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    images = make_scenes((96, 128))["noise"][:1]
    found = compare_layers(model, proto.SerializeToString(), {"images": images}, 1e-3, run_cpu).departure
    assert found is not None
    assert found.layer == node.name


def test_relative_error__by_hand() -> None:
    assert relative_error(np.array([3.0, 4.0]), np.array([3.0, 4.0])) == 0
    assert relative_error(np.array([3.3, 4.4]), np.array([3.0, 4.0])) == pytest.approx(0.1)
    assert relative_error(np.array([np.nan]), np.array([1.0])) == float("inf")
    assert relative_error(np.zeros(3), np.zeros(3)) == 0
    assert relative_error(np.zeros(2), np.zeros(3)) == float("inf")
    assert relative_error(np.zeros(0), np.zeros(0)) == 0
