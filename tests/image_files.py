"""Image files made for tests: headers written by hand, so that what they should mean is known."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray


def scene(height: int = 24, width: int = 40) -> NDArray[np.uint8]:
    """RGB: black, with a pure red upper left quarter."""
    image = np.zeros((height, width, 3), np.uint8)
    image[: height // 2, : width // 2] = (255, 0, 0)
    return image


def encode(image: NDArray[Any], suffix: str = ".jpg", options: tuple[int, ...] = ()) -> bytes:
    """RGB or grey pixels as a file."""
    ok, data = cv2.imencode(suffix, image[:, :, ::-1] if image.ndim == 3 else image, list(options))
    assert ok
    return bytes(data.tobytes())


def exif(orientation: int, order: str = "<") -> bytes:
    """An EXIF block that holds nothing but an orientation."""
    tiff = (b"II" if order == "<" else b"MM") + struct.pack(order + "HI", 42, 8)
    return tiff + struct.pack(order + "HHHIHHI", 1, 0x0112, 3, 1, orientation, 0, 0)


def jpeg_with_orientation(jpeg: bytes, orientation: int, order: str = "<") -> bytes:
    body = b"Exif\0\0" + exif(orientation, order)
    return jpeg[:2] + b"\xff\xe1" + struct.pack(">H", len(body) + 2) + body + jpeg[2:]


def png_chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png_with(png: bytes, *chunks: bytes) -> bytes:
    """A PNG with chunks after its header."""
    return png[:33] + b"".join(chunks) + png[33:]


def webp_with_orientation(webp: bytes, width: int, height: int, orientation: int) -> bytes:
    """The picture of a plain WebP file in the extended form, with EXIF."""
    block = exif(orientation)
    canvas = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    body = b"WEBPVP8X" + struct.pack("<II", 10, 0x08) + canvas + webp[12:] + b"EXIF" + struct.pack("<I", len(block))
    body += block + b"\0" * (len(block) & 1)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def tiff(tags: dict[int, int | tuple[int, ...]], data: bytes, order: str = "<", following: bytes = b"") -> bytes:
    """A TIFF of one strip; tags that are not given get the values of a grey picture of one row.

    Args:
        tags: number -> value, or values, of 16 bits; of 32 bits for sizes and offsets.
        data: the strip.
        order: byte order.
        following: a whole directory that the first one points to.
    """
    tags = {256: len(data), 257: 1, 258: 8, 259: 1, 262: 1, 273: 8, 277: 1, 278: 1, 279: len(data)} | tags
    wide = {256, 257, 273, 278, 279}
    offset = 8 + len(data) + len(data) % 2
    after = offset + 2 + 12 * len(tags) + 4
    out, more = b"", b""
    for tag in sorted(tags):
        value = tags[tag]
        values = value if isinstance(value, tuple) else (value,)
        field = struct.pack(f"{order}{len(values)}{'I' if tag in wide else 'H'}", *values)
        if len(field) > 4:
            field, more = struct.pack(order + "I", after + len(more)), more + field
        out += struct.pack(order + "HHI", tag, 4 if tag in wide else 3, len(values)) + field.ljust(4, b"\0")
    link = after + len(more) if following else 0
    head = (b"II" if order == "<" else b"MM") + struct.pack(order + "HI", 42, offset)
    directory = struct.pack(order + "H", len(tags)) + out + struct.pack(order + "I", link)
    return head + data.ljust(offset - 8, b"\0") + directory + more + following


def tiff_directory(tags: dict[int, int], following: int = 0, order: str = "<") -> bytes:
    """A directory of numbers of 32 bits."""
    out = struct.pack(order + "H", len(tags))
    for tag in sorted(tags):
        out += struct.pack(order + "HHII", tag, 4, 1, tags[tag])
    return out + struct.pack(order + "I", following)


def box(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I4s", 8 + len(body), kind) + body


def avif_turned(avif: bytes, *properties: bytes) -> bytes:
    """An AVIF file of one picture with further properties, applied in this order."""
    at = {kind: avif.index(kind) - 4 for kind in (b"meta", b"iloc", b"iprp", b"ipco", b"ipma", b"mdat")}
    ipco_end = at[b"ipma"]
    number = avif[at[b"ipma"] + 8 + 4 + 4 + 2]  # associations of the one item
    added = b"".join(properties)
    known = avif[at[b"ipco"] : ipco_end]
    first = 1 + sum(1 for _ in _boxes(known[8:]))
    indices = bytes(0x80 | i for i in range(first, first + len(properties)))  # essential, as turns have to be
    ipma = bytearray(avif[at[b"ipma"] : at[b"mdat"]])
    ipma[8 + 4 + 4 + 2] = number + len(properties)
    ipma += indices
    ipma[:4] = struct.pack(">I", len(ipma))
    ipco = box(b"ipco", known[8:] + added)
    iprp = box(b"iprp", ipco + bytes(ipma))
    grown = len(added) + len(indices)
    meta = avif[at[b"meta"] + 8 : at[b"iprp"]] + iprp
    data = struct.pack(">I", at[b"mdat"] + 8)
    assert meta.count(data) == 1
    meta = meta.replace(data, struct.pack(">I", at[b"mdat"] + 8 + grown))
    return avif[: at[b"meta"]] + box(b"meta", meta) + avif[at[b"mdat"] :]


def _boxes(data: bytes) -> list[bytes]:
    found, position = [], 0
    while position < len(data):
        (size,) = struct.unpack_from(">I", data, position)
        found.append(data[position : position + size])
        position += size
    return found
