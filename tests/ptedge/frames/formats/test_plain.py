from __future__ import annotations

import io
import struct

import pytest
from image_files import encode, scene, webp_with_orientation

from ptedge.frames.formats.header import HeaderError
from ptedge.frames.formats.plain import bmp_header, gif_header, pnm_header, webp_header

FRAME = b",\0\0\0\0\x05\0\x04\0\0\x02\x01\x44\0"  # a picture of 5 x 4 at the corner, one block of data


def gif(*parts: bytes) -> bytes:
    return b"GIF89a" + struct.pack("<HHBBB", 5, 4, 0x80, 0, 0) + bytes(6) + b"".join(parts) + b";"


def test_bmp_header__rows_from_the_top_have_a_negative_height() -> None:
    data = bytearray(encode(scene(24, 40), ".bmp"))
    assert bmp_header(io.BytesIO(bytes(data))).size == (40, 24)
    data[22:26] = struct.pack("<i", -24)
    assert bmp_header(io.BytesIO(bytes(data))).size == (40, 24)


def test_gif_header__pictures_and_blocks_between() -> None:
    comment = b"!\xfe\x03abc\0"
    header = gif_header(io.BytesIO(gif(FRAME, comment, FRAME, comment, FRAME)))
    assert (header.size, header.pictures) == ((5, 4), 3)
    larger = FRAME[:5] + struct.pack("<HH", 900, 800) + FRAME[9:]
    assert gif_header(io.BytesIO(gif(larger))).size == (900, 800)


@pytest.mark.parametrize("quality", [50, 101])  # above 100: lossless
def test_webp_header(quality: int) -> None:
    data = encode(scene(24, 40), ".webp", (64, quality))  # IMWRITE_WEBP_QUALITY
    assert webp_header(io.BytesIO(data)).size == (40, 24)
    assert webp_header(io.BytesIO(webp_with_orientation(data, 40, 24, 6))).size == (24, 40)
    frame = b"ANMF" + struct.pack("<I", 16) + bytes(16)
    assert webp_header(io.BytesIO(data + 3 * frame)).pictures == 3
    with pytest.raises(HeaderError):
        webp_header(io.BytesIO(data[:12]))


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"P5\n4 3\n255\n", (4, 3, 8, 255)),
        (b"P6 # a comment 9 9\n# another\n4\t3 1023\n9 9", (4, 3, 16, 1023)),
        (b"P5\n4 3\n15\n", (4, 3, 8, 15)),
        (b"P2\n4 3\n15\n", (4, 3, 8, 255)),
        (b"P4\n4 3\n", (4, 3, 1, None)),
        (b"P7\nWIDTH 4\nHEIGHT 3\nDEPTH 1\nMAXVAL 4095\nENDHDR\nWIDTH 9", (4, 3, 16, 4095)),
    ],
)
def test_pnm_header(data: bytes, expected: tuple[int, int, int, int | None]) -> None:
    header = pnm_header(io.BytesIO(data))
    assert (header.width, header.height, header.bits, header.white) == expected


@pytest.mark.parametrize("data", [b"P5\n4\n", b"P5\n4 x\n255\n", b"P6 4 3 0\n", b"P6 4 3 70000\n", b"P7\nWIDTH 4\n"])
def test_pnm_header__numbers_missing_or_wrong(data: bytes) -> None:
    with pytest.raises(HeaderError):
        pnm_header(io.BytesIO(data))
