"""TensorRT 8 is held to the number types of the graph, on a simulated network."""

from __future__ import annotations

import types
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from ptedge.export.engine.precision import allow_precision, number_types, readable_weights
from ptedge.export.onnx_graph import graph_with_outputs
from ptedge.export.precision.int8_weights import store_int8


def _half_model() -> bytes:
    """float32 -> float16 product -> float32 exponential."""
    nodes = [
        helper.make_node("Cast", ["x"], ["low"], name="down", to=TensorProto.FLOAT16),
        helper.make_node("Mul", ["low", "low"], ["square"], name="half_square"),
        helper.make_node("Cast", ["square"], ["wide"], name="up", to=TensorProto.FLOAT),
        helper.make_node("Exp", ["wide"], ["y"], name="exp"),
    ]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("x", "y")]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:])
    return bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString())


def test_number_types__as_the_graph_says() -> None:
    assert number_types(_half_model()) == {"low": "float16", "square": "float16", "wide": "float32", "y": "float32"}


class FakeTensor:
    def __init__(self, name: str, dtype: str) -> None:
        self.name, self.dtype = name, dtype


class FakeLayer:
    def __init__(self, kind: str, *outputs: FakeTensor) -> None:
        self.type, self.outputs, self.num_outputs = kind, outputs, len(outputs)
        self.precision = ""
        self.types: dict[int, str] = {}

    def get_output(self, i: int) -> FakeTensor:
        return self.outputs[i]

    def set_output_type(self, i: int, kind: str) -> None:
        self.types[i] = kind


def _fake_network(layers: list[FakeLayer]) -> tuple[Any, Any, Any, list[str]]:
    flags: list[str] = []
    tensorrt = types.SimpleNamespace(
        BuilderFlag=types.SimpleNamespace(FP16="FP16", INT8="INT8", OBEY_PRECISION_CONSTRAINTS="OBEY"),
        LayerType=types.SimpleNamespace(CONSTANT="constant", SHAPE="shape", IDENTITY="identity"),
        float32="float32",
        float16="float16",
    )
    network = types.SimpleNamespace(num_layers=len(layers), get_layer=lambda i: layers[i])
    return tensorrt, network, types.SimpleNamespace(set_flag=flags.append), flags


def test_allow_precision__tensorrt_8_is_held_to_what_the_graph_says() -> None:
    helper_layer = FakeLayer("shuffle", FakeTensor("(Unnamed Layer* 3)", "float32"))
    layers = [
        FakeLayer("identity", FakeTensor("low", "float16")),
        FakeLayer("elementwise", FakeTensor("square", "float16")),
        FakeLayer("identity", FakeTensor("wide", "float32")),
        FakeLayer("constant", FakeTensor("(Unnamed Layer* 4)", "float32")),
        helper_layer,
        FakeLayer("unary", FakeTensor("y", "float32")),
        FakeLayer("topk", FakeTensor("index", "int32")),
    ]
    tensorrt, network, config, flags = _fake_network(layers)
    allow_precision(tensorrt, network, config, _half_model(), "fp16")
    assert flags == ["FP16", "OBEY"]
    assert [layer.precision for layer in layers] == ["", "float16", "", "", "float32", "float32", ""]
    assert layers[5].types == {0: "float32"}


def _int8_model() -> bytes:
    """float16 product -> int8 product of it and its activation -> float32 exponential."""
    nodes = [
        helper.make_node("Cast", ["x"], ["low"], name="down", to=TensorProto.FLOAT16),
        helper.make_node("Mul", ["low", "low"], ["square"], name="half_square"),
        helper.make_node("Cast", ["square"], ["wide"], name="up", to=TensorProto.FLOAT),
        *(
            node
            for name in ("wide", "weight")
            for node in (
                helper.make_node("QuantizeLinear", [name, "scale", "zero"], [f"{name}_q"], name=f"{name}_q"),
                helper.make_node("DequantizeLinear", [f"{name}_q", "scale", "zero"], [f"{name}_dq"], name=f"{name}_dq"),
            )
        ),
        helper.make_node("MatMul", ["wide_dq", "weight_dq"], ["sums"], name="matmul"),
        helper.make_node("Relu", ["sums"], ["active"], name="relu"),
        helper.make_node("Exp", ["active"], ["y"], name="exp"),
    ]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 2]) for name in ("x", "y")]
    constants = [
        helper.make_tensor("scale", TensorProto.FLOAT, [], [0.5]),
        helper.make_tensor("zero", TensorProto.INT8, [], [0]),
        helper.make_tensor("weight", TensorProto.FLOAT, [2, 2], [1.0, 2.0, 3.0, 4.0]),
    ]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:], constants)
    return bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString())


def test_allow_precision__int8_kernels_are_left_free_and_the_rest_is_held() -> None:
    layers = [
        FakeLayer("identity", FakeTensor("low", "float16")),
        FakeLayer("elementwise", FakeTensor("square", "float16")),
        FakeLayer("identity", FakeTensor("wide", "float32")),
        FakeLayer("quantize", FakeTensor("wide_q", "int8")),
        FakeLayer("dequantize", FakeTensor("wide_dq", "float32")),
        FakeLayer("constant", FakeTensor("(Unnamed Layer* 5)", "float32")),
        FakeLayer("quantize", FakeTensor("weight_q", "int8")),
        FakeLayer("dequantize", FakeTensor("weight_dq", "float32")),
        FakeLayer("shuffle", FakeTensor("(Unnamed Layer* 8)", "float32")),
        FakeLayer("matmul", FakeTensor("sums", "float32")),
        FakeLayer("activation", FakeTensor("active", "float32")),
        FakeLayer("unary", FakeTensor("y", "float32")),
    ]
    tensorrt, network, config, flags = _fake_network(layers)
    allow_precision(tensorrt, network, config, _int8_model(), "int8")
    assert flags == ["INT8", "FP16", "OBEY"]
    assert [layer.precision for layer in layers] == ["", "float16", *[""] * 9, "float32"]


def test_allow_precision__int8_without_float16() -> None:
    model = graph_with_outputs(_int8_model(), ["y"], {"wide": np.zeros((2, 2), np.float32)})
    tensorrt, network, config, flags = _fake_network([FakeLayer("unary", FakeTensor("y", "float32"))])
    allow_precision(tensorrt, network, config, model, "int8")
    assert flags == ["INT8"]
    assert network.get_layer(0).precision == ""


def test_allow_precision__float32_needs_no_word() -> None:
    tensorrt, network, config, flags = _fake_network([])
    allow_precision(tensorrt, network, config, b"", "fp32")
    assert flags == []


def test_the_models_of_these_tests_are_valid() -> None:
    for model in (_half_model(), _int8_model()):
        onnx.checker.check_model(onnx.load_from_string(model), full_check=True)


def test_readable_weights__int8_constants_become_pairs() -> None:
    model = onnx.load_from_string(_int8_model())
    stored = store_int8(model)
    assert sum(node.op_type == "QuantizeLinear" for node in stored.graph.node) == 1
    paired = onnx.load_from_string(readable_weights(stored.SerializeToString()))
    assert sum(node.op_type == "QuantizeLinear" for node in paired.graph.node) == 2
    assert number_types(paired.SerializeToString()).items() >= number_types(stored.SerializeToString()).items()
