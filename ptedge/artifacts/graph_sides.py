"""The calibration of box sides inside an ONNX file: two constants, read and written without the onnx package.

Each constant is sixteen bytes, four float32 in a row, so writing other numbers changes nothing else in the file.

Reference: onnx.proto, messages ModelProto, GraphProto and TensorProto.
"""

from __future__ import annotations

import io

import numpy as np

from ptedge.artifacts.protobuf import DELIMITED, VARINT, Field, Walker
from ptedge.calibration import Sides
from ptedge.graph_contract import SIDE_OFFSET, SIGMA_SCALE

_GRAPH = 7  # of ModelProto
_INITIALIZER = 5  # of GraphProto
_DATA_TYPE, _FLOAT_DATA, _NAME, _RAW_DATA = 2, 4, 8, 9  # of TensorProto
_FLOAT = 1  # TensorProto.DataType
_NUMBERS = np.dtype("<f4")
_BYTES = 4 * _NUMBERS.itemsize


def read_sides(model: bytes) -> tuple[Sides, Sides] | None:
    """What a graph corrects boxes and sigma by.

    Args:
        model: serialised ONNX.

    Returns:
        Offset and scale; ``None`` for a graph without these constants, as it was exported before there were any.

    Raises:
        ValueError: not a whole protobuf message, or a constant of these names that is not four float32.
    """
    places = _places(model)
    if not places:
        return None
    offset, scale = (_numbers(model, places[name]) for name in (SIDE_OFFSET, SIGMA_SCALE))
    return offset, scale


def write_sides(model: bytes, offset: Sides, scale: Sides) -> bytes:
    """The same graph with another correction.

    Args:
        model: serialised ONNX.
        offset: as :attr:`ptedge.calibration.SideCalibration.offset`.
        scale: as :attr:`ptedge.calibration.SideCalibration.scale`.

    Raises:
        ValueError: as :func:`read_sides`, or the graph has no such constants.
    """
    places = _places(model)
    if not places:
        raise ValueError(f"its graph has no constants {SIDE_OFFSET} and {SIGMA_SCALE}")
    changed = bytearray(model)
    for name, values in ((SIDE_OFFSET, offset), (SIGMA_SCALE, scale)):
        changed[places[name] : places[name] + _BYTES] = np.array(values, _NUMBERS).tobytes()
    return bytes(changed)


def _numbers(model: bytes, start: int) -> Sides:
    x1, y1, x2, y2 = np.frombuffer(model, _NUMBERS, 4, start).tolist()
    return x1, y1, x2, y2


def _places(model: bytes) -> dict[str, int]:
    """Where the numbers of each constant begin; empty where there is neither."""
    walker = Walker(io.BytesIO(model))
    found: dict[str, int] = {}
    for graph in walker.fields(0, len(model)):
        if (graph.number, graph.wire_type) != (_GRAPH, DELIMITED):
            continue
        for tensor in walker.fields(graph.start, graph.size):
            if (tensor.number, tensor.wire_type) != (_INITIALIZER, DELIMITED):
                continue
            name, start = _constant(walker, tensor)
            if name in found:
                raise ValueError(f"its graph has two constants {name}")
            if name in (SIDE_OFFSET, SIGMA_SCALE):
                found[name] = start
    if len(found) == 1:
        raise ValueError(f"its graph has the constant {next(iter(found))} without the other one")
    return found


def _constant(walker: Walker, tensor: Field) -> tuple[str, int]:
    """Name of a tensor; of ours, also where its numbers begin."""
    name, kind, data = "", 0, []
    for part in walker.fields(tensor.start, tensor.size):
        if (part.number, part.wire_type) == (_NAME, DELIMITED):
            name = walker.content(part, part.size).decode("utf-8", "replace")
        elif (part.number, part.wire_type) == (_DATA_TYPE, VARINT):
            kind = part.value
        elif part.number in (_RAW_DATA, _FLOAT_DATA) and part.wire_type == DELIMITED:
            data.append(part)
    if name not in (SIDE_OFFSET, SIGMA_SCALE):
        return name, 0
    if kind != _FLOAT or [part.size for part in data] != [_BYTES]:
        raise ValueError(f"the constant {name} of its graph is not four float32")
    return name, data[0].start
