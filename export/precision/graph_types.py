"""Which number types an exported graph may hold, and where."""

from __future__ import annotations

from collections.abc import Sequence

from ptedge.errors import ArtifactError

from ..onnx_graph import Proto
from .layers import QUANTISING

# what boxes, scores and sigma are made of: a graph of any precision computes it in float32
FLOAT32_ONLY = frozenset(
    {
        "Exp",
        "Log",
        "Sqrt",
        "Pow",
        "Div",
        "Sigmoid",
        "Softmax",
        "LogSoftmax",
        "TopK",
        "Greater",
        "GreaterOrEqual",
        "Less",
        "LessOrEqual",
        "Equal",
        "Where",
        "Max",
        "Min",
        "ReduceMax",
        "ReduceMin",
        "ReduceSum",
        "ReduceProd",
        "Trilu",
        "GatherElements",
        "Sub",
        "Abs",
        "Neg",
    }
)


def check_types(protos: Sequence[Proto], precision: str) -> None:
    """Hold a model to its precision.

    Args:
        protos: its one graph, or its two stages, of which one alone may hold what makes the precision; valid ONNX.
        precision: ``fp32``, ``fp16`` or ``int8``.

    Raises:
        ArtifactError: float16 or quantisation where it does not belong, or nowhere, or a zero point that is not 0.
    """
    half, quantising = (sum(counts) for counts in zip(*map(_check_types, protos), strict=True))
    may_be_half = {"fp32": (False,), "fp16": (True,), "int8": (False, True)}[precision]
    if bool(half) not in may_be_half or bool(quantising) != (precision == "int8"):
        raise ArtifactError(
            f"the exported graph is said to be {precision}, but holds {half} float16 tensors and "
            f"{quantising} quantising operators"
        )


def _check_types(proto: Proto) -> tuple[int, int]:
    """How many float16 tensors and quantising operators a graph holds, after a look at where they are."""
    import onnx

    graph = onnx.shape_inference.infer_shapes(proto, check_type=True, strict_mode=True).graph
    types = {t.name: t.data_type for t in graph.initializer}
    types |= {v.name: v.type.tensor_type.elem_type for v in (*graph.input, *graph.value_info, *graph.output)}
    half = {name for name, kind in types.items() if kind == onnx.TensorProto.FLOAT16}
    quantising = [node for node in graph.node if node.op_type in QUANTISING]
    for node in graph.node:
        if node.op_type in FLOAT32_ONLY and half & {*node.input, *node.output}:
            raise ArtifactError(f"the exported graph computes {node.op_type} ({node.name}) in float16")
    constants = {tensor.name: tensor for tensor in graph.initializer}
    for node in quantising:
        zero = constants.get(node.input[2]) if len(node.input) > 2 else None
        if zero is None or zero.data_type != onnx.TensorProto.INT8 or onnx.numpy_helper.to_array(zero).any():
            raise ArtifactError(f"the exported graph quantises {node.name} with a zero point that is not int8 zero")
    return len(half), len(quantising)
