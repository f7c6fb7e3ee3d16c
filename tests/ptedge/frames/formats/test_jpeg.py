from __future__ import annotations

import io

import pytest
from image_files import encode, jpeg_with_orientation, scene

from ptedge.frames.formats.header import HeaderError
from ptedge.frames.formats.jpeg import jpeg_end, jpeg_header, jpeg_scans


def test_jpeg_header__size_bits_and_orientation() -> None:
    header = jpeg_header(io.BytesIO(jpeg_with_orientation(encode(scene(24, 40)), 6)))
    assert (header.kind, header.width, header.height, header.size) == ("JPEG", 40, 24, (24, 40))
    assert (header.orientation, header.bits, header.samples, header.refusal) == (6, 8, 3, "")
    assert jpeg_header(io.BytesIO(encode(scene()[..., 0]))).samples == 1


def test_jpeg_header__the_first_exif_counts() -> None:
    twice = jpeg_with_orientation(jpeg_with_orientation(encode(scene()), 3), 6)
    assert jpeg_header(io.BytesIO(twice)).orientation == 6


def test_jpeg_header__twelve_bits_are_refused() -> None:
    data = bytearray(encode(scene()))
    data[data.index(b"\xff\xc0") + 4] = 12
    assert "12 bits" in jpeg_header(io.BytesIO(bytes(data))).refusal


@pytest.mark.parametrize("data", [b"\xff\xd8", b"\xff\xd8\xff\xe0\xff\xff", b"\xff\xd8abc", b"\xff\xd8\xff\xda\0\2"])
def test_jpeg_header__without_a_frame(data: bytes) -> None:
    with pytest.raises(HeaderError):
        jpeg_header(io.BytesIO(data))


def test_jpeg_end() -> None:
    data = encode(scene())
    assert jpeg_end(data) == len(data) and jpeg_end(data + b"more") == len(data)
    assert jpeg_end(data[:-1]) == -1


def test_jpeg_scans() -> None:
    assert jpeg_scans(encode(scene())) == 1
    assert jpeg_scans(encode(scene(), ".jpg", (2, 1))) > 5  # IMWRITE_JPEG_PROGRESSIVE
