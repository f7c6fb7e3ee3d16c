"""Graphs cut out of a graph: worked out by hand on three layers and a selection."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from small_graph import selecting_graph

from ptedge.export.onnx_graph import OnnxGraph, graph_with_outputs
from ptedge.export.onnx_run import run_as_written

FEEDS = {"x": np.array([1, 2, 3, 4, 5, 6], np.float32)}


def test_graph_with_outputs__returns_what_is_asked_for() -> None:
    model = graph_with_outputs(selecting_graph(), ["a", "b"])
    found = run_as_written(model, FEEDS)
    assert found["a"].tolist() == [2, 4, 6, 8, 10, 12]
    assert found["b"].tolist() == [36, 30, 24]
    assert [node.name for node in onnx.load_from_string(model).graph.node] == ["first", "select", "second"]


def test_graph_with_outputs__a_tensor_handed_over_replaces_what_made_it() -> None:
    top = np.array([1, 1, 2], np.float32)
    model = graph_with_outputs(selecting_graph(), ["b"], ["top"])
    graph = onnx.load_from_string(model).graph
    assert [node.name for node in graph.node] == ["second"]
    assert run_as_written(model, {"top": top})["b"].tolist() == [3, 3, 6]


def test_graph_with_outputs__one_output_of_a_node_handed_over_and_the_other_needed() -> None:
    top = np.array([1, 1, 2], np.float32)
    found = run_as_written(graph_with_outputs(selecting_graph(), ["b", "index"], ["top"]), {**FEEDS, "top": top})
    assert found["b"].tolist() == [3, 3, 6]
    assert found["index"].tolist() == [5, 4, 3]


def test_onnx_graph__tensors_in_order_and_which_of_them_decide() -> None:
    graph = OnnxGraph(selecting_graph())
    assert graph.order == ["a", "top", "index", "b", "c"]
    assert graph.decisions == ["top", "index"]
    assert graph.behind(["top"]) == {"top", "b", "c"}
    assert (graph.shapes["b"], graph.types["b"], graph.types["index"]) == ([3], np.float32, np.int64)
    assert "w0" not in graph.types  # a constant
    assert graph.maker["index"].name == "select"


@pytest.mark.parametrize(("start", "to", "decides"), [("FLOAT", "INT32", True), ("INT32", "FLOAT", False)])
def test_onnx_graph__a_cast_to_whole_numbers_decides(start: str, to: str, decides: bool) -> None:
    kinds = {name: getattr(onnx.TensorProto, name) for name in (start, to)}
    node = onnx.helper.make_node("Cast", ["x"], ["y"], to=kinds[to])
    values = [onnx.helper.make_tensor_value_info(name, kinds[kind], [2]) for name, kind in (("x", start), ("y", to))]
    model = onnx.helper.make_model(onnx.helper.make_graph([node], "g", values[:1], values[1:]))
    assert OnnxGraph(model.SerializeToString()).decisions == (["y"] if decides else [])
