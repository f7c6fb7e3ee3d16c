"""Files of boxes: AVIF and HEIC, JPEG 2000.

References: ISO/IEC 14496-12 (boxes), 23008-12 (item properties: ispe, irot, imir), AV1 Image File Format 1.1;
ISO/IEC 15444-1, annexes A.5.1 (SIZ) and I (JP2).
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from typing import IO

import numpy as np
from numpy.typing import NDArray

from ptedge.frames.formats.header import Header, HeaderError, take, turned, unpack

JP2_START = b"\0\0\0\x0cjP  \r\n\x87\n"
J2K_START = b"\xff\x4f\xff\x51"
JXL_STARTS = (b"\xff\x0a", b"\0\0\0\x0cJXL \r\n\x87\n")

_LARGEST_BOX = 4 << 20  # of those that are read: properties and tables
_MOST_BOXES = 4096


def heif_header(file: IO[bytes]) -> Header:
    """Header of an AVIF file: size and orientation of its primary picture; that of a HEIC file says it is refused.

    The orientation is that of the properties ``irot`` and ``imir``. EXIF has no say in it (AV1 Image File Format, and
    so do browsers).

    Args:
        file: stands anywhere.

    Raises:
        HeaderError: it is neither, or its primary picture has no size.
    """
    file.seek(0)
    meta = moov = b""
    brands: set[bytes] = set()
    for kind, size in _top_boxes(file):
        if kind in (b"ftyp", b"meta", b"moov"):
            body = take(file, min(size, _LARGEST_BOX))
            if kind == b"ftyp":
                brands = {body[i : i + 4] for i in range(0, len(body), 4) if i != 4}
            elif kind == b"meta":
                meta = meta or body
            else:
                moov = moov or body
    if not brands & {b"avif", b"avis"}:
        if brands & {b"heic", b"heix", b"hevc", b"hevx", b"heim", b"mif1", b"msf1"}:
            return Header("HEIC", 1, 1, refusal="HEIC, which OpenCV cannot read. Convert it to JPEG")
        raise HeaderError("neither AVIF nor HEIC")
    width, height, orientation, bits = _primary(meta)
    frames, track_width, track_height = _track(moov)
    if orientation < 5 or not frames:
        width, height = max(width, track_width), max(height, track_height)
    return Header("AVIF", width, height, orientation, bits, samples=4, pictures=max(1, frames))


def jp2_header(file: IO[bytes]) -> Header:
    """Header of a JPEG 2000 file or codestream: what its codestream says, for that is what is decoded.

    Args:
        file: stands anywhere.

    Raises:
        HeaderError: there is no codestream.
    """
    file.seek(0)
    if file.read(4) != J2K_START:
        file.seek(0)
        if all(kind != b"jp2c" for kind, _ in _until(file, b"jp2c")) or take(file, 4) != J2K_START:
            raise HeaderError("a JPEG 2000 file without a codestream")
    take(file, 4)  # length, capabilities
    right, bottom, left, top = unpack(file, ">IIII")
    take(file, 16)  # tiles
    samples, bits = unpack(file, ">HB")
    return Header("JPEG 2000", max(0, right - left), max(0, bottom - top), 1, (bits & 0x7F) + 1, samples=samples)


def jxl_header(file: IO[bytes]) -> Header:
    """That of a JPEG XL file: it says that the file is refused."""
    del file
    return Header("JPEG XL", 1, 1, refusal="JPEG XL, which OpenCV cannot read. Convert it to JPEG or PNG")


def _until(file: IO[bytes], wanted: bytes) -> Iterator[tuple[bytes, int]]:
    """Boxes up to the wanted one, whose body the file then stands before."""
    for kind, size in _top_boxes(file):
        yield kind, size
        if kind == wanted:
            return


def _top_boxes(file: IO[bytes]) -> Iterator[tuple[bytes, int]]:
    """Kind and size of the body of each box of a file that stands before it; who takes them may move the file."""
    position = file.tell()
    for _ in range(_MOST_BOXES):
        file.seek(position)
        head = file.read(16)
        if len(head) < 8:
            return
        size, kind = struct.unpack_from(">I4s", head)
        used = 8
        if size == 1 and len(head) == 16:
            (size,) = struct.unpack_from(">Q", head, 8)
            used = 16
        if size == 0:  # to the end of the file
            size = file.seek(0, io.SEEK_END) - position
        if size < used or position + size >= 1 << 62:
            return
        file.seek(position + used)
        yield kind, size - used
        position += size


def _inner(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Kind and body of each box within another."""
    position = 0
    while position + 8 <= len(data):
        size, kind = struct.unpack_from(">I4s", data, position)
        if size == 0:
            size = len(data) - position
        if size < 8:
            return
        yield kind, data[position + 8 : position + size]
        position += size


def _primary(meta: bytes) -> tuple[int, int, int, int]:
    """Width, height, orientation and bits of the primary item."""
    try:
        boxes = dict(_inner(meta[4:]))
        primary = boxes[b"pitm"]
        (item,) = struct.unpack_from(">I" if primary[0] else ">H", primary, 4)
        properties = dict(_inner(boxes[b"iprp"]))
        known = list(_inner(properties[b"ipco"]))
        width = height = 0
        bits = 8
        upright: NDArray[np.uint8] = np.arange(4, dtype=np.uint8).reshape(2, 2)
        for index in _associations(properties[b"ipma"], item):
            kind, body = known[index - 1] if 0 < index <= len(known) else (b"", b"")
            if kind == b"ispe":
                width, height = struct.unpack_from(">II", body, 4)
            elif kind == b"pixi" and body[4]:
                bits = body[5]
            elif kind == b"irot":  # quarter turns against the clock
                upright = np.rot90(upright, body[0] & 3)
            elif kind == b"imir":  # 0: up and down change places; 1: left and right
                upright = upright[:, ::-1] if body[0] & 1 else upright[::-1]
    except (KeyError, IndexError, struct.error):
        raise HeaderError("an AVIF without a primary picture") from None
    if not width or not height:
        raise HeaderError("an AVIF whose primary picture has no size")
    square = np.arange(4, dtype=np.uint8).reshape(2, 2)
    orientation = next(o for o in range(1, 9) if np.array_equal(turned(square, o), upright))
    return width, height, orientation, bits


def _associations(data: bytes, wanted: int) -> list[int]:
    """Numbers, from 1, of the properties of an item, in the order in which they apply."""
    version, wide = data[0], data[3] & 1
    (count,) = struct.unpack_from(">I", data, 4)
    position = 8
    for _ in range(count):
        (item,) = struct.unpack_from(">I" if version else ">H", data, position)
        position += 4 if version else 2
        number = data[position]
        form, mask = (">H", 0x7FFF) if wide else (">B", 0x7F)
        step = struct.calcsize(form)
        indices = [struct.unpack_from(form, data, position + 1 + i * step)[0] & mask for i in range(number)]
        position += 1 + number * step
        if item == wanted:
            return indices
    return []


def _track(moov: bytes) -> tuple[int, int, int]:
    """Pictures, width and height of the sequence in an animated AVIF; zeros where there is none."""
    sizes, entry = moov.find(b"stsz"), moov.find(b"av01")
    frames = struct.unpack_from(">I", moov, sizes + 12)[0] if 0 <= sizes <= len(moov) - 16 else 0
    width, height = struct.unpack_from(">HH", moov, entry + 28) if 0 <= entry <= len(moov) - 32 else (0, 0)
    return frames, width, height
