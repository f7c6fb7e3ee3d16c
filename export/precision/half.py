"""Float16 in the graph itself: casts around the layers before the predictors, weights stored as float16.

Types are in the file, so a strongly typed TensorRT builds it as it stands, an older one reads which layers are meant to
be float32, and ONNX Runtime runs it. The general converter that ONNX Runtime brings does not fit: between two nodes
that it keeps in float32 it still passes the value through float16, which box coordinates do not survive.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from ptedge.graph_contract import IMAGES

from ..onnx_graph import Node, Proto
from ..onnx_run import open_graph
from .layers import find_layers, int8_nodes

LARGEST = 65504.0  # of float16
HEADROOM = 2.0  # an activation this near to the largest number is taken to reach it on another image


def to_float16(proto: Proto, largest: Mapping[str, float]) -> tuple[Proto, list[str], list[str]]:
    """A graph with its layers before the predictors in float16, those in int8 apart.

    Args:
        proto: folded graph, in float32 or with layers in int8; unchanged.
        largest: tensor -> largest magnitude seen; tensors not named are taken to be small.

    Returns:
        The graph; names of the weighted layers converted; names of those that stay in float32: the first one, and those
        where a number would overflow.
    """
    import onnx

    out = onnx.ModelProto()
    out.CopyFrom(proto)
    graph = out.graph
    layers = find_layers(out)
    constants = {tensor.name: tensor for tensor in graph.initializer}
    types = float32_tensors(out)
    too_large = {name for name, value in largest.items() if not value <= LARGEST / HEADROOM}
    for name in types & set(constants):
        if not np.abs(onnx.numpy_helper.to_array(constants[name])).max(initial=0.0) <= LARGEST:
            too_large.add(name)
    int8 = int8_nodes(out)
    candidates = set(layers.between) - set(layers.stem) - int8
    half = {n.name for n in graph.node if n.name in candidates and not too_large & {*n.input, *n.output}}
    nodes: list[Node] = []
    in_half: set[str] = set()  # tensors that are float16 now
    copies: dict[tuple[str, bool], str] = {}  # (tensor, in float16) -> name of its cast or converted constant
    added = []
    for node in graph.node:
        to_half = node.name in half
        for i, name in enumerate(node.input):
            if name not in types or (name in in_half) == to_half:
                continue
            if (name, to_half) not in copies:
                copies[name, to_half] = f"{name}_{'float16' if to_half else 'float32'}"
                if name in constants:
                    array = onnx.numpy_helper.to_array(constants[name]).astype(np.float16)
                    added.append(onnx.numpy_helper.from_array(array, copies[name, to_half]))
                else:
                    nodes.append(_cast(name, copies[name, to_half], to_half))
            node.input[i] = copies[name, to_half]
        nodes.append(node)
        if to_half:
            in_half.update(set(node.output) & types)
    used = {name for node in nodes for name in node.input}
    kept = [tensor for tensor in graph.initializer if tensor.name in used]
    _replace(graph.node, nodes)
    _replace(graph.initializer, [*kept, *added])
    converted = [name for name in layers.weighted if name in half]
    return out, converted, [name for name in layers.weighted if name not in half | int8]


def largest_values(proto: Proto, names: Iterable[str], images: NDArray[np.uint8]) -> dict[str, float]:
    """Largest magnitude of tensors over images, found inside the graph, so that memory does not grow with it.

    Args:
        proto: the float32 graph; unchanged.
        names: float32 tensors of the graph.
        images: [N, 3, H, W] uint8, N at least the graph's batch; a rest that fills no batch is left out.
    """
    import onnx

    names = list(names)
    probe = onnx.ModelProto()
    probe.CopyFrom(proto)
    del probe.graph.output[:]
    for i, name in enumerate(names):
        probe.graph.node.append(onnx.helper.make_node("Abs", [name], [f"probe_abs_{i}"]))
        probe.graph.node.append(onnx.helper.make_node("ReduceMax", [f"probe_abs_{i}"], [f"probe_{i}"], keepdims=0))
        probe.graph.output.append(onnx.helper.make_tensor_value_info(f"probe_{i}", onnx.TensorProto.FLOAT, ()))
    session = open_graph(probe.SerializeToString())
    batch = session.get_inputs()[0].shape[0]
    largest = np.zeros(len(names))
    for start in range(0, len(images) - batch + 1, batch):
        largest = np.maximum(largest, session.run(None, {IMAGES: images[start : start + batch]}))
    return dict(zip(names, map(float, largest), strict=True))


def float32_tensors(proto: Proto) -> set[str]:
    """Names of all float32 tensors of a graph, constants included."""
    import onnx

    inferred = onnx.shape_inference.infer_shapes(proto, check_type=True, strict_mode=True).graph
    found = {t.name for t in inferred.initializer if t.data_type == onnx.TensorProto.FLOAT}
    for value in (*inferred.input, *inferred.output, *inferred.value_info):
        if value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT:
            found.add(value.name)
    return found


def _cast(name: str, target: str, to_half: bool) -> Node:
    import onnx

    kind = onnx.TensorProto.FLOAT16 if to_half else onnx.TensorProto.FLOAT
    return onnx.helper.make_node("Cast", [name], [target], name=f"cast_{target}", to=kind)


def _replace(field: object, values: list[Node]) -> None:
    """Give a repeated protobuf field these values; they may be its own."""
    copies = [type(value).FromString(value.SerializeToString()) for value in values]
    del field[:]  # type: ignore[attr-defined]
    field.extend(copies)  # type: ignore[attr-defined]
