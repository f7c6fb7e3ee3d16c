"""A graph of a few layers, small enough to work out by hand."""

from __future__ import annotations

import numpy as np
import onnx


def small_graph(weight: float) -> bytes:
    """Three 1 x 1 convolutions of ones (the second of ``weight``) before a predictor: uint8 images -> float boxes."""
    helper = onnx.helper
    ones = np.ones((3, 3, 1, 1), np.float32)
    names = ["a", "b", "c", "boxes"]
    nodes = [helper.make_node("Cast", ["images"], ["pixels"], name="/Cast", to=onnx.TensorProto.FLOAT)]
    for before, name in zip(["pixels", *names], names, strict=False):
        path = "/predictor/Conv" if name == "boxes" else f"/{name}/Conv"
        nodes.append(helper.make_node("Conv", [before, f"{name}_weight"], [name], name=path))
    weights = [onnx.numpy_helper.from_array(ones * (weight if n == "b" else 1), f"{n}_weight") for n in names]
    images = helper.make_tensor_value_info("images", onnx.TensorProto.UINT8, [1, 3, 16, 16])
    boxes = helper.make_tensor_value_info("boxes", onnx.TensorProto.FLOAT, [1, 3, 16, 16])
    graph = helper.make_graph(nodes, "small", [images], [boxes], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return bytes(model.SerializeToString())


def selecting_graph(weights: tuple[float, float] = (2.0, 3.0), bias: float = 0.0) -> bytes:
    """x [6] -> times 2 ("a") -> the best 3 ("top") -> times 3 ("b") -> plus bias ("c")."""
    nodes = [
        onnx.helper.make_node("Mul", ["x", "w0"], ["a"], name="first"),
        onnx.helper.make_node("TopK", ["a", "k"], ["top", "index"], name="select"),
        onnx.helper.make_node("Mul", ["top", "w1"], ["b"], name="second"),
        onnx.helper.make_node("Add", ["b", "bias"], ["c"], name="third"),
    ]
    constants = [
        onnx.numpy_helper.from_array(np.array([weights[0]], np.float32), "w0"),
        onnx.numpy_helper.from_array(np.array([weights[1]], np.float32), "w1"),
        onnx.numpy_helper.from_array(np.array([bias], np.float32), "bias"),
        onnx.numpy_helper.from_array(np.array([3], np.int64), "k"),
    ]
    x = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [6])
    c = onnx.helper.make_tensor_value_info("c", onnx.TensorProto.FLOAT, [3])
    graph = onnx.helper.make_graph(nodes, "small", [x], [c], constants)
    return bytes(
        onnx.helper.make_model(
            graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8
        ).SerializeToString()
    )
