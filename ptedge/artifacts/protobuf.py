"""Walk the fields of a protobuf message without the library that knows its kind.

A message is a row of fields, each a tag (number and wire type) and a value; a value of wire type 2 says its length and
may be a message itself. So any field is found, and what is not wanted is skipped unread.

Reference: protobuf.dev/programming-guides/encoding.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

MOST_FIELDS = 200_000  # of one walk; a detector has about 7,000 on all ways to its tensors

VARINT, FIXED64, DELIMITED, FIXED32 = 0, 1, 2, 5


@dataclass(frozen=True)
class Field:
    """One field, its content not read.

    Attributes:
        number: as the message's description has it.
        wire_type: how the value is written.
        value: of a ``VARINT``; otherwise 0.
        start: byte of the file at which the content begins.
        size: bytes of the content.
    """

    number: int
    wire_type: int
    value: int
    start: int
    size: int


class Walker:
    """Walks messages in one file and counts, so that no file keeps it for long.

    Attributes:
        file: what it reads.
        left: fields it will still look at.
    """

    def __init__(self, file: BinaryIO, most: int = MOST_FIELDS) -> None:
        self.file = file
        self.left = most

    def fields(self, start: int, size: int) -> Iterator[Field]:
        """Fields of a message.

        Args:
            start: byte at which it begins.
            size: its bytes.

        Raises:
            ValueError: not a whole protobuf message, or one of more fields than are left.
        """
        at, end = start, start + size
        while at < end:
            self.left -= 1
            if self.left < 0:
                raise ValueError("it has more fields than a model needs")
            self.file.seek(at)
            head = self.file.read(20)  # a tag and a length have ten bytes each at most
            tag, used = _varint(head, 0)
            wire_type = tag & 7
            value = 0
            if wire_type == VARINT:
                value, behind = _varint(head, used)
                length = behind - used
            elif wire_type == DELIMITED:
                length, used = _varint(head, used)
            elif wire_type in (FIXED64, FIXED32):
                length = 8 if wire_type == FIXED64 else 4
            else:
                raise ValueError(f"not a protobuf message: wire type {wire_type} at byte {at}")
            field = Field(tag >> 3, wire_type, value, at + used, length)
            at = field.start + length
            if at > end:
                raise ValueError(f"a field goes on to byte {at}, but there are {end}")
            yield field

    def content(self, field: Field, most: int) -> bytes:
        """What a field holds.

        Args:
            field: of :meth:`fields`.
            most: bytes it may have.

        Raises:
            ValueError: it has more.
        """
        if field.size > most:
            raise ValueError(f"field {field.number} has {field.size} bytes; {most} are the most")
        self.file.seek(field.start)
        return self.file.read(field.size)


def size_of(file: BinaryIO) -> int:
    """Bytes of an open file."""
    return file.seek(0, os.SEEK_END)


def delimited(number: int, content: bytes) -> bytes:
    """A field of wire type 2, as bytes.

    Args:
        number: of the field.
        content: what it holds.
    """
    return _to_varint(number << 3 | DELIMITED) + _to_varint(len(content)) + content


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number and the place behind it."""
    value = 0
    for i, byte in enumerate(data[at : at + 10]):
        value |= (byte & 0x7F) << 7 * i
        if byte < 0x80:
            return value, at + i + 1
    if len(data) - at < 10:
        raise ValueError("the file ends inside a number")
    raise ValueError("not a protobuf message: a number of more than ten bytes")


def _to_varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
