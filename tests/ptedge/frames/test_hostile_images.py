"""Thousands of damaged image files: each is decoded or refused with a sentence, never anything else."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import cv2
import numpy as np
import pytest
from image_files import (
    avif_turned,
    box,
    encode,
    exif,
    jpeg_with_orientation,
    png_chunk,
    png_with,
    scene,
    tiff,
    tiff_directory,
    webp_with_orientation,
)

from ptedge.errors import InputError
from ptedge.frames.images import image_size, read_picture

EACH = 160  # of each kind; there are ten
# what a length, a count or an offset may be changed into
EXTREMES = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)


def samples() -> dict[str, bytes]:
    noise = np.random.default_rng(0).integers(0, 255, (24, 40, 3), dtype=np.uint8)
    animated = png_chunk(b"acTL", struct.pack(">II", 2, 0))
    kinds = {
        "jpg": jpeg_with_orientation(encode(noise), 6),
        "progressive": encode(noise, ".jpg", (cv2.IMWRITE_JPEG_PROGRESSIVE, 1)),
        "png": png_with(encode(noise, ".png"), png_chunk(b"eXIf", exif(8)), animated),
        "bmp": encode(noise, ".bmp"),
        "webp": webp_with_orientation(encode(noise, ".webp"), 40, 24, 3),
        "tif": tiff({256: 40, 257: 24, 278: 24, 274: 7}, bytes(960), following=tiff_directory({256: 4, 257: 4})),
        "ppm": encode(noise, ".ppm"),
        "jp2": encode(np.repeat(noise, 4, 0).repeat(4, 1), ".jp2"),
    }
    if cv2.haveImageWriter("a.avif"):
        kinds["avif"] = avif_turned(encode(scene(), ".avif"), box(b"irot", b"\1"))
    if cv2.haveImageWriter("a.gif"):
        kinds["gif"] = encode(noise, ".gif")
    return kinds


def damaged(data: bytes, chance: random.Random) -> bytes:
    """A file cut short, with changed bits, a changed number, bytes put in, taken away or exchanged."""
    changed = bytearray(data)
    head = min(len(changed), 400)  # where the structure is
    for _ in range(chance.choice((1, 1, 2, 5))):
        at = chance.randrange(head if chance.random() < 0.8 else len(changed))
        kind = chance.randrange(5)
        if kind == 0:
            changed[at] ^= 1 << chance.randrange(8)
        elif kind == 1:
            order, form = chance.choice("<>"), chance.choice("BHI")
            value = chance.choice(EXTREMES) & (1 << 8 * struct.calcsize(form)) - 1
            number = struct.pack(order + form, value)
            changed[at : at + len(number)] = number
        elif kind == 2:
            changed[at:at] = chance.randbytes(chance.randrange(1, 9))
        elif kind == 3:
            del changed[at : at + chance.randrange(1, 9)]
        else:
            del changed[chance.randrange(1, len(changed)) :]
        if not changed:
            return b""
        head = min(len(changed), 400)
    return bytes(changed)


@pytest.mark.parametrize("kind", samples())
def test_read_picture__damaged_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setenv("PTEDGE_MAX_PIXELS", "200000")  # so that those with another size are quick
    chance, path = random.Random(kind), tmp_path / f"a.{kind}"
    data = samples()[kind]
    path.write_bytes(data)
    assert read_picture(path).image.shape[2] == 3
    for _ in range(EACH):
        path.write_bytes(damaged(data, chance))
        try:
            size = image_size(path)
        except InputError as error:
            assert path.name in str(error)
            size = None
        try:
            image = read_picture(path).image
        except InputError as error:
            assert path.name in str(error)
        else:
            assert size == image.shape[1::-1]


@pytest.mark.parametrize("kind", samples())
def test_read_picture__cut_at_any_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setenv("PTEDGE_MAX_PIXELS", "200000")
    data, path = samples()[kind], tmp_path / f"a.{kind}"
    for length in range(0, len(data), max(1, len(data) // 40)):
        path.write_bytes(data[:length])
        for function in (read_picture, image_size):
            try:
                function(path)
            except InputError as error:
                assert path.name in str(error)
