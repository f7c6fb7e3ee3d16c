"""Layers of a graph by its structure, and their multiplications by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from tiny_detector import tiny_config

from ptedge.detector.model import ProbabilisticFasterRCNN
from ptedge.errors import ArtifactError
from ptedge.export.precision.half import to_float16
from ptedge.export.precision.layers import find_layers, int8_nodes, multiplications
from ptedge.export.precision.quantize import to_int8
from ptedge.export.to_onnx import model_to_onnx


def test_multiplications__by_hand() -> None:
    def value(name: str, shape: list[int]) -> Any:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

    weights = {"conv": [8, 2, 3, 3], "one": [40, 5], "two": [5, 7]}
    nodes = [
        helper.make_node(
            "Conv", ["image", "conv"], ["features"], name="conv", group=2, pads=[1, 1, 1, 1], strides=[2, 2]
        ),
        helper.make_node("Gemm", ["rows", "one"], ["five"], name="gemm", transB=1),
        helper.make_node("MatMul", ["five_in", "two"], ["seven"], name="matmul"),
        helper.make_node("MatMul", ["rows", "rows_transposed"], ["free"], name="no_weight"),
    ]
    inputs = [value("image", [2, 4, 10, 12]), value("rows", [3, 5]), value("five_in", [3, 5])]
    inputs.append(value("rows_transposed", [5, 3]))
    outputs = [
        value("features", [2, 8, 5, 6]), value("five", [3, 40]), value("seven", [3, 7]), value("free", [3, 3])
    ]  # fmt: skip
    constants = [numpy_helper.from_array(np.zeros(shape, np.float32), name) for name, shape in weights.items()]
    model = helper.make_model(helper.make_graph(nodes, "g", inputs, outputs, constants))
    assert multiplications(model) == {
        "conv": 2 * 8 * 5 * 6 * (2 * 3 * 3),  # every value sums over the two channels of its group
        "gemm": 3 * 40 * 5,
        "matmul": 3 * 7 * 5,
    }


def test_int8_nodes__layers_their_activations_and_no_more() -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["before"], name="before"),
        helper.make_node("QuantizeLinear", ["before", "s", "z"], ["q"], name="q"),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["dq"], name="dq"),
        helper.make_node("Conv", ["dq", "w"], ["sums"], name="conv"),
        helper.make_node("Clip", ["sums", "low", "high"], ["clipped"], name="clip"),
        helper.make_node("Add", ["clipped", "before"], ["added"], name="shortcut"),
        helper.make_node("Relu", ["added"], ["after"], name="after"),
    ]
    assert int8_nodes(helper.make_model(helper.make_graph(nodes, "g", [], []))) == {"q", "dq", "conv", "clip"}


def test_find_layers__an_unknown_graph() -> None:
    node = onnx.helper.make_node("Relu", ["x"], ["y"], name="relu")
    graph = onnx.helper.make_graph([node], "g", [], [])
    with pytest.raises(ArtifactError, match="not recognised"):
        find_layers(onnx.helper.make_model(graph))


def test_vgg16__both_precisions_run() -> None:
    """Structure only: random weights, a narrow head, a small input."""
    from functools import partial

    from ptedge.detector.roi_heads import ROIHead

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ptedge.detector.model.ROIHead", partial(ROIHead, hidden=64))
        torch.manual_seed(0)
        model = ProbabilisticFasterRCNN(tiny_config(backbone="vgg16", input_size=(32, 48)), 1)
        proto = onnx.load_from_string(model_to_onnx(model, (32, 48), 1))
    layers = find_layers(proto)
    assert len(layers.weighted) == 13 + 1 + 2  # convolutions, the RPN's, fully connected
    half, converted, _ = to_float16(proto, {})
    assert len(converted) == 15
    frames = np.random.default_rng(0).integers(0, 256, (3, 3, 32, 48), dtype=np.uint8)
    int8 = to_int8(proto, frames, method="minmax")
    assert find_layers(int8).weighted == layers.weighted
    assert sum(node.op_type == "QuantizeLinear" for node in int8.graph.node) == 2 * 16  # an input and weights each

    for graph in (half, int8):
        session = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
        assert all(np.isfinite(value).all() for value in session.run(None, {"images": frames[:1]}))
