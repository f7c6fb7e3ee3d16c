"""The text fields an ONNX file carries, read and added without the onnx package, which devices do not have.

An ONNX file is one protobuf message, ``ModelProto``; its field 14, repeated, holds key and value. Protobuf defines the
concatenation of two messages as their merge, so a field is added by appending its bytes, and all fields are found by
walking the top level, skipping the graph by its length.

Reference: protobuf.dev/programming-guides/encoding; onnx.proto, messages ModelProto and StringStringEntryProto.
"""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import BinaryIO

METADATA_TAG = 14 << 3 | 2  # ModelProto.metadata_props, length-delimited
KEY_TAG = 1 << 3 | 2  # StringStringEntryProto.key
VALUE_TAG = 2 << 3 | 2  # StringStringEntryProto.value


def add_metadata(model: bytes, key: str, value: str) -> bytes:
    """A serialised ONNX model with one more metadata field.

    Args:
        model: serialised ``ModelProto``.
        key: name of the field; not one the model has already.
        value: text.

    Returns:
        The serialised model with the field.
    """
    entry = _delimited(KEY_TAG, key.encode()) + _delimited(VALUE_TAG, value.encode())
    return model + _delimited(METADATA_TAG, entry)


def read_metadata(path: Path) -> dict[str, str]:
    """All metadata fields of an ONNX file.

    Args:
        path: ONNX file. The graph and its weights are skipped, not read.

    Raises:
        ValueError: not a whole protobuf message, for example a truncated file.
        OSError: it cannot be read.
    """
    with open(path, "rb") as file:
        entries = _fields(file, os.fstat(file.fileno()).st_size, METADATA_TAG)
    found: dict[str, str] = {}
    for entry in entries:
        key = b"".join(_fields(io.BytesIO(entry), len(entry), KEY_TAG))
        value = b"".join(_fields(io.BytesIO(entry), len(entry), VALUE_TAG))
        found[key.decode()] = value.decode()
    return found


def _fields(file: BinaryIO, size: int, wanted: int) -> list[bytes]:
    """Contents of the length-delimited fields with one tag, at the top level of a message of ``size`` bytes."""
    contents: list[bytes] = []
    while file.tell() < size:
        tag = _read_varint(file)
        wire_type = tag & 7
        if wire_type == 0:
            _read_varint(file)
            continue
        if wire_type not in (1, 2, 5):
            raise ValueError(f"not a protobuf message: wire type {wire_type} at byte {file.tell()}")
        length = {1: 8, 5: 4}[wire_type] if wire_type != 2 else _read_varint(file)
        if file.tell() + length > size:
            raise ValueError(f"a field goes on to byte {file.tell() + length}, but there are {size}")
        if tag == wanted:
            contents.append(file.read(length))
        else:
            file.seek(length, os.SEEK_CUR)
    return contents


def _read_varint(file: BinaryIO) -> int:
    value = 0
    for shift in range(0, 70, 7):
        byte = file.read(1)
        if not byte:
            raise ValueError("the file ends inside a number")
        value |= (byte[0] & 0x7F) << shift
        if byte[0] < 0x80:
            return value
    raise ValueError("not a protobuf message: a number of more than ten bytes")


def _delimited(tag: int, content: bytes) -> bytes:
    return _varint(tag) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
