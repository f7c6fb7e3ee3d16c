from __future__ import annotations

import io

import pytest

from ptedge.artifacts.protobuf import DELIMITED, FIXED32, FIXED64, VARINT, Field, Walker, delimited, size_of


def fields(data: bytes, most: int = 100) -> list[Field]:
    return list(Walker(io.BytesIO(data), most).fields(0, len(data)))


def test_fields__each_wire_type_by_hand() -> None:
    # field 1 = 300, field 2 = "ab", field 3 fixed of 4 bytes, field 4 fixed of 8, field 1000 = 1
    data = b"\x08\xac\x02" + b"\x12\x02ab" + b"\x1d1234" + b"\x2112345678" + b"\xc0\x3e\x01"
    assert fields(data) == [
        Field(1, VARINT, 300, 1, 2),
        Field(2, DELIMITED, 0, 5, 2),
        Field(3, FIXED32, 0, 8, 4),
        Field(4, FIXED64, 0, 13, 8),
        Field(1000, VARINT, 1, 23, 1),
    ]


def test_content__and_its_limit() -> None:
    walker = Walker(io.BytesIO(delimited(7, b"x" * 300)))
    (field,) = walker.fields(0, size_of(walker.file))
    assert field.number == 7 and walker.content(field, 300) == b"x" * 300
    with pytest.raises(ValueError, match="300 bytes; 299 are the most"):
        walker.content(field, 299)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\x0b", "wire type 3"),
        (b"\x08", "ends inside a number"),
        (b"\x08\x80", "ends inside a number"),
        (b"\x12\x05ab", "goes on to byte 7, but there are 4"),
        (b"\x1d12", "goes on to byte 5"),
        (b"\xff" * 12, "more than ten bytes"),
    ],
)
def test_fields__refuses(data: bytes, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        fields(data)


def test_fields__counts_over_all_messages() -> None:
    walker = Walker(io.BytesIO(b"\x08\x01" * 4), 7)
    assert len(list(walker.fields(0, 8))) == 4
    with pytest.raises(ValueError, match="more fields than a model needs"):
        list(walker.fields(0, 8))
