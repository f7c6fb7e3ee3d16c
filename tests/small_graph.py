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
