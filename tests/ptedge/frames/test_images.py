"""Decoding of image files: values by hand for every kind of file, and clear errors for broken ones."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from ptedge.errors import InputError
from ptedge.frames.images import decode_image, image_size, is_image_name, read_image


def scene(height: int = 24, width: int = 40) -> NDArray[np.uint8]:
    """RGB: black, with a pure red upper left quarter."""
    image = np.zeros((height, width, 3), np.uint8)
    image[: height // 2, : width // 2] = (255, 0, 0)
    return image


def encode(image: NDArray[np.uint8], suffix: str = ".jpg") -> bytes:
    ok, data = cv2.imencode(suffix, image[:, :, ::-1])
    assert ok
    return bytes(data.tobytes())


def with_orientation(jpeg: bytes, orientation: int, order: str = "<") -> bytes:
    tiff = (b"II" if order == "<" else b"MM") + struct.pack(order + "HI", 42, 8)
    tiff += struct.pack(order + "HHHIHHI", 1, 0x0112, 3, 1, orientation, 0, 0)
    body = b"Exif\0\0" + tiff
    return jpeg[:2] + b"\xff\xe1" + struct.pack(">H", len(body) + 2) + body + jpeg[2:]


def png_chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def save(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("suffix", [".png", ".bmp", ".webp", ".tiff", ".ppm"])
def test_read_image__rgb_order_and_size(tmp_path: Path, suffix: str) -> None:
    path = save(tmp_path / f"a{suffix}", encode(scene(), suffix))
    image = read_image(path)
    assert image.dtype == np.uint8 and image.shape == (24, 40, 3) and image.flags["C_CONTIGUOUS"]
    assert np.abs(image[2, 2].astype(int) - [255, 0, 0]).max() <= 3  # webp is lossy
    assert image[20, 30].max() <= 3
    assert image_size(path) == (40, 24)


# orientation -> where the red quarter of the stored image ends up, as (lower, right)
TURNED = {
    1: (False, False), 2: (False, True), 3: (True, True), 4: (True, False),
    5: (False, False), 6: (False, True), 7: (True, True), 8: (True, False),
}  # fmt: skip


@pytest.mark.parametrize("orientation", TURNED)
@pytest.mark.parametrize("order", ["<", ">"])
def test_read_image__exif_orientation(tmp_path: Path, orientation: int, order: str) -> None:
    path = save(tmp_path / "a.jpg", with_orientation(encode(scene(24, 40)), orientation, order))
    image = read_image(path)
    height, width = (40, 24) if orientation >= 5 else (24, 40)
    assert image.shape == (height, width, 3)
    assert image_size(path) == (width, height)
    lower, right = TURNED[orientation]
    assert image[height - 3 if lower else 2, width - 3 if right else 2, 0] > 200
    assert image[2 if lower else height - 3, 2 if right else width - 3, 0] < 50


def test_read_image__greyscale(tmp_path: Path) -> None:
    path = save(tmp_path / "a.png", cv2.imencode(".png", np.full((5, 7), 77, np.uint8))[1].tobytes())
    assert (read_image(path) == 77).all() and read_image(path).shape == (5, 7, 3)


def test_read_image__sixteen_bits_are_scaled(tmp_path: Path) -> None:
    values = np.array([[0, 257 * 100, 65535]], np.uint16)
    path = save(tmp_path / "a.png", cv2.imencode(".png", values)[1].tobytes())
    assert read_image(path)[0, :, 1].tolist() == [0, 100, 255]


def test_read_image__alpha_is_dropped(tmp_path: Path) -> None:
    bgra = np.zeros((4, 4, 4), np.uint8)
    bgra[..., 2] = 200  # red, fully transparent
    path = save(tmp_path / "a.png", cv2.imencode(".png", bgra)[1].tobytes())
    assert read_image(path)[1, 1].tolist() == [200, 0, 0]


def test_read_image__palette(tmp_path: Path) -> None:
    header = struct.pack(">IIBBBBB", 2, 1, 8, 3, 0, 0, 0)
    data = b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", header) + png_chunk(b"PLTE", bytes([1, 2, 3, 250, 128, 0]))
    data += png_chunk(b"IDAT", zlib.compress(b"\0\1\0")) + png_chunk(b"IEND", b"")
    path = save(tmp_path / "a.png", data)
    assert read_image(path).tolist() == [[[250, 128, 0], [1, 2, 3]]]
    assert image_size(path) == (2, 1)


def test_read_image__unicode_path(tmp_path: Path) -> None:
    path = save(tmp_path / "straße 写真 é.png", encode(scene(), ".png"))
    assert read_image(path).shape == (24, 40, 3)
    assert image_size(path) == (40, 24)


def test_read_image__missing_names_the_file(tmp_path: Path) -> None:
    for function in (read_image, image_size):
        with pytest.raises(InputError, match=r"nothing\.jpg does not exist"):
            function(tmp_path / "nothing.jpg")
    with pytest.raises(InputError, match="cannot be read"):
        read_image(tmp_path)


def test_read_image__empty(tmp_path: Path) -> None:
    path = save(tmp_path / "empty.jpg", b"")
    for function in (read_image, image_size):
        with pytest.raises(InputError, match=r"empty\.jpg is empty"):
            function(path)


def test_read_image__not_an_image(tmp_path: Path) -> None:
    path = save(tmp_path / "text.jpg", b"hello, this is text")
    for function in (read_image, image_size):
        with pytest.raises(InputError, match=r"text\.jpg is corrupt"):
            function(path)


@pytest.mark.parametrize("suffix", [".jpg", ".png", ".bmp", ".webp"])
@pytest.mark.parametrize("share", [0.05, 0.5, 0.97])
def test_read_image__truncated_is_corrupt(tmp_path: Path, suffix: str, share: float) -> None:
    noise = np.random.default_rng(0).integers(0, 255, (60, 80, 3), dtype=np.uint8)
    data = encode(noise, suffix)
    path = save(tmp_path / f"cut{suffix}", data[: int(len(data) * share)])
    with pytest.raises(InputError, match="cut"):
        read_image(path)


def test_read_image__jpeg_with_tail_of_zeros_is_truncated(tmp_path: Path) -> None:
    data = encode(scene(200, 200))
    path = save(tmp_path / "a.jpg", data[: len(data) // 2] + bytes(len(data) // 2))
    with pytest.raises(InputError, match="truncated"):
        read_image(path)


def test_read_image__end_of_a_thumbnail_does_not_count(tmp_path: Path) -> None:
    jpeg, thumbnail = encode(scene(200, 200)), encode(scene())
    body = b"Exif\0\0" + thumbnail
    data = jpeg[:2] + b"\xff\xe1" + struct.pack(">H", len(body) + 2) + body + jpeg[2:]
    assert read_image(save(tmp_path / "whole.jpg", data)).shape == (200, 200, 3)
    with pytest.raises(InputError, match="truncated"):
        read_image(save(tmp_path / "cut.jpg", data[:-40]))


def test_read_image__png_checksum(tmp_path: Path) -> None:
    data = bytearray(encode(scene(), ".png"))
    data[len(data) // 2] ^= 0xFF
    with pytest.raises(InputError, match="checksum"):
        read_image(save(tmp_path / "a.png", bytes(data)))


def test_decode_image__names_what_was_given() -> None:
    assert decode_image(encode(scene(), ".png"), "x").shape == (24, 40, 3)
    with pytest.raises(InputError, match="frame 12"):
        decode_image(b"abc", "frame 12")


def test_image_size__header_only(tmp_path: Path) -> None:
    # the header alone is enough, so nothing was decoded
    data = encode(scene(24, 40))
    assert image_size(save(tmp_path / "a.jpg", data[: data.index(b"\xff\xda")])) == (40, 24)


def test_image_size__png_with_exif_is_turned(tmp_path: Path) -> None:
    plain = encode(scene(24, 40), ".png")
    tiff = b"II" + struct.pack("<HIHHHIHHI", 42, 8, 1, 0x0112, 3, 1, 6, 0, 0)
    path = save(tmp_path / "a.png", plain[:33] + png_chunk(b"eXIf", tiff) + plain[33:])
    height, width = read_image(path).shape[:2]
    assert image_size(path) == (width, height)


def test_is_image_name() -> None:
    assert is_image_name(Path("a/B.JPEG"))
    assert not is_image_name(Path("a/.hidden.jpg"))
    assert not is_image_name(Path("a/b.txt"))
