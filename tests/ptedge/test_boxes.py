from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from ptedge.boxes import box_area, box_iou, clip_boxes


def array(*rows: tuple[float, float, float, float]) -> NDArray[np.float32]:
    return np.array(rows, np.float32).reshape(-1, 4)


def boxes(max_size: int = 5) -> st.SearchStrategy[NDArray[np.float32]]:
    side = st.integers(-50, 150)
    return st.lists(st.tuples(side, side, side, side), max_size=max_size).map(lambda rows: array(*rows))


def slow_iou(a: NDArray[np.float32], b: NDArray[np.float32]) -> float:
    """Count whole pixels: right for integer corners."""
    cells_a = {(x, y) for x in range(int(a[0]), int(a[2])) for y in range(int(a[1]), int(a[3]))}
    cells_b = {(x, y) for x in range(int(b[0]), int(b[2])) for y in range(int(b[1]), int(b[3]))}
    union = len(cells_a | cells_b)
    return len(cells_a & cells_b) / union if union else 0.0


def test_box_area__by_hand() -> None:
    got = box_area(array((0, 0, 2, 3), (1, 1, 1, 5), (5, 5, 1, 1), (-1, -1, 1, 1)))
    np.testing.assert_array_equal(got, [6, 0, 0, 4])


def test_box_iou__by_hand() -> None:
    a = array((0, 0, 2, 2), (0, 0, 4, 4))
    b = array((0, 0, 2, 2), (1, 1, 3, 3), (2, 2, 4, 4), (5, 5, 5, 5))
    # 1 of 4 + 4 - 1; touching corners share nothing; 4 of 16
    np.testing.assert_allclose(box_iou(a, b), [[1, 1 / 7, 0, 0], [4 / 16, 4 / 16, 4 / 16, 0]], rtol=1e-6)


def test_box_iou__empty_lists_and_empty_boxes() -> None:
    assert box_iou(array(), array((0, 0, 1, 1))).shape == (0, 1)
    assert box_iou(array((0, 0, 1, 1)), array()).shape == (1, 0)
    np.testing.assert_array_equal(box_iou(array((1, 1, 1, 1)), array((1, 1, 1, 1))), [[0]])


@given(boxes(3), boxes(3))
def test_box_iou__equals_counting_pixels(a: NDArray[np.float32], b: NDArray[np.float32]) -> None:
    a, b = np.clip(a, 0, 25), np.clip(b, 0, 25)
    expected = [[slow_iou(p, q) for q in b] for p in a]
    np.testing.assert_allclose(box_iou(a, b), np.array(expected).reshape(len(a), len(b)), atol=1e-6)


@given(boxes(), boxes())
def test_box_iou__is_symmetric_and_in_0_to_1(a: NDArray[np.float32], b: NDArray[np.float32]) -> None:
    iou = box_iou(a, b)
    np.testing.assert_array_equal(iou, box_iou(b, a).T)
    assert ((iou >= 0) & (iou <= 1 + 1e-6)).all()


def test_clip_boxes__by_hand() -> None:
    got = clip_boxes(array((-5, -5, 5, 5), (90, 40, 110, 60), (1, 2, 3, 4)), width=100, height=50)
    np.testing.assert_array_equal(got, array((0, 0, 5, 5), (90, 40, 100, 50), (1, 2, 3, 4)))
    assert got.dtype == np.float32


@given(boxes())
def test_clip_boxes__twice_is_once_and_nothing_is_changed_in_place(a: NDArray[np.float32]) -> None:
    before = a.copy()
    once = clip_boxes(a, 100, 60)
    np.testing.assert_array_equal(clip_boxes(once, 100, 60), once)
    np.testing.assert_array_equal(a, before)
    assert (once[:, 0::2] <= 100).all()
    assert (once[:, 1::2] <= 60).all()
    assert (once >= 0).all()


def test_box_iou__boxes_smaller_than_a_pixel() -> None:
    a = np.array([[0, 0, 0.5, 0.5]], np.float32)
    b = np.array([[0, 0, 0.5, 0.5], [0, 0, 0.5, 0.25]], np.float32)
    assert box_iou(a, b).tolist() == [[1.0, 0.5]]
