from __future__ import annotations

import io
import struct

import numpy as np
import pytest
from image_files import encode, exif, png_chunk, png_with, scene

from ptedge.frames.formats.header import HeaderError
from ptedge.frames.formats.png import png_fault, png_header

PNG = encode(scene(24, 40), ".png")


def test_png_header__size_bits_and_samples() -> None:
    header = png_header(io.BytesIO(PNG))
    assert (header.size, header.bits, header.samples, header.pictures) == ((40, 24), 8, 3, 1)
    deep = png_header(io.BytesIO(encode(np.zeros((2, 3), np.uint16), ".png")))
    assert (deep.size, deep.bits, deep.samples) == ((3, 2), 16, 1)


@pytest.mark.parametrize("place", [33, len(PNG) - 12])  # after the header, and before the end
def test_png_header__orientation_wherever_it_stands(place: int) -> None:
    data = PNG[:place] + png_chunk(b"eXIf", exif(8, ">")) + PNG[place:]
    assert png_header(io.BytesIO(data)).size == (24, 40)


def test_png_header__pictures_of_an_animation() -> None:
    animated = png_with(PNG, png_chunk(b"acTL", struct.pack(">II", 7, 0)))
    assert png_header(io.BytesIO(animated)).pictures == 7


def test_png_header__anything_else_first() -> None:
    with pytest.raises(HeaderError):
        png_header(io.BytesIO(PNG[:8] + png_chunk(b"CgBI", b"abcd") + PNG[8:]))


def test_png_fault() -> None:
    assert png_fault(PNG) is None
    assert "no end" in (png_fault(PNG[:-12]) or "")
