"""Decoding of image files: values by hand for every kind of file, and clear errors for broken ones."""

from __future__ import annotations

import os
import struct
import zlib
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
    webp_with_orientation,
)

from ptedge.errors import InputError
from ptedge.frames import images
from ptedge.frames.images import (
    decode_image,
    image_header,
    image_size,
    is_image_name,
    most_pixels,
    printable,
    read_image,
    read_picture,
)


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
    path = save(tmp_path / "a.jpg", jpeg_with_orientation(encode(scene(24, 40)), orientation, order))
    image = read_image(path)
    height, width = (40, 24) if orientation >= 5 else (24, 40)
    assert image.shape == (height, width, 3)
    assert image_size(path) == (width, height)
    lower, right = TURNED[orientation]
    assert image[height - 3 if lower else 2, width - 3 if right else 2, 0] > 200
    assert image[2 if lower else height - 3, 2 if right else width - 3, 0] < 50


def turned_file(kind: str, orientation: int) -> bytes:
    """The scene of 24 x 40 as a file of some kind that says how to turn it."""
    if kind == ".png":
        return png_with(encode(scene(), kind), png_chunk(b"eXIf", exif(orientation)))
    if kind == ".webp":
        return webp_with_orientation(encode(scene(), kind), 40, 24, orientation)
    if kind == ".avif":
        turn = {5: 1, 6: 3, 7: 1, 8: 1, 3: 2}.get(orientation)
        mirror = {2: 1, 4: 0, 5: 0, 7: 1}.get(orientation)
        properties = [] if turn is None else [box(b"irot", bytes([turn]))]
        properties += [] if mirror is None else [box(b"imir", bytes([mirror]))]
        return avif_turned(encode(scene(), kind), *properties)
    grey = np.where(scene()[..., 0] > 0, 255, 0).astype(np.uint8)
    return tiff({256: 40, 257: 24, 278: 24, 274: orientation}, grey.tobytes())


@pytest.mark.parametrize("kind", [".png", ".webp", ".avif", ".tiff"])
@pytest.mark.parametrize("orientation", TURNED)
def test_read_image__turned_whatever_the_kind(tmp_path: Path, kind: str, orientation: int) -> None:
    if kind == ".avif" and not cv2.haveImageWriter("a.avif"):
        pytest.skip("this OpenCV has no AVIF")
    path = save(tmp_path / f"a{kind}", turned_file(kind, orientation))
    image = read_image(path)
    height, width = (40, 24) if orientation >= 5 else (24, 40)
    assert image.shape == (height, width, 3) and image_size(path) == (width, height)
    lower, right = TURNED[orientation]
    assert image[height - 3 if lower else 2, width - 3 if right else 2, 0] > 200
    assert image[2 if lower else height - 3, 2 if right else width - 3, 0] < 50


def test_read_image__avif_does_not_follow_exif(tmp_path: Path) -> None:
    if not cv2.haveImageWriter("a.avif"):
        pytest.skip("this OpenCV has no AVIF")
    # as an item of its own, an EXIF block changes nothing about the primary picture
    path = save(tmp_path / "a.avif", encode(scene(), ".avif") + box(b"free", exif(6)))
    assert read_image(path).shape == (24, 40, 3)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"P5\n4 1\n4095\n" + np.array([0, 255, 4095, 1000], ">u2").tobytes(), [0, 16, 255, 62]),  # 1000 / 4095 * 255
        (b"P5\n4 1\n15\n" + bytes([0, 5, 10, 15]), [0, 85, 170, 255]),
        (b"P5\n4 1\n65535\n" + np.array([0, 255, 4095, 65535], ">u2").tobytes(), [0, 0, 15, 255]),
        (b"P2\n4 1\n100\n0 50 100 200\n", [0, 127, 255, 255]),
        # 12 bits packed: 0, 255, 4095, 1000
        (tiff({256: 4, 258: 12}, bytes.fromhex("0000fffff3e8")), [0, 15, 255, 62]),
        (tiff({256: 4, 258: 16}, np.array([0, 255, 4095, 65535], "<u2").tobytes()), [0, 0, 15, 255]),
        (tiff({256: 4, 258: 16, 262: 0}, np.array([0, 255, 4095, 65535], "<u2").tobytes()), [255, 255, 240, 0]),
        (tiff({256: 4, 262: 0}, bytes([0, 5, 100, 255])), [255, 250, 155, 0]),
    ],
)
def test_read_image__samples_of_other_than_8_bits(tmp_path: Path, data: bytes, expected: list[int]) -> None:
    assert read_image(save(tmp_path / "a", data))[0, :, 1].tolist() == expected


def test_read_picture__twelve_bits_in_sixteen_are_told(tmp_path: Path) -> None:
    def brightest(values: list[int]) -> int | None:
        picture = read_picture(save(tmp_path / "a.png", encode(np.array([values], np.uint16), ".png")))
        assert picture.image[0, :, 0].tolist() == [value >> 8 for value in values]  # nothing is stretched
        return picture.brightest

    assert brightest([0, 1000, 4095]) == 4095
    assert brightest([0, 1000, 4096]) is None
    assert brightest([0, 0, 0]) is None  # black
    eight = save(tmp_path / "b.png", encode(np.full((2, 2), 9, np.uint8), ".png"))
    assert read_picture(eight).brightest is None


def test_read_picture__pictures_in_the_file(tmp_path: Path) -> None:
    animated = png_with(encode(scene(), ".png"), png_chunk(b"acTL", struct.pack(">II", 1, 0)))
    assert read_picture(save(tmp_path / "a.png", animated)).pictures == 1
    pages = [np.full((4, 6, 3), value, np.uint8) for value in (10, 200)]
    assert cv2.imwritemulti(str(tmp_path / "a.tiff"), pages)
    picture = read_picture(tmp_path / "a.tiff")
    assert picture.pictures == 2 and (picture.image == 10).all()


def test_read_image__cmyk(tmp_path: Path) -> None:
    cyan = tiff({256: 1, 258: (8, 8, 8, 8), 262: 5, 277: 4}, bytes([255, 0, 0, 0]))
    assert read_image(save(tmp_path / "a.tif", cyan)).tolist() == [[[0, 255, 255]]]


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


def test_read_image__large_ones_are_turned_to_rgb_in_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    noise = np.random.default_rng(0).integers(0, 255, (9000, 50, 3), dtype=np.uint8)  # more than one band
    path = save(tmp_path / "a.bmp", encode(noise, ".bmp"))
    assert np.array_equal(read_image(path), noise)
    monkeypatch.setattr(images, "_IN_PLACE", 0)
    assert np.array_equal(read_image(path), noise)


def test_image_header__by_content_not_by_name(tmp_path: Path) -> None:
    header = image_header(save(tmp_path / "a.bin", encode(scene())))
    assert header is not None and header.kind == "JPEG"
    assert image_header(save(tmp_path / "b.jpg", b"text")) is None
    assert image_header(tmp_path) is image_header(tmp_path / "nothing") is None


def test_printable(tmp_path: Path) -> None:
    assert printable("a/straße 写真.png") == "a/straße 写真.png"
    assert printable(os.fsdecode(b"caf\xe9.png")) == "caf\\xe9.png"


def png_of(width: int, height: int) -> bytes:
    """The header of a PNG of any size, and no pixels."""
    start = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", start) + png_chunk(b"IDAT", b"") + png_chunk(b"IEND", b"")


def test_read_image__pixels_are_limited_before_decoding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PTEDGE_MAX_PIXELS", raising=False)

    def decode(*_: object) -> None:
        raise AssertionError("decoded")

    monkeypatch.setattr(images.cv2, "imdecode", decode)
    path = save(tmp_path / "bomb.png", png_of(30000, 30000))
    for function in (read_image, image_size):
        with pytest.raises(InputError, match=r"bomb\.png is too large: 30000 x 30000 .* PTEDGE_MAX_PIXELS"):
            function(path)
    monkeypatch.setenv("PTEDGE_MAX_PIXELS", "900000000")
    assert image_size(path) == (30000, 30000)
    monkeypatch.setenv("PTEDGE_MAX_PIXELS", "899999999")
    with pytest.raises(InputError, match="too large"):
        image_size(path)


def test_read_image__the_limit_itself_is_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save(tmp_path / "a.png", encode(scene(24, 40), ".png"))
    monkeypatch.setenv("PTEDGE_MAX_PIXELS", "960")
    assert read_image(path).shape == (24, 40, 3)
    monkeypatch.setenv("PTEDGE_MAX_PIXELS", "959")
    with pytest.raises(InputError, match="too large"):
        read_image(path)


@pytest.mark.parametrize("value", ["many", "0", "-5", "1e9", "²"])
def test_most_pixels__no_number(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("PTEDGE_MAX_PIXELS", value)
    with pytest.raises(InputError, match="PTEDGE_MAX_PIXELS"):
        most_pixels()


def test_read_image__many_samples_count_as_pixels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTEDGE_MAX_PIXELS", "100")
    path = save(tmp_path / "a.tif", tiff({256: 4, 277: 1000}, b"\0" * 4000))
    with pytest.raises(InputError, match="1000 samples"):
        read_image(path)


def test_read_image__a_file_longer_than_its_pixels_can_need(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images, "_LARGEST_REST", 1000)
    path = save(tmp_path / "a.jpg", encode(scene(4, 4)) + bytes(1000))
    with pytest.raises(InputError, match="more than its pixels can need"):
        read_image(path)


def test_read_image__scans_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = encode(scene(), ".jpg")
    monkeypatch.setenv("PTEDGE_MAX_PIXELS", "1000")
    path = save(tmp_path / "a.jpg", data[:-2] + b"\xff\xda" * 30 + data[-2:])
    with pytest.raises(InputError, match="31 scans"):
        read_image(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no pipes with names")
def test_read_image__only_files_are_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.png")
    (tmp_path / "zero.png").symlink_to("/dev/zero")
    (tmp_path / "link.png").symlink_to("pipe.png")
    for name, what in (("pipe", "a pipe"), ("zero", "a device"), ("link", "a pipe")):
        for function in (read_image, image_size):
            with pytest.raises(InputError, match=f"{name}.png cannot be read: it is {what}"):
                function(tmp_path / f"{name}.png")
    with pytest.raises(InputError, match="zero byte"):
        read_image(Path("a\0b.png"))
    with pytest.raises(InputError, match="cannot be read"):
        read_image(tmp_path / ("x" * 5000))


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (box(b"ftyp", b"heic" + bytes(4)), "HEIC"),
        (b"\xff\x0a" + bytes(20), "JPEG XL"),
        (tiff({50706: 1}, b"ab"), "DNG"),
    ],
)
def test_read_image__kinds_that_are_named_but_not_read(tmp_path: Path, data: bytes, what: str) -> None:
    with pytest.raises(InputError, match=f"a.jpg is .*{what}"):
        read_image(save(tmp_path / "a.jpg", data))
