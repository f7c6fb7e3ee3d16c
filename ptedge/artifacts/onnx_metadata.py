"""What an ONNX file says at its edges, read without the onnx package, which devices do not have.

An ONNX file is one protobuf message, ``ModelProto``; its field 14, repeated, holds key and value. Protobuf defines the
concatenation of two messages as their merge, so a field is added by appending its bytes, and all fields are found by
walking the top level, skipping the graph by its length.

Reference: onnx.proto, messages ModelProto, StringStringEntryProto and, for external data, TensorProto.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import BinaryIO

from ptedge.artifacts.protobuf import DELIMITED, VARINT, Field, Walker, delimited, size_of
from ptedge.files import MOST_DEPTH, MOST_JSON_BYTES, open_regular

METADATA = 14  # ModelProto.metadata_props
KEY, VALUE = 1, 2  # of StringStringEntryProto
MOST_METADATA = 1000  # fields
MOST_BYTES = 1 << 30  # protobuf allows twice that; the largest detector here has 180 MB

# message -> field -> message in it: all ways to a TensorProto
_INSIDE = {
    "model": {7: "graph", 20: "training", 25: "function"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
    "function": {7: "node", 11: "attribute"},
    "training": {1: "graph", 2: "graph"},
}
_EXTERNAL_DATA, _DATA_LOCATION = 13, 14  # of TensorProto


def add_metadata(model: bytes, key: str, value: str) -> bytes:
    """A serialised ONNX model with one more metadata field.

    Args:
        model: serialised ``ModelProto``.
        key: name of the field; not one the model has already.
        value: text.

    Returns:
        The serialised model with the field.
    """
    return model + delimited(METADATA, delimited(KEY, key.encode()) + delimited(VALUE, value.encode()))


def without_metadata(model: bytes, key: str) -> bytes:
    """A serialised ONNX model without one of its metadata fields.

    Args:
        model: serialised ``ModelProto``.
        key: name of the field; one that is not there is none to remove.

    Raises:
        ValueError: not a whole protobuf message.
    """
    walker = Walker(io.BytesIO(model))
    kept, end = [], 0
    for field in walker.fields(0, len(model)):
        start, end = end, field.start + field.size  # from the field's tag on
        if not (field.number == METADATA and field.wire_type == DELIMITED and _entry(walker, field)[KEY] == key):
            kept.append(model[start:end])
    return b"".join(kept)


def read_metadata(path: Path) -> dict[str, str]:
    """All metadata fields of an ONNX file.

    Args:
        path: ONNX file. The graph and its weights are skipped, not read.

    Raises:
        ValueError: not a whole protobuf message, for example a truncated file; or a key that is there twice.
        OSError: it cannot be read.
    """
    with open_regular(path) as file:
        return metadata_in(file)


def metadata_in(file: BinaryIO) -> dict[str, str]:
    """As :func:`read_metadata`, of a file that is open already.

    Args:
        file: the file; where it stands does not matter.

    Raises:
        ValueError: as :func:`read_metadata`.
    """
    size = size_of(file)
    if size > MOST_BYTES:
        raise ValueError(f"it has more than {MOST_BYTES >> 30} GB")
    walker = Walker(file)
    found: dict[str, str] = {}
    left = MOST_JSON_BYTES
    for field in walker.fields(0, size):
        if field.number != METADATA or field.wire_type != DELIMITED:
            continue
        left -= field.size
        if left < 0 or len(found) >= MOST_METADATA:
            raise ValueError("its metadata are larger than a model needs")
        parts = _entry(walker, field)
        if parts[KEY] in found:
            raise ValueError(f"its metadata say {parts[KEY][:80]!r} twice")
        found[parts[KEY]] = parts[VALUE]
    return found


def _entry(walker: Walker, field: Field) -> dict[int, str]:
    """Key and value of a metadata field."""
    parts = {KEY: "", VALUE: ""}
    for part in walker.fields(field.start, field.size):
        if part.number in parts and part.wire_type == DELIMITED:
            parts[part.number] = walker.content(part, MOST_JSON_BYTES).decode()
    return parts


def has_external_data(file: BinaryIO) -> bool:
    """Whether a tensor of an ONNX file lies in another file, at a path of the model's choice.

    Args:
        file: open ONNX file; where it stands does not matter. Weights are skipped, not read.

    Raises:
        ValueError: not a whole protobuf message, nested too deep, or with more fields than a model needs.
    """
    walker = Walker(file)
    todo = [("model", Field(0, DELIMITED, 0, 0, size_of(file)), 0)]
    while todo:
        message, place, depth = todo.pop()
        if depth > MOST_DEPTH:
            raise ValueError("graphs are nested too deep")
        inside = _INSIDE.get(message, {})
        for field in walker.fields(place.start, place.size):
            if field.wire_type == DELIMITED and field.number in inside:
                todo.append((inside[field.number], field, depth + 1))
            elif message == "tensor" and _is_elsewhere(field):
                return True
    return False


def _is_elsewhere(field: Field) -> bool:
    if field.number == _EXTERNAL_DATA:
        return field.wire_type == DELIMITED
    return field.number == _DATA_LOCATION and field.wire_type == VARINT and field.value != 0
