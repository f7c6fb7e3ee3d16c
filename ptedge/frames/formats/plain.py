"""Headers of BMP, GIF, WebP and the PNM family (PBM, PGM, PPM, PAM)."""

from __future__ import annotations

import io
import re
import struct
from typing import IO

from ptedge.frames.formats.header import Header, HeaderError, take, unpack
from ptedge.frames.formats.tiff import exif_orientation

_LONGEST_PNM_HEADER = 1 << 16
_LONGEST_EXIF = 1 << 20
_MOST_PICTURES = 10_000
_PAM_LINE = re.compile(rb"^[ \t]*(WIDTH|HEIGHT|DEPTH|MAXVAL)[ \t]+(\d{1,10})[ \t]*\r?$", re.MULTILINE)
_PNM_NUMBER = re.compile(rb"(?:\s|#[^\r\n]*[\r\n])*(\d{1,10})(?!\d)")


def bmp_header(file: IO[bytes]) -> Header:
    """Header of a Windows bitmap. Raises HeaderError."""
    file.seek(14)
    (length,) = unpack(file, "<I")
    width, height = unpack(file, "<HH" if length == 12 else "<ii")
    return Header("BMP", abs(width), abs(height))


def gif_header(file: IO[bytes]) -> Header:
    """Header of a GIF file, its pictures counted. Raises HeaderError."""
    file.seek(6)
    width, height, flags = unpack(file, "<HHB")
    take(file, 2)
    file.seek(_table(flags), io.SEEK_CUR)
    pictures = 0
    while pictures < _MOST_PICTURES:
        kind = file.read(1)
        if kind == b",":
            pictures += 1
            head = file.read(9)
            if len(head) < 9:
                break
            left, top, own_width, own_height, own = struct.unpack("<HHHHB", head)
            width, height = max(width, left + own_width), max(height, top + own_height)
            file.seek(_table(own) + 1, io.SEEK_CUR)
        elif kind == b"!":
            file.seek(1, io.SEEK_CUR)
        else:
            break
        while length := int.from_bytes(file.read(1), "big"):  # blocks of data up to an empty one
            file.seek(length, io.SEEK_CUR)
    return Header("GIF", width, height, pictures=max(1, pictures))


def _table(flags: int) -> int:
    """Bytes of a colour table."""
    return 3 << ((flags & 7) + 1) if flags & 0x80 else 0


def webp_header(file: IO[bytes]) -> Header:
    """Header of a WebP file: still or animated, with the orientation of its EXIF chunk. Raises HeaderError.

    Reference: RFC 9649, 2.7 (containers), 3.4 (VP8L); RFC 6386, 9.1 (VP8).
    """
    file.seek(12)
    width = height = pictures = 0
    orientation = 1
    while pictures < _MOST_PICTURES:
        head = file.read(8)
        if len(head) < 8:
            break
        kind, length = struct.unpack("<4sI", head)
        start = file.tell()
        found = (0, 0)
        if kind == b"VP8X":
            found = _webp_canvas(take(file, 10))
        elif kind == b"VP8 ":
            # after three bytes of frame tag and the start code
            sides = take(file, 10)[6:]  # the upper two bits scale
            found = (int.from_bytes(sides[:2], "little") & 0x3FFF, int.from_bytes(sides[2:], "little") & 0x3FFF)
        elif kind == b"VP8L":
            found = _webp_lossless(take(file, 5))
        elif kind == b"ANMF":
            pictures += 1
        elif kind == b"EXIF" and length <= _LONGEST_EXIF:
            orientation = exif_orientation(file.read(length))
        width, height = max(width, found[0]), max(height, found[1])
        file.seek(start + length + (length & 1))
    if not width:
        raise HeaderError("a WebP without a picture")
    return Header("WebP", width, height, orientation, samples=4, pictures=max(1, pictures))


def _webp_canvas(data: bytes) -> tuple[int, int]:
    return 1 + int.from_bytes(data[4:7], "little"), 1 + int.from_bytes(data[7:10], "little")


def _webp_lossless(data: bytes) -> tuple[int, int]:
    bits = int.from_bytes(data[1:5], "little")
    return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)


def pnm_header(file: IO[bytes]) -> Header:
    """Header of a PBM, PGM, PPM or PAM file; its largest value, which need not be one less than a power of two.

    Raises:
        HeaderError: a number is missing, or no number.
    """
    file.seek(0)
    data = file.read(_LONGEST_PNM_HEADER)
    if data[:2] == b"P7":
        known = {key: int(value) for key, value in _PAM_LINE.findall(data.partition(b"ENDHDR")[0])}
        try:
            width, height, white = known[b"WIDTH"], known[b"HEIGHT"], known[b"MAXVAL"]
        except KeyError:
            raise HeaderError("a PAM that lacks a number in its header") from None
    elif data[1:2] in b"14":
        width, height = _numbers(data, 2)
        return Header("PNM", width, height, bits=1, samples=1)
    else:
        width, height, white = _numbers(data, 3)
    if not 0 < white < 1 << 16:
        raise HeaderError(f"a PNM whose largest value is {white}")
    if data[1:2] in b"23" and white < 256:
        white = 255  # numbers written as text are scaled by OpenCV
    return Header("PNM", width, height, bits=8 if white < 256 else 16, white=white)


def _numbers(data: bytes, count: int) -> list[int]:
    """The numbers after the first two bytes; white space and comments stand between them."""
    numbers, position = [], 2
    for _ in range(count):
        found = _PNM_NUMBER.match(data, position)
        if found is None:
            raise HeaderError("a PNM that lacks a number in its header")
        numbers.append(int(found[1]))
        position = found.end()
    return numbers
