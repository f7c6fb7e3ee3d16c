"""JPEG files: their header, and whether they are whole.

Reference: ITU-T T.81, annex B (markers and segments).
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from typing import IO

from ptedge.frames.formats.header import Header, HeaderError, take, unpack
from ptedge.frames.formats.tiff import exif_orientation

JPEG_START = b"\xff\xd8"
JPEG_END = b"\xff\xd9"

_SCAN = 0xDA
_ALONE = frozenset({0x01, *range(0xD0, 0xD9)})  # markers without a segment
# start-of-frame markers: C0 to CF without C4 (Huffman tables), C8 (reserved) and CC (arithmetic tables)
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}


def jpeg_header(file: IO[bytes]) -> Header:
    """Header of a JPEG file: frame size, turned by the EXIF orientation.

    Args:
        file: stands anywhere.

    Raises:
        HeaderError: there is no frame.
    """
    file.seek(len(JPEG_START))
    orientation, frame = 1, None
    try:
        for marker, body in _segments(file):
            if marker == 0xE1 and body.startswith(b"Exif\0\0") and orientation == 1:
                orientation = exif_orientation(body[6:])
            elif marker in _FRAMES and len(body) >= 6 and frame is None:
                frame = struct.unpack_from(">BHHB", body)
    except HeaderError:
        if frame is None:
            raise
    if frame is None:
        raise HeaderError("a JPEG without a frame")
    bits, height, width, samples = frame
    refusal = "" if bits == 8 else f"a JPEG of {bits} bits a sample, which OpenCV cannot read. Convert it to 8"
    return Header("JPEG", width, height, orientation, bits, samples=samples, refusal=refusal)


def _segments(file: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    """Marker and body of the segments before the first scan."""
    while True:
        marker = take(file, 1)
        if marker != b"\xff":
            raise HeaderError("a JPEG with bytes between its segments")
        while marker == b"\xff":
            marker = take(file, 1)
        if marker[0] == _SCAN or marker[0] == JPEG_END[1]:
            return
        if marker[0] in _ALONE:
            continue
        (length,) = unpack(file, ">H")
        if marker[0] in _FRAMES or marker[0] == 0xE1:
            yield marker[0], take(file, max(0, length - 2))
        else:
            file.seek(max(0, length - 2), io.SEEK_CUR)


def jpeg_has_end(data: bytes | bytearray) -> bool:
    """Whether JPEG data, from its first byte on, reaches its end marker.

    Args:
        data: content of a file, or of a part of a stream.
    """
    return jpeg_end(data) >= 0


def jpeg_end(data: bytes | bytearray) -> int:
    """Where JPEG data end: the place after the end marker; -1 where they do not.

    Args:
        data: from the first byte of a picture on.
    """
    # segments have to be walked: an embedded thumbnail has an end marker of its own
    position = 2
    while position + 4 <= len(data):
        if data[position] != 0xFF:
            return -1
        marker = data[position + 1]
        if marker == 0xFF:  # padding
            position += 1
            continue
        (length,) = struct.unpack_from(">H", data, position + 2)
        position += 2 + length
        if marker == _SCAN:
            # inside a scan FF is followed by 00, so the pair FF D9 is the end and nothing else
            end = data.find(JPEG_END, position)
            return end + 2 if end >= 0 else -1
    return -1


def jpeg_scans(data: bytes) -> int:
    """How often a decoder passes over the picture: scans of a progressive JPEG, those of a thumbnail included."""
    return data.count(b"\xff\xda")
