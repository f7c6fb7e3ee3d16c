"""Hold an exported graph to its contract: operators, number types, inputs and outputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ptedge.artifacts.graph_sides import read_sides
from ptedge.artifacts.manifest import Manifest
from ptedge.calibration import Sides
from ptedge.detector.config import STRIDE
from ptedge.errors import ArtifactError
from ptedge.graph_contract import (
    FEATURES,
    FIRST_STAGE,
    IMAGES,
    PROPOSALS,
    SECOND_STAGE,
    SIDE_OFFSET,
    SIGMA_SCALE,
    VARIANCES,
    Signature,
    input_signature,
    output_signature,
)

from .onnx_graph import Proto
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
    proto = _read_flat(model)
    expected = input_signature(batch, size) | output_signature(batch, max_detections)
    found = _signature(proto)
    if found != expected:
        raise ArtifactError(
            f"the exported graph has inputs and outputs {_in_words(found)}; expected are {_in_words(expected)}"
        )
    check_types([proto], precision)
    return GraphReport(len(proto.graph.node), len(model))


def check_stages(first: bytes, second: bytes, manifest: Manifest) -> GraphReport:
    """Hold two stages to their contract.

    Args:
        first: serialised ONNX of the first stage.
        second: of the second.
        manifest: what it says of them.

    Raises:
        ArtifactError: as :func:`check_graph`, or the stages do not fit each other.
    """
    protos = [_read_flat(first), _read_flat(second)]
    before, behind = map(_signature, protos)
    expected = list(input_signature(manifest.batch, manifest.input_size).items())
    names = [name for name in SECOND_STAGE if name in behind or name != VARIANCES]
    if list(before) != [IMAGES, *FIRST_STAGE] or list(behind) != [FEATURES, PROPOSALS, *names]:
        raise ArtifactError(
            f"the stages have inputs and outputs {_in_words(before)} and {_in_words(behind)}; expected are those that "
            "the contract of the graph names"
        )
    (shape, _), (height, width) = before[FEATURES], manifest.input_size
    fits = list(before.items())[:1] == expected and before[FEATURES] == behind[FEATURES]
    if not fits or (shape[0], *shape[2:]) != (manifest.batch, height // STRIDE, width // STRIDE):
        raise ArtifactError(
            f"the stages do not fit each other or the manifest: {_in_words(before)} and {_in_words(behind)}"
        )
    check_types(protos, manifest.precision)
    return GraphReport(sum(len(proto.graph.node) for proto in protos), len(first) + len(second))


def _read_flat(model: bytes) -> Proto:
    """A valid graph without operators that have no place in it."""
    import onnx

    proto = onnx.load_from_string(model)
    try:
        onnx.checker.check_model(proto, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        raise ArtifactError(f"the exported graph is not valid ONNX: {error}. Please report this") from None
    foreign = {node.op_type for node in proto.graph.node if node.op_type in FORBIDDEN or node.domain}
    if foreign:
        raise ArtifactError(f"the exported graph holds {', '.join(sorted(foreign))}, which has no place there")
    return proto


def _signature(proto: Proto) -> Signature:
    return {value.name: _shape_and_type(value) for value in (*proto.graph.input, *proto.graph.output)}


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
