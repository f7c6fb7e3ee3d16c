"""Weights of int8 layers in the file: as int8 with Dequantize, or as float32 with a pair of Quantize and Dequantize.

Both are the same numbers. The first takes a quarter of the bytes, and is what ONNX Runtime, TensorRT 10 and later and
TensorRT-RTX read; TensorRT 8 is sure to read the second, so its engines are built from that.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..onnx_graph import Node, Proto


def store_int8(proto: Proto) -> Proto:
    """A graph whose constants behind a Quantize are stored as what it makes of them.

    Args:
        proto: any graph; unchanged. Zero points are 0, as the exporter writes them.

    Returns:
        The same with int8 constants and without those Quantize nodes.
    """
    import onnx

    out, constants = _copy(proto)
    stored = {}  # output of a Quantize -> its constant in int8
    for node in proto.graph.node:
        if node.op_type == "QuantizeLinear" and node.input[0] in constants:
            weight, scale = constants[node.input[0]], _along(node, constants)
            rounded = np.clip(np.rint(weight / scale), -128, 127).astype(np.int8)
            stored[node.output[0]] = onnx.numpy_helper.from_array(rounded, node.output[0])
    kept = [node for node in proto.graph.node if not set(node.output) & set(stored)]
    _replace(out, kept, list(stored.values()))
    return out


def pair_weights(proto: Proto) -> Proto:
    """The other way round: float32 constants with a pair of Quantize and Dequantize, which gives the same int8.

    Args:
        proto: any graph; unchanged.
    """
    import onnx

    out, constants = _copy(proto)
    nodes, weights = [], []
    for node in out.graph.node:
        name = node.input[0] if node.op_type == "DequantizeLinear" else ""
        if name in constants:
            weight = constants[name].astype(np.float32) * _along(node, constants)
            weights.append(onnx.numpy_helper.from_array(weight, f"{name}_float32"))
            pair = onnx.NodeProto()
            pair.CopyFrom(node)  # with its scale, zero point and axis
            pair.op_type, pair.name, pair.input[0], pair.output[0] = (
                "QuantizeLinear",
                f"{node.name}_pair",
                f"{name}_float32",
                f"{name}_int8",
            )
            node.input[0] = f"{name}_int8"
            nodes.append(pair)
        nodes.append(node)
    _replace(out, nodes, weights)
    return out


def _copy(proto: Proto) -> tuple[Proto, dict[str, NDArray[Any]]]:
    import onnx

    out = onnx.ModelProto()
    out.CopyFrom(proto)
    return out, {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in proto.graph.initializer}


def _along(node: Node, constants: dict[str, NDArray[Any]]) -> NDArray[Any]:
    """Scale of a Quantize or Dequantize of a constant, shaped to be broadcast over it."""
    scale = constants[node.input[1]]
    if scale.ndim == 0:
        return scale
    axis = next((attribute.i for attribute in node.attribute if attribute.name == "axis"), 1)
    sides = [1] * constants[node.input[0]].ndim
    sides[axis] = -1
    return scale.reshape(sides)


def _replace(out: Proto, nodes: list[Node], added: list[Any]) -> None:
    """Give a graph these nodes and constants beside its own, of which those that nobody reads any more go."""
    copies = [type(node).FromString(node.SerializeToString()) for node in nodes]
    read = {name for node in copies for name in node.input}
    kept = [tensor for tensor in out.graph.initializer if tensor.name in read]
    tensors = [type(tensor).FromString(tensor.SerializeToString()) for tensor in (*kept, *added)]
    del out.graph.node[:], out.graph.initializer[:]
    out.graph.node.extend(copies)
    out.graph.initializer.extend(tensors)
