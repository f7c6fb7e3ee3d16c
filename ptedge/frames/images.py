"""Image files: decoding that is right for every common file, and the size without decoding.

OpenCV decodes. It applies the EXIF orientation itself, but tells broken files apart only in part: some of its versions
fill the missing rest of a truncated file with grey. Therefore JPEG and PNG files are checked for their end first.
"""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import IO

import cv2
import numpy as np
from numpy.typing import NDArray

from ptedge.errors import InputError

# what folders and globs take as an image; any other file has to be named itself
IMAGE_SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".bmp", ".webp", ".tif", ".tiff", ".ppm", ".pgm", ".jp2", ".avif"})

_JPEG_START = b"\xff\xd8"
_JPEG_END = b"\xff\xd9"
_JPEG_SCAN = 0xDA
# start-of-frame markers: C0 to CF without C4 (Huffman tables), C8 (reserved) and CC (arithmetic tables)
_JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_PNG_START = b"\x89PNG\r\n\x1a\n"
_EXIF_ORIENTATION = 0x0112


def read_image(path: Path) -> NDArray[np.uint8]:
    """Decode an image file, upright, whatever its kind.

    The EXIF orientation is applied; greyscale and palette become RGB; 16 bits are scaled to 8. Alpha is dropped, not
    composited: there is no background to assume, and a camera frame with an alpha channel is opaque.

    Args:
        path: image file; the name may hold any characters.

    Returns:
        [H, W, 3] uint8 RGB, contiguous.

    Raises:
        InputError: the file is missing, empty, truncated or not an image; its name is in the text.
    """
    data = _read_bytes(path)
    return decode_image(data, str(path))


def decode_image(data: bytes, name: str) -> NDArray[np.uint8]:
    """Decode an encoded image held in memory; as :func:`read_image`.

    Args:
        data: content of the file.
        name: what to call it in errors.

    Raises:
        InputError: empty, truncated or not an image.
    """
    if not data:
        raise InputError(f"{name} is empty. Replace or remove it")
    fault = _fault(data)
    if fault:
        raise InputError(f"{name} is {fault}. Replace or remove it")
    try:
        # IMREAD_COLOR: three channels, 8 bits, orientation applied, alpha left out
        image = cv2.imdecode(np.frombuffer(data, dtype=np.uint8), cv2.IMREAD_COLOR)
    except cv2.error:
        image = None
    if image is None:
        raise InputError(f"{name} is corrupt, or no image that OpenCV can read. Replace or remove it")
    return np.ascontiguousarray(cv2.cvtColor(image, cv2.COLOR_BGR2RGB), dtype=np.uint8)


def image_size(path: Path) -> tuple[int, int]:
    """Width and height of an image as :func:`read_image` would return it.

    Only the header of a JPEG or PNG file is read; other kinds, and PNG files that carry EXIF data, are decoded.

    Args:
        path: image file.

    Returns:
        (width, height) in pixels, after EXIF rotation.

    Raises:
        InputError: missing, empty, or no image.
    """
    try:
        with open(path, "rb") as file:
            start = file.read(8)
            size = None
            if start[:2] == _JPEG_START:
                size = _jpeg_size(file)
            elif start == _PNG_START:
                size = _png_size(file)
    except OSError as error:
        raise _unreadable(path, error) from None
    if size is not None:
        return size
    height, width = read_image(path).shape[:2]
    return width, height


def is_image_name(path: Path) -> bool:
    """Whether a file is taken for an image by its name; hidden files are not."""
    return path.suffix.lower() in IMAGE_SUFFIXES and not path.name.startswith(".")


def _read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: OSError) -> InputError:
    if isinstance(error, FileNotFoundError):
        return InputError(f"image {path} does not exist")
    return InputError(f"image {path} cannot be read: {error.strerror}")


def _fault(data: bytes) -> str | None:
    """What is wrong with a JPEG or PNG file that a decoder may let pass, or None."""
    if data[:2] == _JPEG_START and not jpeg_has_end(data):
        return "truncated (the JPEG data has no end)"
    if data[:8] == _PNG_START:
        return _png_fault(data)
    return None


def jpeg_has_end(data: bytes | bytearray) -> bool:
    """Whether JPEG data, from its first byte on, reaches its end marker.

    Args:
        data: content of a file, or of a part of a stream.
    """
    # segments have to be walked: an embedded thumbnail has an end marker of its own
    position = 2
    while position + 4 <= len(data):
        if data[position] != 0xFF:
            return False
        marker = data[position + 1]
        if marker == 0xFF:  # padding
            position += 1
            continue
        (length,) = struct.unpack_from(">H", data, position + 2)
        position += 2 + length
        if marker == _JPEG_SCAN:
            # inside a scan FF is followed by 00, so the pair FF D9 is the end and nothing else
            return data.find(_JPEG_END, position) >= 0
    return False


def _png_fault(data: bytes) -> str | None:
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


def _jpeg_size(file: IO[bytes]) -> tuple[int, int] | None:
    """Size from the frame header, turned by the orientation; None where the header is not understood."""
    file.seek(2)
    rotated = False
    while True:
        marker = file.read(1)
        if marker != b"\xff":
            return None
        while marker == b"\xff":
            marker = file.read(1)
        head = file.read(2)
        if len(head) < 2 or marker[0] == _JPEG_SCAN:
            return None
        length = struct.unpack(">H", head)[0] - 2
        body = file.read(length)
        if len(body) < length:
            return None
        if marker[0] == 0xE1 and body.startswith(b"Exif\0\0"):
            rotated = _exif_orientation(body[6:]) >= 5
        elif marker[0] in _JPEG_FRAMES and length >= 5:
            height, width = struct.unpack_from(">HH", body, 1)
            if not width or not height:
                return None
            return (height, width) if rotated else (width, height)


def _exif_orientation(tiff: bytes) -> int:
    """Orientation 1 to 8 from the first directory of an EXIF block; 1 where there is none. 5 to 8 swap the sides."""
    order = {b"II": "<", b"MM": ">"}.get(tiff[:2])
    if order is None:
        return 1
    try:
        (offset,) = struct.unpack_from(order + "I", tiff, 4)
        (entries,) = struct.unpack_from(order + "H", tiff, offset)
        for i in range(entries):
            tag, _kind, _count, value = struct.unpack_from(order + "HHIH", tiff, offset + 2 + 12 * i)
            if tag == _EXIF_ORIENTATION:
                return int(value) if 1 <= value <= 8 else 1
    except struct.error:
        return 1
    return 1


def _png_size(file: IO[bytes]) -> tuple[int, int] | None:
    """Size from the first chunk; None where the file holds EXIF data or is not understood."""
    size = None
    while True:
        head = file.read(8)
        if len(head) < 8:
            return None
        length, kind = struct.unpack(">I4s", head)
        if kind == b"IHDR":
            width, height = struct.unpack(">II", file.read(length)[:8].ljust(8, b"\0"))
            size = (width, height) if width and height else None
        elif kind == b"eXIf":
            return None
        elif kind == b"IEND":
            return size
        else:
            file.seek(length, 1)
        file.seek(4, 1)
