"""Number types in a graph of a few nodes, where they belong and where not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from ptedge.errors import ArtifactError
from ptedge.export.precision.graph_types import check_types


def cast_graph(operator: str) -> Any:
    """x in float32, cast to float16, through one operator, and back."""
    nodes = [
        helper.make_node("Cast", ["x"], ["low"], name="down", to=TensorProto.FLOAT16),
        helper.make_node(operator, ["low"], ["through"], name="the_operator"),
        helper.make_node("Cast", ["through"], ["y"], name="up", to=TensorProto.FLOAT),
    ]
    return model_of(nodes, [])


def quantised_graph(zero: Any) -> Any:
    """x through QuantizeLinear and DequantizeLinear with a zero point."""
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["q"], name="quantise"),
        helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["y"], name="dequantise"),
    ]
    return model_of(nodes, [numpy_helper.from_array(np.array(0.5, np.float32), "scale"), zero_of(zero)])


def zero_of(value: Any) -> Any:
    return numpy_helper.from_array(np.array(value), "zero")


def model_of(nodes: list[Any], constants: list[Any]) -> Any:
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("x", "y")]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_check_types__float16_where_it_may_be() -> None:
    check_types([cast_graph("Relu")], "fp16")
    with pytest.raises(ArtifactError, match=r"said to be fp32, but holds 2 float16 tensors and 0 quantising"):
        check_types([cast_graph("Relu")], "fp32")


@pytest.mark.parametrize("operator", ["Exp", "Sigmoid", "Sqrt"])
def test_check_types__what_detections_are_made_of_is_float32(operator: str) -> None:
    with pytest.raises(ArtifactError, match=rf"computes {operator} \(the_operator\) in float16"):
        check_types([cast_graph(operator)], "fp16")


def test_check_types__zero_points_are_int8_zero() -> None:
    check_types([quantised_graph(np.int8(0))], "int8")
    for wrong in (np.int8(3), np.uint8(0)):
        with pytest.raises(ArtifactError, match="quantises quantise with a zero point that is not int8 zero"):
            check_types([quantised_graph(wrong)], "int8")
    with pytest.raises(ArtifactError, match="said to be fp16"):
        check_types([quantised_graph(np.int8(0))], "fp16")
