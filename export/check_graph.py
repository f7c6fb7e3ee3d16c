"""Hold an exported graph to its contract: operators, number types, inputs and outputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ptedge.artifacts.graph_sides import read_sides
from ptedge.calibration import Sides
from ptedge.errors import ArtifactError
from ptedge.graph_contract import SIDE_OFFSET, SIGMA_SCALE, Signature, input_signature, output_signature

from .precision.graph_types import check_types

# operators whose output size depends on the data, control flow, and what needs a plugin in TensorRT
FORBIDDEN = frozenset({"NonMaxSuppression", "NonZero", "If", "Loop", "Scan", "RoiAlign", "Unique", "Compress"})


@dataclass(frozen=True)
class GraphReport:
    """What the exported graph is made of.

    Attributes:
        nodes: operators in the graph.
        size: bytes of the file.
    """

    nodes: int
    size: int


def check_graph(model: bytes, batch: int, size: tuple[int, int], max_detections: int, precision: str) -> GraphReport:
    """Hold an exported graph to its contract.

    Args:
        model: serialised ONNX.
        batch: images a call.
        size: (height, width) of the input.
        max_detections: D.
        precision: ``fp32``, ``fp16`` or ``int8``.

    Raises:
        ArtifactError: invalid ONNX, an operator or type that should not be there, or an input or output that differs.
    """
    import onnx

    proto = onnx.load_from_string(model)
    try:
        onnx.checker.check_model(proto, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        raise ArtifactError(f"the exported graph is not valid ONNX: {error}. Please report this") from None
    foreign = {node.op_type for node in proto.graph.node if node.op_type in FORBIDDEN or node.domain}
    if foreign:
        raise ArtifactError(f"the exported graph holds {', '.join(sorted(foreign))}, which has no place there")
    expected = input_signature(batch, size) | output_signature(batch, max_detections)
    found = {value.name: _shape_and_type(value) for value in (*proto.graph.input, *proto.graph.output)}
    if found != expected:
        raise ArtifactError(
            f"the exported graph has inputs and outputs {_in_words(found)}; expected are {_in_words(expected)}"
        )
    check_types(proto, precision)
    return GraphReport(len(proto.graph.node), len(model))


def check_sides(model: bytes, offset: Sides, scale: Sides) -> None:
    """Hold a graph to the calibration that its manifest says it applies; needs no onnx.

    Args:
        model: serialised ONNX.
        offset: as :attr:`ptedge.calibration.SideCalibration.offset`.
        scale: as :attr:`ptedge.calibration.SideCalibration.scale`.

    Raises:
        ArtifactError: it applies another, or has no place for one.
    """
    try:
        found = read_sides(model)
    except ValueError as error:
        raise ArtifactError(f"the exported graph cannot be read: {error}") from None
    if found is None:
        raise ArtifactError(f"the exported graph lacks its constants {SIDE_OFFSET} and {SIGMA_SCALE}")
    wanted = tuple(tuple(np.array(values, np.float32).tolist()) for values in (offset, scale))
    if found != wanted:
        raise ArtifactError(f"the exported graph corrects sides by {found}, its manifest says {wanted}")


def _shape_and_type(value: Any) -> tuple[tuple[int, ...], np.dtype[Any]]:
    import onnx

    tensor = value.type.tensor_type
    shape = tuple(d.dim_value for d in tensor.shape.dim)
    return shape, np.dtype(onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type))


def _in_words(signature: Signature) -> str:
    return ", ".join(f"{name} {dtype} {list(shape)}" for name, (shape, dtype) in signature.items())
