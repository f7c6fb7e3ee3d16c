"""Image files: decoding that is right for every common file, and the size without decoding.

The header is read first, by modules of our own: it tells the size before any memory is taken, how the picture has to
be turned, how many bits a sample has and how many pictures the file holds. OpenCV decodes. What its versions do not do,
or not all of them, is done here: none turns AVIF, old ones do not turn WebP, none scales a largest value of 1023, and
some fill the missing rest of a truncated file with grey.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import cv2
import numpy as np
from numpy.typing import NDArray

from ptedge.errors import InputError
from ptedge.files import open_regular
from ptedge.frames.formats.header import Header, HeaderError, turned
from ptedge.frames.formats.isobmff import J2K_START, JP2_START, JXL_STARTS, heif_header, jp2_header, jxl_header
from ptedge.frames.formats.jpeg import JPEG_START, jpeg_has_end, jpeg_header, jpeg_scans
from ptedge.frames.formats.plain import bmp_header, gif_header, pnm_header, webp_header
from ptedge.frames.formats.png import PNG_START, png_fault, png_header
from ptedge.frames.formats.tiff import TIFF_STARTS, tiff_header

# what folders and globs take as an image; any other file has to be named itself
IMAGE_SUFFIXES = frozenset(
    {".jpg", ".jpeg", ".jpe", ".jfif", ".mpo", ".png", ".apng", ".bmp", ".dib", ".webp", ".tif", ".tiff", ".gif"}
    | {".pbm", ".pgm", ".ppm", ".pnm", ".pam", ".jp2", ".j2k", ".avif"}
    # not to be decoded, but pictures: named as left out rather than passed over without a word
    | {".heic", ".heif", ".jxl", ".dng"}
)

MOST_PIXELS = 200_000_000
MOST_PIXELS_VARIABLE = "PTEDGE_MAX_PIXELS"

_READERS: dict[tuple[bytes, ...], Callable[[IO[bytes]], Header]] = {
    (JPEG_START,): jpeg_header,
    (PNG_START,): png_header,
    TIFF_STARTS: tiff_header,
    (JP2_START, J2K_START): jp2_header,
    JXL_STARTS: jxl_header,
    (b"BM",): bmp_header,
    (b"GIF87a", b"GIF89a"): gif_header,
    tuple(b"P%d" % kind for kind in range(1, 8)): pnm_header,
}
_SCANS_AT_ONCE = 20  # scans of a progressive JPEG of the largest size; encoders make 10
_LARGEST_PIXEL = 24  # bytes a pixel takes in a file at most: three numbers of up to five digits, and their spaces
_LARGEST_REST = 64 << 20  # bytes of a file that are no pixels
_IN_PLACE = 64 << 20  # bytes from which on a picture is not held twice
_SHORT_OF_WHITE = 1 << 12  # a 16-bit picture that stays below holds 12 bits, or is nearly black


@dataclass(frozen=True)
class Picture:
    """A decoded image file, and what is to be said about it.

    Attributes:
        image: [H, W, 3] uint8 RGB, upright, contiguous.
        pictures: in the file; only the first is decoded.
        brightest: the largest sample of a file of 16 bits if it lies below 4096, so that the picture comes out nearly
            black; ``None`` otherwise.
    """

    image: NDArray[np.uint8]
    pictures: int
    brightest: int | None


def read_image(path: Path) -> NDArray[np.uint8]:
    """Decode an image file, upright, whatever its kind.

    EXIF orientation and the turns of AVIF are applied; greyscale, palette and CMYK become RGB. Samples of other than 8
    bits are scaled so that white becomes 255; of 16 bits the upper 8 are taken, whatever range the picture uses. Alpha
    is dropped, not composited: there is no background to assume, and a camera frame with an alpha channel is opaque
    (TIFF files alone come premultiplied with it). Of several pictures in a file the first is taken.

    Args:
        path: image file; the name may hold any characters.

    Returns:
        [H, W, 3] uint8 RGB, contiguous.

    Raises:
        InputError: the file is missing, empty, truncated, not an image or too large; its name is in the text.
    """
    return read_picture(path).image


def read_picture(path: Path) -> Picture:
    """As :func:`read_image`, with what is to be said about the file. Raises InputError."""
    name = printable(path)
    try:
        with open_regular(path) as file:
            header = _checked_header(file, name)
            most = min(_bytes_of(header), _bytes_of_largest())
            file.seek(0)
            data = file.read(most + 1)
    except OSError as error:
        raise _unreadable(name, error) from None
    if len(data) > most:
        raise InputError(f"{name} is larger than {most >> 20} MiB, more than its pixels can need. Replace or remove it")
    return _decode(data, header, name)


def decode_image(data: bytes, name: str) -> NDArray[np.uint8]:
    """Decode an encoded image held in memory; as :func:`read_image`.

    Args:
        data: content of the file.
        name: what to call it in errors.

    Raises:
        InputError: empty, truncated, not an image or too large.
    """
    return _decode(data, _checked_header(io.BytesIO(data), name), name).image


def image_size(path: Path) -> tuple[int, int]:
    """Width and height of an image as :func:`read_image` would return it; only the header is read.

    Args:
        path: image file.

    Returns:
        (width, height) in pixels, upright.

    Raises:
        InputError: missing, empty, or no image.
    """
    name = printable(path)
    try:
        with open_regular(path) as file:
            return _checked_header(file, name).size
    except OSError as error:
        raise _unreadable(name, error) from None


def image_header(path: Path) -> Header | None:
    """The header of a file whatever its name; ``None`` where it is no image, or cannot be read.

    Args:
        path: file.
    """
    try:
        with open_regular(path) as file:
            return _header(file, file.read(16))
    except (OSError, HeaderError, IndexError):
        return None


def is_image_name(path: Path) -> bool:
    """Whether a file is taken for an image by its name; hidden files are not."""
    return path.suffix.lower() in IMAGE_SUFFIXES and not path.name.startswith(".")


def printable(path: Path | str) -> str:
    """A path as text that every file and terminal takes: bytes that are no UTF-8 are written as ``\\xe9``."""
    return str(path).encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def most_pixels() -> int:
    """Pixels that an image may have: 200 million, or what the environment variable ``PTEDGE_MAX_PIXELS`` says.

    Raises:
        InputError: it says no number.
    """
    text = os.environ.get(MOST_PIXELS_VARIABLE, "").strip()
    if not text:
        return MOST_PIXELS
    if not (text.isascii() and text.isdecimal() and int(text[:20]) > 0):
        raise InputError(f"{MOST_PIXELS_VARIABLE} is {text[:40]!r}; it must be a number of pixels")
    return int(text[:20])


def _bytes_of(header: Header) -> int:
    return _LARGEST_REST + _LARGEST_PIXEL * header.width * header.height * header.pictures


def _bytes_of_largest() -> int:
    return _LARGEST_REST + _LARGEST_PIXEL * most_pixels()


def _checked_header(file: IO[bytes], name: str) -> Header:
    """The header of a file that stands at its beginning, if it may be decoded. Raises InputError."""
    start = file.read(16)
    if not start:
        raise InputError(f"{name} is empty. Replace or remove it")
    try:
        header = _header(file, start)
    except (HeaderError, IndexError):
        header = None
    if header is None:
        raise InputError(f"{name} is corrupt, or no image that OpenCV can read. Replace or remove it")
    if header.refusal:
        raise InputError(f"{name} is {header.refusal}")
    pixels, most = header.width * header.height, most_pixels()
    if not pixels:
        raise InputError(f"{name} is corrupt (it has no pixels). Replace or remove it")
    if pixels * max(1.0, header.samples / 4) > most:
        raise InputError(
            f"{name} is too large: {header.width} x {header.height} pixels of {header.samples} samples, and "
            f"{most / 1e6:g} million pixels are allowed. Make it smaller, or set {MOST_PIXELS_VARIABLE} to more"
        )
    return header


def _header(file: IO[bytes], start: bytes) -> Header | None:
    """The header, by how the file begins; None for an unknown kind."""
    for starts, reader in _READERS.items():
        if start.startswith(starts):
            return reader(file)
    if start[4:8] == b"ftyp":
        return heif_header(file)
    if start[:4] == b"RIFF" and start[8:12] == b"WEBP":
        return webp_header(file)
    return None


def _decode(data: bytes, header: Header, name: str) -> Picture:
    fault = _fault(data, header)
    if fault:
        raise InputError(f"{name} is {fault}. Replace or remove it")
    # what is scaled here comes as it is; OpenCV scales 8 bits, and AVIF and JPEG 2000 of any number rightly
    deep = (header.bits > 8 and header.kind in ("PNG", "TIFF", "PNM")) or (header.bits > 12 and header.kind != "AVIF")
    flags = cv2.IMREAD_COLOR | cv2.IMREAD_IGNORE_ORIENTATION | (cv2.IMREAD_ANYDEPTH if deep else 0)
    try:
        image = cv2.imdecode(np.frombuffer(data, dtype=np.uint8), flags)
    except (cv2.error, MemoryError):
        image = None
    if image is None:
        raise InputError(
            f"{name} is corrupt, or a {header.kind} that OpenCV {cv2.__version__} cannot read. Replace or remove it"
        )
    swapped = header.kind == "TIFF" and header.orientation >= 5  # OpenCV has turned it
    height, width = image.shape[:2]
    if (width, height) != (header.size if swapped else (header.width, header.height)):
        raise InputError(f"{name} is corrupt (its parts tell different sizes). Replace or remove it")
    brightest = int(image.max()) if image.dtype == np.uint16 else 0
    rgb = _to_rgb(_eight_bits(image, header))
    if header.kind != "TIFF" and header.orientation != 1:
        rgb = turned(rgb, header.orientation)
    dim = 0 < brightest < _SHORT_OF_WHITE and header.white is None and not header.inverted
    return Picture(rgb, header.pictures, brightest if dim else None)


def _fault(data: bytes, header: Header) -> str | None:
    """What is wrong with a file that a decoder may let pass, or that it should not try; None for nothing."""
    if header.kind == "JPEG":
        if not jpeg_has_end(data):
            return "truncated (the JPEG data has no end)"
        scans = jpeg_scans(data)
        if scans > _SCANS_AT_ONCE and scans * header.width * header.height > _SCANS_AT_ONCE * most_pixels():
            return f"not to be decoded (a JPEG of {scans} scans)"
    return png_fault(data) if header.kind == "PNG" else None


def _eight_bits(image: NDArray[Any], header: Header) -> NDArray[np.uint8]:
    """Samples with white at 255."""
    if header.white is not None and header.white not in (255, 65535):
        # of what lies above white, white
        scaled = np.minimum(image, header.white).astype(np.float32) * np.float32(255 / header.white)
        return np.asarray(np.rint(scaled), np.uint8)
    if image.dtype == np.uint16:  # fewer than 16 bits in a TIFF come shifted to the upper end
        eight = np.asarray(image >> 8, np.uint8)
        return 255 - eight if header.inverted else eight
    return np.asarray(image, np.uint8)


def _to_rgb(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """BGR as RGB; large pictures in place, a band at a time."""
    if image.nbytes < _IN_PLACE:
        return np.ascontiguousarray(cv2.cvtColor(image, cv2.COLOR_BGR2RGB), dtype=np.uint8)
    rows = max(1, (1 << 20) // (3 * image.shape[1]))
    for top in range(0, image.shape[0], rows):
        image[top : top + rows] = cv2.cvtColor(image[top : top + rows], cv2.COLOR_BGR2RGB)
    return image


def _unreadable(name: str, error: OSError) -> InputError:
    if isinstance(error, FileNotFoundError):
        return InputError(f"image {name} does not exist")
    return InputError(f"image {name} cannot be read: {error.strerror}")
