"""The layer that is to blame is found, in front of a selection and behind it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import numpy_helper
from small_graph import selecting_graph

from ptedge.artifacts.bundle import open_bundle
from ptedge.export.network_inputs import make_scenes
from ptedge.export.onnx_run import run_as_written
from ptedge.export.verify.by_layer import compare_layers, relative_error

FEEDS = {"x": np.array([1, 2, 3, 4, 5, 6], np.float32)}


def test_compare_layers__equal_graphs() -> None:
    found = compare_layers(selecting_graph(), selecting_graph(), FEEDS, 1e-3)
    assert (found.departure, found.skipped, found.largest) == (None, 0, 0.0)
    assert found.compared == 3  # a, b, c; the selection itself is handed over
    assert "no single layer departs" in str(found)


@pytest.mark.parametrize(
    ("suspect", "layer", "error"),
    [
        (selecting_graph((2.2, 3.0)), "first", 0.1),
        (selecting_graph((2.0, 3.3)), "second", 0.1),
        (selecting_graph(bias=float("nan")), "third", float("inf")),
    ],
)
def test_compare_layers__names_the_first(suspect: bytes, layer: str, error: float) -> None:
    found = compare_layers(selecting_graph(), suspect, FEEDS, 1e-3).departure
    assert found is not None
    assert (found.layer, found.error) == (layer, pytest.approx(error, rel=1e-4))
    assert layer in str(found)


def test_compare_layers__another_order_of_equals_is_no_departure() -> None:
    """Two rows almost equal come in the other order in the suspect; behind the selection nothing differs for that."""
    feeds = {"x": np.array([1, 2, 3, 4, 6, 6.0001], np.float32)}

    def swapping(model: bytes, inputs: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        return run_as_written(model, {**inputs, "x": np.array([1, 2, 3, 4, 6.0001, 6], np.float32)})

    assert compare_layers(selecting_graph(), selecting_graph(), feeds, 1e-3, swapping).departure is None


def test_compare_layers__without_handing_over_it_stops_at_the_selection() -> None:
    found = compare_layers(selecting_graph(), selecting_graph((2.0, 3.3)), FEEDS, 1e-3, hand_over=False)
    assert (found.departure, found.compared, found.skipped) == (None, 1, 3)  # the selected values as well
    assert "3 behind a selection cannot be compared by position" in str(found)


def test_compare_layers__graphs_without_common_names() -> None:
    proto = onnx.load_from_string(selecting_graph())
    for node in proto.graph.node:
        node.output[:] = [f"other_{name}" for name in node.output]
        node.input[:] = [f"other_{name}" if name in ("a", "top", "b") else name for name in node.input]
    proto.graph.output[0].name = "other_c"
    found = compare_layers(selecting_graph(), proto.SerializeToString(), FEEDS, 1e-3)
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
    found = compare_layers(model, proto.SerializeToString(), {"images": images}, 1e-3).departure
    assert found is not None
    assert found.layer == node.name


def test_relative_error__by_hand() -> None:
    assert relative_error(np.array([3.0, 4.0]), np.array([3.0, 4.0])) == 0
    assert relative_error(np.array([3.3, 4.4]), np.array([3.0, 4.0])) == pytest.approx(0.1)
    assert relative_error(np.array([np.nan]), np.array([1.0])) == float("inf")
    assert relative_error(np.zeros(3), np.zeros(3)) == 0
    assert relative_error(np.zeros(2), np.zeros(3)) == float("inf")
    assert relative_error(np.zeros(0), np.zeros(0)) == 0
