"""What of an exported graph may be stored in fewer bits: the layers between the input and the predictors.

The graph is found by its structure, not by a list of names: the backbone, the RPN's convolution, RoIAlign's products
and the fully connected layers are exactly what a pixel passes on its way to a predictor without passing another one.
Normalisation lies before that, and everything that a detection's numbers are made of (decode, IoU, exp, softmax, sigma)
behind it; both stay in float32.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ptedge.errors import ArtifactError

from ..onnx_graph import Proto

FUSED = ("Relu", "LeakyRelu", "Clip")  # activations that a layer's kernel applies to its sums
PREDICTORS = ("objectness", "deltas", "variances", "predictor")  # modules that give a detection's raw numbers
WEIGHTED = ("Conv", "Gemm", "MatMul")
QUANTISING = ("QuantizeLinear", "DequantizeLinear")


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
