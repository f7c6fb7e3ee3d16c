from __future__ import annotations

import io
import struct

import cv2
import numpy as np
import pytest
from image_files import avif_turned, box, encode, scene

from ptedge.frames.formats.header import HeaderError
from ptedge.frames.formats.isobmff import heif_header, jp2_header


def made(*properties: bytes, brand: bytes = b"avif", version: int = 0) -> bytes:
    """A file whose primary item 2 has these properties; item 1 is another one of 9 x 9 pixels, turned."""
    known = [box(b"ispe", bytes(4) + struct.pack(">II", 9, 9)), box(b"irot", b"\1"), *properties]
    form = ">I" if version else ">H"
    entries = struct.pack(form, 1) + bytes([2, 1, 2])
    entries += struct.pack(form, 2) + bytes([len(properties), *range(3, 3 + len(properties))])
    ipma = box(b"ipma", bytes([version, 0, 0, 0]) + struct.pack(">I", 2) + entries)
    meta = box(b"pitm", bytes(4) + struct.pack(">H", 2)) + box(b"iprp", box(b"ipco", b"".join(known)) + ipma)
    return box(b"ftyp", brand + bytes(4) + b"mif1") + box(b"meta", bytes(4) + meta)


ISPE = box(b"ispe", bytes(4) + struct.pack(">II", 40, 24))
UP_DOWN, LEFT_RIGHT = box(b"imir", b"\0"), box(b"imir", b"\1")


def turn(quarters: int) -> bytes:
    return box(b"irot", bytes([quarters]))


# quarter turns are against the clock: one is orientation 8 of EXIF (270 degrees with the clock)
@pytest.mark.parametrize(
    ("properties", "orientation"),
    [
        ((), 1),
        ((LEFT_RIGHT,), 2),
        ((turn(2),), 3),
        ((UP_DOWN,), 4),
        ((turn(1), UP_DOWN), 5),
        ((turn(3),), 6),
        ((turn(1), LEFT_RIGHT), 7),
        ((turn(1),), 8),
        ((UP_DOWN, turn(1)), 7),  # the order counts
    ],
)
@pytest.mark.parametrize("version", [0, 1])
def test_heif_header__turns(properties: tuple[bytes, ...], orientation: int, version: int) -> None:
    header = heif_header(io.BytesIO(made(ISPE, *properties, version=version)))
    assert (header.kind, header.width, header.height) == ("AVIF", 40, 24)
    assert header.orientation == orientation


def test_heif_header__bits() -> None:
    assert heif_header(io.BytesIO(made(ISPE, box(b"pixi", bytes([0, 0, 0, 0, 3, 12, 12, 12]))))).bits == 12


@pytest.mark.skipif(not cv2.haveImageWriter("a.avif"), reason="this OpenCV has no AVIF")
def test_heif_header__the_encoder_agrees() -> None:
    header = heif_header(io.BytesIO(encode(scene(24, 40), ".avif")))
    assert (header.size, header.bits, header.pictures) == ((40, 24), 8, 1)
    assert heif_header(io.BytesIO(avif_turned(encode(scene(24, 40), ".avif"), turn(3)))).size == (24, 40)


def test_heif_header__a_track_larger_than_the_still_picture_counts() -> None:
    entry = b"av01" + bytes(24) + struct.pack(">HH", 9000, 8000)
    moov = box(b"moov", box(b"stsz", bytes(8) + struct.pack(">I", 5)) + entry)
    header = heif_header(io.BytesIO(made(ISPE, brand=b"avis") + moov))
    assert (header.width, header.height, header.pictures) == (9000, 8000, 5)


def test_heif_header__heic_and_others() -> None:
    assert "HEIC" in heif_header(io.BytesIO(made(brand=b"heic"))).refusal
    for data in (made(brand=b"isom").replace(b"mif1", b"mp42"), made(), made(ISPE)[:-20]):
        with pytest.raises(HeaderError):
            heif_header(io.BytesIO(data))


def test_jp2_header__what_the_codestream_says() -> None:
    data = encode(np.zeros((80, 96, 3), np.uint8), ".jp2")
    for whole in (data, data[data.index(b"\xff\x4f\xff\x51") :]):
        header = jp2_header(io.BytesIO(whole))
        assert (header.size, header.bits, header.samples) == ((96, 80), 8, 3)
    changed = data.replace(struct.pack(">II", 80, 96), struct.pack(">II", 1, 1))  # the box that nobody decodes by
    assert jp2_header(io.BytesIO(changed)).size == (96, 80)
    assert cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR).shape == (80, 96, 3)
