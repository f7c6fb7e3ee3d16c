"""PNG files: their header, and whether they are whole.

Reference: PNG specification, third edition; 5 (chunks), 11.3.4.5 (eXIf), 11.3.6 (animation).
"""

from __future__ import annotations

import io
import struct
import zlib
from typing import IO

from ptedge.frames.formats.header import Header, HeaderError, take, unpack
from ptedge.frames.formats.tiff import exif_orientation

PNG_START = b"\x89PNG\r\n\x1a\n"

_SAMPLES = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}  # of the colour types
_LONGEST_EXIF = 1 << 20


def png_header(file: IO[bytes]) -> Header:
    """Header of a PNG file, with the orientation of its EXIF chunk wherever that stands.

    Args:
        file: stands anywhere.

    Raises:
        HeaderError: its first chunk is not what it has to be.
    """
    file.seek(len(PNG_START))
    length, kind = unpack(file, ">I4s")
    if kind != b"IHDR" or length != 13:
        raise HeaderError("a PNG that does not begin with its header")
    width, height, bits, colour = unpack(file, ">IIBB")
    take(file, 3 + 4)
    orientation, pictures = 1, 1
    while True:
        head = file.read(8)
        if len(head) < 8:
            break  # cut short: what is known so far
        length, kind = struct.unpack(">I4s", head)
        if kind == b"IEND":
            break
        used = 0
        if kind == b"eXIf" and length <= _LONGEST_EXIF:
            data = file.read(length)
            orientation, used = exif_orientation(data), len(data)
        elif kind == b"acTL" and length == 8:
            data = file.read(8)
            pictures, used = (max(1, int.from_bytes(data[:4], "big")) if len(data) == 8 else 1), len(data)
        file.seek(length - used + 4, io.SEEK_CUR)
    return Header("PNG", width, height, orientation, bits, samples=_SAMPLES.get(colour, 4), pictures=pictures)


def png_fault(data: bytes) -> str | None:
    """What is wrong with the chunks of a PNG file that a decoder may let pass, or None.

    Args:
        data: content of the file.
    """
    position = 8
    while position + 12 <= len(data):
        length, kind = struct.unpack_from(">I4s", data, position)
        end = position + 8 + length
        if end + 4 > len(data):
            break
        # only the chunks that make the picture: upper-case first letter
        if kind[:1].isupper() and zlib.crc32(data[position + 4 : end]) != struct.unpack_from(">I", data, end)[0]:
            return "corrupt (a PNG checksum is wrong)"
        if kind == b"IEND":
            return None
        position = end + 4
    return "truncated (the PNG data has no end)"
