"""What of an exported graph may be stored in fewer bits: the layers between the input and the predictors.

The graph is found by its structure, not by a list of names: the backbone, the RPN's convolution, RoIAlign's products
and the fully connected layers are exactly what a pixel passes on its way to a predictor without passing another one.
Normalisation lies before that, and everything that a detection's numbers are made of (decode, IoU, exp, softmax, sigma)
behind it; both stay in float32.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptedge.errors import ArtifactError

FUSED = ("Relu", "LeakyRelu", "Clip")  # activations that a layer's kernel applies to its sums
PREDICTORS = ("objectness", "deltas", "variances", "predictor")  # modules that give a detection's raw numbers
WEIGHTED = ("Conv", "Gemm", "MatMul")
QUANTISING = ("QuantizeLinear", "DequantizeLinear")

Node = Any  # onnx.NodeProto
Proto = Any  # onnx.ModelProto


@dataclass(frozen=True)
class Layers:
    """Names of nodes, in the graph's order.

    Attributes:
        weighted: convolutions and fully connected layers before the predictors.
        predictors: the layers that give objectness, deltas, class logits and variance logits.
        between: every node from the first weighted one to the predictors, weighted ones included.
        stem: of these, the nodes before the second weighted one. It sees pixels: what it cancels out (a dark corner, a
            colour cast) is large against what it lets pass, so its rounding is not small against its output.
    """

    weighted: tuple[str, ...]
    predictors: tuple[str, ...]
    between: tuple[str, ...]
    stem: tuple[str, ...]


def find_layers(proto: Proto) -> Layers:
    """Sort out the nodes of a folded graph.

    Args:
        proto: as :func:`ptedge.export.to_onnx.model_to_onnx` writes it, or in another precision.

    Raises:
        ArtifactError: no predictors or no layers before them, so this is another graph.
    """
    nodes = list(proto.graph.node)
    constants = {tensor.name for tensor in proto.graph.initializer}
    for node in nodes:  # an int8 layer reads its weights through a pair of Quantize and Dequantize
        if node.op_type in QUANTISING and node.input[0] in constants:
            constants.update(node.output)
    weighted = [n for n in nodes if n.op_type in WEIGHTED and n.input[1] in constants]
    predictors = {n.name for n in weighted if set(n.name.split("/")) & set(PREDICTORS)}
    dense = {n.name for n in weighted} - predictors
    if not predictors or not dense:
        raise ArtifactError("the graph's layers were not recognised, so its precision cannot be changed. Report this")
    behind: set[str] = set()  # tensors that depend on a dense layer, and on no predictor
    forward = set()
    for node in nodes:
        if node.name not in predictors and (node.name in dense or behind & set(node.input)):
            forward.add(node.name)
            behind.update(node.output)
    wanted: set[str] = set()  # tensors that a predictor depends on
    between = []
    for node in reversed(nodes):
        if node.name in predictors or wanted & set(node.output):
            wanted.update(node.input)
            if node.name in forward:
                between.append(node.name)
    between.reverse()
    before = [n.name for n in weighted if n.name in dense]
    return Layers(
        tuple(before),
        tuple(n.name for n in weighted if n.name in predictors),
        tuple(between),
        tuple(between[: between.index(before[1])]) if len(before) > 1 else (),
    )


def needed_nodes(nodes: Iterable[Node], outputs: Iterable[str], given: Collection[str] = ()) -> list[Node]:
    """Those nodes that some tensors are computed by, in their order.

    Args:
        nodes: in the order in which they are computed.
        outputs: tensors wanted.
        given: tensors that need no computing.
    """
    wanted, kept = set(outputs), []
    for node in reversed(list(nodes)):
        if wanted & (set(node.output) - set(given)):
            kept.append(node)
            wanted |= set(node.input)
    return kept[::-1]


def int8_nodes(proto: Proto) -> set[str]:
    """Names of the nodes that int8 kernels are made of: layers that read int8, their activations, Quantize, Dequantize.

    What passes between them is float32 by the graph's types, but a kernel keeps it in its registers.

    Args:
        proto: any graph; one without Quantize and Dequantize has none.
    """
    rounded: set[str] = set()  # outputs of Dequantize
    sums: set[str] = set()  # outputs of int8 layers and of their activations
    found = set()
    for node in proto.graph.node:
        if node.op_type in QUANTISING:
            rounded.update(node.output)
        elif rounded & set(node.input) or (node.op_type in FUSED and node.input[0] in sums):
            sums.update(node.output)
        else:
            continue
        found.add(node.name)
    return found


def multiplications(proto: Proto) -> dict[str, int]:
    """Layer -> multiplications that it does in one call of the graph, for all layers with weights."""
    import onnx

    graph = onnx.shape_inference.infer_shapes(proto).graph
    shapes = {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim] for v in (*graph.value_info, *graph.output)}
    weights = {tensor.name: list(tensor.dims) for tensor in graph.initializer}
    work = {}
    for node in graph.node:
        if node.op_type in WEIGHTED and node.input[1] in weights:
            outputs, weight = int(np.prod(shapes[node.output[0]])), weights[node.input[1]]
            if node.op_type == "Conv":
                each = int(np.prod(weight[1:]))
            else:  # [inputs, outputs], or the other way round
                transposed = any(a.name == "transB" and a.i for a in node.attribute)
                each = weight[1 if transposed else 0]
            work[node.name] = outputs * each
    return work


def largest_values(proto: Proto, names: Iterable[str], images: NDArray[np.uint8]) -> dict[str, float]:
    """Largest magnitude of tensors over images, found inside the graph, so that memory does not grow with it.

    Args:
        proto: the float32 graph; unchanged.
        names: float32 tensors of the graph.
        images: [N, 3, H, W] uint8, N at least the graph's batch; a rest that fills no batch is left out.
    """
    import onnx
    import onnxruntime

    names = list(names)
    probe = onnx.ModelProto()
    probe.CopyFrom(proto)
    del probe.graph.output[:]
    for i, name in enumerate(names):
        probe.graph.node.append(onnx.helper.make_node("Abs", [name], [f"probe_abs_{i}"]))
        probe.graph.node.append(onnx.helper.make_node("ReduceMax", [f"probe_abs_{i}"], [f"probe_{i}"], keepdims=0))
        probe.graph.output.append(onnx.helper.make_tensor_value_info(f"probe_{i}", onnx.TensorProto.FLOAT, ()))
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(probe.SerializeToString(), options, providers=["CPUExecutionProvider"])
    batch = session.get_inputs()[0].shape[0]
    largest = np.zeros(len(names))
    for start in range(0, len(images) - batch + 1, batch):
        largest = np.maximum(largest, session.run(None, {"images": images[start : start + batch]}))
    return dict(zip(names, map(float, largest), strict=True))
