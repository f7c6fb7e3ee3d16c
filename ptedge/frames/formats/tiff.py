"""TIFF files and EXIF blocks, which have the same form: directories of tagged values.

Reference: TIFF 6.0; the photographs of cameras' own formats (DNG, NEF, CR2, ARW) are TIFF files, too, whose first
picture is a small preview.
"""

from __future__ import annotations

import io
import struct
from typing import IO

from ptedge.frames.formats.header import Header, HeaderError, take, unpack

TIFF_STARTS = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")  # the last two: BigTIFF

_SUBFILE, _WIDTH, _HEIGHT, _BITS, _PHOTOMETRIC = 254, 256, 257, 258, 262
_ORIENTATION, _SAMPLES, _SAMPLE_FORMAT, _DNG_VERSION = 274, 277, 339, 50706
_WANTED = {_SUBFILE, _WIDTH, _HEIGHT, _BITS, _PHOTOMETRIC, _ORIENTATION, _SAMPLES, _SAMPLE_FORMAT, _DNG_VERSION}
_SENSOR_DATA = (32803, 34892)  # colour filter array and linear raw, as photometric interpretation
_COLOURS = (0, 1, 2, 3, 4, 5, 6)  # grey, RGB, palette, mask, CMYK, YCbCr; others (Lab) come out in wrong colours
_FORMS = {1: "B", 3: "H", 4: "I", 16: "Q"}  # the types of whole numbers
_MOST_ENTRIES = 4096
_MOST_PICTURES = 10_000


def exif_orientation(data: bytes) -> int:
    """Orientation 1 to 8 from the first directory of an EXIF block; 1 where there is none.

    Args:
        data: from its byte order mark on; a leading ``Exif`` of six bytes is passed over.
    """
    data = data[6:] if data.startswith(b"Exif\0\0") else data
    try:
        tags, _ = _directory(io.BytesIO(data), *_start(io.BytesIO(data)))
    except HeaderError:
        return 1
    value = tags.get(_ORIENTATION, 1)
    return value if 1 <= value <= 8 else 1


def tiff_header(file: IO[bytes]) -> Header:
    """Header of a TIFF file: its first picture, and how many there are.

    Args:
        file: stands anywhere.

    Raises:
        HeaderError: there is no directory that can be read, or it lacks the size.
    """
    file.seek(8)
    refusal = "a raw photograph (CR2)" if file.read(2) == b"CR" else ""
    file.seek(0)
    order, big, offset = _start(file)
    tags, following = _directory(file, order, big, offset)
    if not tags.get(_WIDTH) or not tags.get(_HEIGHT):
        raise HeaderError("a TIFF without a size")
    bits = tags.get(_BITS, 1)
    if _DNG_VERSION in tags or tags.get(_PHOTOMETRIC) in _SENSOR_DATA:
        refusal = "a raw photograph (DNG)"
    elif tags.get(_SUBFILE, 0) & 1:
        refusal = refusal or "a TIFF whose first picture is a small preview, such as a raw photograph"
    if refusal:
        refusal += ". Develop it to JPEG or PNG"
    elif tags.get(_PHOTOMETRIC, 1) not in _COLOURS:
        refusal = "a TIFF whose colours are neither grey nor RGB nor CMYK. Convert it to RGB"
    elif bits > 16 or tags.get(_SAMPLE_FORMAT, 1) not in (1, 4):
        refusal = (
            f"a TIFF of {bits}-bit or signed or floating-point samples, for which no value is white. "
            "Convert it to 8 or 16 bits"
        )
    return Header(
        "TIFF",
        tags[_WIDTH],
        tags[_HEIGHT],
        tags.get(_ORIENTATION, 1) if 1 <= tags.get(_ORIENTATION, 1) <= 8 else 1,
        bits,
        samples=tags.get(_SAMPLES, 1),
        pictures=1 + _pages(file, order, big, following),
        inverted=tags.get(_PHOTOMETRIC) == 0,
        refusal=refusal,
    )


def _start(file: IO[bytes]) -> tuple[str, bool, int]:
    """Byte order, whether offsets have 64 bits, and offset of the first directory."""
    order = {b"II": "<", b"MM": ">"}.get(take(file, 2))
    if order is None:
        raise HeaderError("no TIFF")
    (version,) = unpack(file, order + "H")
    if version == 43:
        return order, True, unpack(file, order + "HHQ")[2]
    return order, False, unpack(file, order + "I")[0]


def _directory(file: IO[bytes], order: str, big: bool, offset: int) -> tuple[dict[int, int], int]:
    """First value of each tag that is wanted, the largest where a tag comes twice, and where the next one is."""
    _seek(file, offset)
    (count,) = unpack(file, order + ("Q" if big else "H"))
    if count > _MOST_ENTRIES:
        raise HeaderError("a TIFF directory without end")
    step = 20 if big else 12
    entries = file.read(count * step)
    tags: dict[int, int] = {}
    for at in range(0, len(entries) - step + 1, step):
        tag, kind = struct.unpack_from(order + "HH", entries, at)
        if tag not in _WANTED or kind not in _FORMS:
            continue
        form = order + _FORMS[kind]
        (number,) = struct.unpack_from(order + ("Q" if big else "I"), entries, at + 4)
        place = at + (12 if big else 8)
        if number * struct.calcsize(form) <= (8 if big else 4):
            (value,) = struct.unpack_from(form, entries[place : place + 8].ljust(8, b"\0"))
        else:
            (where,) = struct.unpack_from(order + ("Q" if big else "I"), entries, place)
            _seek(file, where)
            (value,) = unpack(file, form)
        tags[tag] = max(value, tags.get(tag, 0))
    _seek(file, offset + (8 if big else 2) + count * step)
    following = file.read(8 if big else 4)
    if len(following) < (8 if big else 4):
        return tags, 0
    return tags, struct.unpack(order + ("Q" if big else "I"), following)[0]


def _pages(file: IO[bytes], order: str, big: bool, offset: int) -> int:
    """Pictures after the first; smaller copies of others and masks do not count."""
    seen: set[int] = set()
    pages = 0
    while offset and offset not in seen and len(seen) < _MOST_PICTURES:
        seen.add(offset)
        try:
            tags, offset = _directory(file, order, big, offset)
        except HeaderError:
            break
        pages += not tags.get(_SUBFILE, 0) & 5
    return pages


def _seek(file: IO[bytes], offset: int) -> None:
    if offset >= 1 << 63:  # more than a file can have
        raise HeaderError("a TIFF offset outside the file")
    file.seek(offset)
