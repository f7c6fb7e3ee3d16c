from __future__ import annotations

import io
import struct

import pytest
from image_files import exif, tiff, tiff_directory

from ptedge.frames.formats.header import HeaderError
from ptedge.frames.formats.tiff import exif_orientation, tiff_header


def header_of(data: bytes):  # type: ignore[no-untyped-def]
    return tiff_header(io.BytesIO(data))


@pytest.mark.parametrize("order", ["<", ">"])
def test_tiff_header__size_bits_orientation(order: str) -> None:
    header = header_of(tiff({256: 3, 257: 2, 258: (16, 16, 16), 277: 3, 274: 6}, b"\0" * 36, order))
    assert (header.width, header.height, header.size) == (3, 2, (2, 3))
    assert (header.bits, header.samples, header.pictures, header.inverted) == (16, 3, 1, False)
    assert header_of(tiff({262: 0}, b"ab", order)).inverted


def test_tiff_header__pages_without_previews_and_masks() -> None:
    first = tiff({}, b"ab")
    at = len(first)
    second = tiff_directory({256: 9, 257: 9}, at + 2 + 24 + 4)
    third = tiff_directory({254: 1, 256: 4, 257: 4}, at)  # a preview; points back, so that there is no end
    assert header_of(tiff({}, b"ab", following=second + third)).pictures == 2


@pytest.mark.parametrize(
    ("tags", "why"),
    [
        ({50706: 1}, "DNG"),
        ({262: 32803}, "DNG"),
        ({254: 1}, "small preview"),
        ({258: 32, 339: 3}, "32-bit"),
        ({339: 2}, "signed"),
        ({262: 8}, "colours"),
    ],
)
def test_tiff_header__what_would_come_out_wrong_is_refused(tags: dict[int, int], why: str) -> None:
    assert why in header_of(tiff(tags, b"abcd")).refusal


def test_tiff_header__a_tag_twice_counts_as_the_larger() -> None:
    entries = [(256, 9000), (256, 3), (257, 3), (257, 8000)]
    directory = struct.pack("<H", 4) + b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in entries)
    header = header_of(b"II*\0" + struct.pack("<I", 8) + directory + bytes(4))
    assert (header.width, header.height) == (9000, 8000)


def test_tiff_header__without_a_size() -> None:
    for data in (
        b"II*\0" + struct.pack("<I", 8) + tiff_directory({256: 3}),
        b"II*\0",
        b"II*\0\xff\xff\xff\xff",
        b"MM\0+",
    ):
        with pytest.raises(HeaderError):
            header_of(data)


def test_exif_orientation() -> None:
    assert [exif_orientation(exif(value)) for value in (1, 6, 8, 0, 9)] == [1, 6, 8, 1, 1]
    assert exif_orientation(b"Exif\0\0" + exif(3, ">")) == 3
    assert exif_orientation(exif(6)[:12]) == exif_orientation(b"") == exif_orientation(b"II*\0\xff\xff\xff\xff") == 1
