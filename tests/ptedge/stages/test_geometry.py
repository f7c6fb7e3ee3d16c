"""Box maths of the two stages, by hand and against slow loops."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ptedge.boxes import box_iou
from ptedge.detector.config import ROI_WEIGHTS, RPN_WEIGHTS
from ptedge.stages.geometry import anchor_boxes, cluster_sigma, corner_sigma, decode, has_area, suppress


def array(*rows: tuple[float, ...]) -> np.ndarray:
    return np.array(rows, np.float32)


def test_anchor_boxes__cells_row_by_row_then_shapes() -> None:
    found = anchor_boxes(array((16, 8), (4, 4)), 1, 2)
    assert found.tolist() == [[0, 4, 16, 12], [6, 6, 10, 10], [16, 4, 32, 12], [22, 6, 26, 10]]
    assert anchor_boxes(array((16, 8)), 2, 1)[1].tolist() == [0, 20, 16, 28]


def test_decode__moves_and_scales() -> None:
    reference = array((10, 20, 30, 60))
    assert decode(array((0, 0, 0, 0)), reference, ROI_WEIGHTS).tolist() == [[10, 20, 30, 60]]
    assert decode(array((10, -5, 0, 0)), reference, ROI_WEIGHTS).tolist() == [[30, 0, 50, 40]]
    np.testing.assert_allclose(
        decode(array((0, 0, math.log(2), math.log(0.5))), reference, RPN_WEIGHTS), [[0, 30, 40, 50]], rtol=1e-6
    )
    far = decode(array((0, 0, 1e9, 0)), reference, RPN_WEIGHTS)
    np.testing.assert_allclose(far[0, 2] - far[0, 0], 20 * 1000 / 16, rtol=1e-5)


def test_corner_sigma__centre_and_half_the_size() -> None:
    # width 20 and height 40 of the reference, 40 and 40 of the box
    found = corner_sigma(array((0.25, 1, 0.09, 0)), array((0, 0, 40, 40)), array((0, 0, 20, 40)), ROI_WEIGHTS)
    x = math.sqrt((0.5 * 20 / 10) ** 2 + (0.3 * 40 / 5) ** 2 / 4)
    np.testing.assert_allclose(found, [[x, 4, x, 4]], rtol=1e-6)


def test_has_area__both_sides_count() -> None:
    assert has_area(array((0, 0, 1, 1), (0, 0, 0, 1), (0, 2, 1, 1))).tolist() == [True, False, False]


def slow(boxes: np.ndarray, threshold: float, labels: np.ndarray) -> list[int]:
    kept: list[int] = []
    iou = box_iou(boxes, boxes)
    for i in range(len(boxes)):
        if not any(iou[i, j] > threshold and labels[i] == labels[j] for j in kept):
            kept.append(i)
    return kept


@pytest.mark.parametrize(("count", "classes"), [(1, 1), (60, 3), (600, 1), (600, 2)])
def test_suppress__as_a_slow_loop(count: int, classes: int) -> None:
    generator = np.random.default_rng(count)
    corner = generator.uniform(0, 100, (count, 2))
    boxes = np.concatenate([corner, corner + generator.uniform(5, 40, (count, 2))], axis=1).astype(np.float32)
    labels = generator.integers(0, classes, count)
    wanted = slow(boxes, 0.4, labels)
    assert suppress(boxes, 0.4, labels).tolist() == wanted
    assert suppress(boxes, 0.4, labels, most=7).tolist() == wanted[:7]
    if classes == 1:
        assert suppress(boxes, 0.4).tolist() == wanted


def test_suppress__exactly_at_the_threshold_stays_and_nothing_gives_nothing() -> None:
    halves = array((0, 0, 2, 1), (0, 0, 1, 1))  # IoU of one half, without rounding
    assert suppress(halves, 0.5).tolist() == [0, 1]
    assert suppress(halves, 0.499).tolist() == [0]
    assert suppress(np.empty((0, 4), np.float32), 0.5).tolist() == []


def test_cluster_sigma__mixture_about_the_side_that_is_reported() -> None:
    box = (0.0, 0.0, 10.0, 10.0)
    boxes, sigma = array(box, box, (50, 50, 60, 60)), array((3,) * 4, (4,) * 4, (9,) * 4)
    scores = np.array([0.5, 0.5, 0.9], np.float32)
    found = cluster_sigma(array(box), boxes, scores, sigma, np.ones((1, 3), np.bool_))
    np.testing.assert_allclose(found, [[math.sqrt((9 + 16) / 2)] * 4], rtol=1e-6)
    alone = cluster_sigma(array(box), boxes, scores, sigma, np.array([[True, False, True]]))
    np.testing.assert_allclose(alone, [[3] * 4], rtol=1e-6)


def test_cluster_sigma__a_candidate_farther_off_weighs_less() -> None:
    boxes, sigma = array((0, 0, 10, 10), (0, 0, 10, 8)), array((1,) * 4, (1,) * 4)  # IoU 0.8
    found = cluster_sigma(boxes[:1], boxes, np.array([0.8, 0.4], np.float32), sigma, np.ones((1, 2), np.bool_))
    weight = 0.4 * math.exp(-0.04 / 0.1)
    y2 = math.sqrt((0.8 * 1 + weight * (1 + 4)) / (0.8 + weight))
    np.testing.assert_allclose(found, [[1, 1, 1, y2]], rtol=1e-5)
