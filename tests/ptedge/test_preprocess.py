from __future__ import annotations

import cv2
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from ptedge.detections import Detections
from ptedge.preprocess import PIXEL_MEAN, Letterbox, shrink_quickly


def detections(boxes: NDArray[np.float32], sigma: float = 3.0) -> Detections:
    count = len(boxes)
    return Detections(
        boxes.astype(np.float32),
        np.linspace(1, 0.5, count, dtype=np.float32),
        np.zeros(count, np.int64),
        np.full((count, 4), sigma, np.float32),
        np.zeros(count, np.float32),
    )


def test_letterbox__placement_by_hand() -> None:
    wide = Letterbox(width=1280, height=720, input_height=240, input_width=416)
    assert wide.scale == 416 / 1280  # 0.325; 240 / 720 would be 0.333
    assert wide.content == (234, 416)
    tall = Letterbox(width=100, height=400, input_height=240, input_width=416)
    assert tall.scale == 0.6
    assert tall.content == (240, 60)
    small = Letterbox(width=52, height=30, input_height=240, input_width=416)
    assert small.scale == 8  # small images are enlarged
    assert small.content == (240, 416)


def test_letterbox__sides_are_rounded_to_the_nearest() -> None:
    # scale 96 / 100: 61 becomes 58.56, 62 becomes 59.52
    assert Letterbox(61, 100, 96, 160).content == (96, 59)
    assert Letterbox(62, 100, 96, 160).content == (96, 60)
    assert Letterbox(100, 61, 160, 96).content == (59, 96)
    assert Letterbox(55, 100, 96, 160).content == (96, 53)  # 52.8
    assert Letterbox(57, 100, 96, 160).content == (96, 55)  # 54.72
    assert Letterbox(59, 100, 96, 160).content == (96, 57)  # 56.64
    assert Letterbox(60, 125, 96, 160).content == (96, 46)  # 46.08
    assert Letterbox(1, 1000, 96, 160).content == (96, 1)  # never nothing


def test_image__content_at_the_top_left_and_mean_around() -> None:
    image = np.full((20, 10, 3), 200, np.uint8)
    out = Letterbox(10, 20, 32, 48).image(image)
    assert out.shape == (32, 48, 3)
    assert out.dtype == np.uint8
    assert (out[:, :16] == 200).all()  # scale 1.6
    assert (out[:, 16:] == np.round(PIXEL_MEAN).astype(np.uint8)).all()


def test_image__same_size_is_the_image() -> None:
    image = np.random.default_rng(0).integers(0, 256, (32, 48, 3), dtype=np.uint8)
    np.testing.assert_array_equal(Letterbox(48, 32, 32, 48).image(image), image)


def test_image__area_averaging_from_the_first_shrinking_on() -> None:
    image = np.repeat(np.array([0, 120, 240, 0], np.uint8)[None, :, None], 4, 0).repeat(3, 2)
    out = Letterbox(4, 4, 3, 3).image(image)[0, :, 0]
    # each output pixel covers 4/3 of the input: (0 + 120 / 3) / (4 / 3), (120 + 240) / 2, (240 / 3 + 0) / (4 / 3)
    assert out.tolist() == [30, 180, 60]


def test_image__keeps_the_channel_order() -> None:
    image = np.zeros((20, 30, 3), np.uint8)
    image[..., 0] = 255
    np.testing.assert_array_equal(Letterbox(30, 20, 32, 48).image(image)[5, 5], [255, 0, 0])


def test_image__shrinking_averages_instead_of_skipping() -> None:
    image = np.zeros((64, 64, 3), np.uint8)
    image[:, ::4] = 252  # one column in four
    out = Letterbox(64, 64, 16, 16).image(image)
    np.testing.assert_array_equal(out, np.full((16, 16, 3), 63))


def test_image__extreme_aspect_keeps_at_least_a_pixel() -> None:
    out = Letterbox(4000, 2, 32, 48).image(np.full((2, 4000, 3), 7, np.uint8))
    assert (out[0] == 7).all()
    assert Letterbox(4000, 2, 32, 48).content == (1, 48)
    assert (Letterbox(4000, 2, 32, 48).image(np.full((2, 4000, 3), 7, np.uint8), quick=True)[0] == 7).all()


def shares(count: int, wanted: int) -> NDArray[np.float64]:
    """[wanted, count]: the part that each of ``count`` pixels has in each of ``wanted``, by area."""
    edges = np.arange(wanted + 1) * (count / wanted)
    pixel = np.arange(count)
    overlap = np.minimum(pixel + 1, edges[1:, None]) - np.maximum(pixel, edges[:-1, None])
    return np.asarray(np.clip(overlap, 0, None) * wanted / count)


def by_area(image: NDArray[np.uint8], size: tuple[int, int]) -> NDArray[np.float64]:
    rows, columns = shares(image.shape[0], size[1]), shares(image.shape[1], size[0])
    return np.einsum("yr,rcd,xc->yxd", rows, image.astype(np.float64), columns, optimize=True)


def noise(height: int, width: int) -> NDArray[np.uint8]:
    return np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8)


@pytest.mark.parametrize("ratio", [2, 3, 4, 7])
def test_shrink_quickly__of_whole_pixels_is_the_area_s_mean(ratio: int) -> None:
    image = noise(11 * ratio, 17 * ratio)
    found = shrink_quickly(image, (17, 11))
    assert np.abs(found - by_area(image, (17, 11))).max() <= 1


@pytest.mark.parametrize("width", [640, 960, 1280, 1920])
def test_shrink_quickly__is_near_the_area_s_mean(width: int) -> None:
    height = width * 9 // 16
    image = cv2.GaussianBlur(noise(height, width), (0, 0), 1.0)  # edges as sharp as a lens makes them
    content = Letterbox(width, height, 160, 288).content[::-1]  # 2.2, 3.3, 4.4 and 6.7 pixels a side
    away = np.abs(shrink_quickly(np.asarray(image, np.uint8), content) - by_area(np.asarray(image, np.uint8), content))
    assert away.mean() < 1.5 and away.max() < 16
    nearest = cv2.resize(image, content, interpolation=cv2.INTER_LINEAR)  # what averages nothing is further away
    assert away.mean() < 0.4 * np.abs(nearest - by_area(np.asarray(image, np.uint8), content)).mean()


def test_image__quick_only_where_it_shrinks_to_half_and_less() -> None:
    large, small = Letterbox(96, 64, 32, 48), Letterbox(95, 64, 33, 48)
    image = noise(64, 96)
    assert np.array_equal(large.image(image, quick=True), shrink_quickly(image, (48, 32)))
    image = noise(64, 95)
    assert np.array_equal(small.image(image, quick=True), small.image(image))


def test_image__of_another_size_is_refused() -> None:
    with pytest.raises(ValueError, match="got an image of shape"):
        Letterbox(48, 32, 32, 48).image(np.zeros((48, 32, 3), np.uint8))


def test_undo__by_hand() -> None:
    box = Letterbox(width=1000, height=500, input_height=100, input_width=100)  # scale 0.1, content 50 x 100
    got = box.undo(detections(np.array([[10, 10, 20, 30]]), sigma=3.0))
    np.testing.assert_allclose(got.boxes, [[100, 100, 200, 300]], rtol=1e-6)
    np.testing.assert_allclose(got.sigma, [[30, 30, 30, 30]], rtol=1e-6)  # a deviation scales as a length does
    assert got.boxes.dtype == got.sigma.dtype == np.float32


def test_undo__clips_to_the_image_and_drops_what_lay_in_the_padding() -> None:
    box = Letterbox(width=1000, height=500, input_height=100, input_width=100)
    got = box.undo(detections(np.array([[90, 40, 110, 80], [10, 60, 20, 90], [5, 5, 5, 9], [-9, 0, 1, 1]])))
    np.testing.assert_allclose(got.boxes, [[900, 400, 1000, 500], [0, 0, 10, 10]], rtol=1e-6)
    assert len(got.scores) == 2
    assert got.scores[0] == 1


def test_undo__nothing_stays_nothing() -> None:
    assert len(Letterbox(10, 20, 32, 48).undo(Detections.empty())) == 0


sizes = st.integers(1, 2000)


@given(sizes, sizes, st.integers(1, 60), st.integers(1, 60), st.lists(st.tuples(*[st.floats(0, 1)] * 4), max_size=5))
def test_undo__is_the_inverse_of_boxes(
    width: int, height: int, rows: int, columns: int, corners: list[tuple[float, float, float, float]]
) -> None:
    box = Letterbox(width, height, 16 * rows, 16 * columns)
    lows = [(min(a, c) * width, min(b, d) * height, max(a, c) * width, max(b, d) * height) for a, b, c, d in corners]
    before = np.array(lows, np.float32).reshape(-1, 4)
    assume(((before[:, 2:] - before[:, :2]) > 1e-2).all())
    after = box.undo(detections(box.boxes(before), sigma=box.scale))
    np.testing.assert_allclose(after.boxes, before, rtol=1e-5, atol=1e-3)
    np.testing.assert_allclose(after.sigma, 1, rtol=1e-5)


@given(sizes, sizes, st.integers(1, 60), st.integers(1, 60))
def test_content__fits_and_keeps_the_aspect_within_a_pixel(width: int, height: int, rows: int, columns: int) -> None:
    box = Letterbox(width, height, 16 * rows, 16 * columns)
    content_height, content_width = box.content
    assert 1 <= content_height <= 16 * rows
    assert 1 <= content_width <= 16 * columns
    assert content_height == 16 * rows or content_width == 16 * columns
    assert abs(content_width - width * box.scale) <= 1
    assert abs(content_height - height * box.scale) <= 1


@pytest.mark.parametrize(("width", "height"), [(676, 380), (333, 77), (97, 501)])
def test_image__a_drawn_box_lies_where_boxes_says(width: int, height: int) -> None:
    # sizes that do not divide: picture and arithmetic must agree to about a pixel
    image = np.zeros((height, width, 3), np.uint8)
    corner = (width // 3, height // 3, 2 * width // 3, 2 * height // 3)
    cv2.rectangle(image, corner[:2], (corner[2] - 1, corner[3] - 1), (255, 255, 255), -1)
    box = Letterbox(width, height, 240, 416)
    content_height, content_width = box.content
    bright = box.image(image)[:content_height, :content_width, 0] > 127
    ys, xs = np.nonzero(bright)
    found = np.array([xs.min(), ys.min(), xs.max() + 1, ys.max() + 1])
    np.testing.assert_allclose(found, box.boxes(np.array([corner], np.float32))[0], atol=1.01)
