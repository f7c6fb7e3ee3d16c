from __future__ import annotations

import numpy as np

from ptedge.scores.matching import ON_IGNORE, UNMATCHED, match_as_devkit, match_boxes, overlaps


def test_match_boxes__ignore_takes_many_and_only_when_no_box_is_free() -> None:
    overlap = np.array([[0.6, 0.9], [0.7, 0.8], [0.0, 0.9], [0.0, 0.4]])  # column 1 is an ignore box
    got = match_boxes(overlap, np.array([False, True]), [0.5, 0.65])
    assert got.tolist() == [[0, ON_IGNORE, ON_IGNORE, UNMATCHED], [ON_IGNORE, 0, ON_IGNORE, UNMATCHED]]


def test_match_boxes__of_equal_overlaps_the_last_box_is_taken() -> None:
    overlap = np.array([[0.6, 0.6, 0.5], [0.6, 0.6, 0.6]])
    assert match_boxes(overlap, np.zeros(3, bool), [0.5]).tolist() == [[1, 2]]


def test_match_boxes__no_detections_or_no_boxes() -> None:
    assert match_boxes(np.zeros((0, 3)), np.zeros(3, bool), [0.5]).shape == (1, 0)
    assert match_boxes(np.zeros((2, 0)), np.zeros(0, bool), [0.5]).tolist() == [[UNMATCHED, UNMATCHED]]


def test_match_as_devkit__a_taken_box_makes_the_next_detection_wrong_though_another_is_free() -> None:
    iou = np.array([[0.9, 0.2], [0.8, 0.7], [0.1, 0.6]])
    assert match_as_devkit(iou, np.zeros(2, bool), 0.5).tolist() == [0, UNMATCHED, 1]
    assert match_boxes(iou, np.zeros(2, bool), [0.5])[0].tolist() == [0, 1, UNMATCHED]


def test_match_as_devkit__a_difficult_box_takes_any_number_and_only_as_the_best_one() -> None:
    iou = np.array([[0.6, 0.9], [0.6, 0.8], [0.7, 0.5]])  # column 1 is difficult
    assert match_as_devkit(iou, np.array([False, True]), 0.5).tolist() == [ON_IGNORE, ON_IGNORE, 0]


def test_match_as_devkit__overlaps_by_more_than_the_threshold() -> None:
    assert match_as_devkit(np.array([[0.5], [0.51]]), np.zeros(1, bool), 0.5).tolist() == [UNMATCHED, 0]


def test_match_as_devkit__of_equal_overlaps_the_first_box_is_taken() -> None:
    assert match_as_devkit(np.array([[0.6, 0.6]]), np.zeros(2, bool), 0.5).tolist() == [0]


def test_match_as_devkit__no_detections_or_no_boxes() -> None:
    assert match_as_devkit(np.zeros((0, 3)), np.zeros(3, bool), 0.5).shape == (0,)
    assert match_as_devkit(np.zeros((2, 0)), np.zeros(0, bool), 0.5).tolist() == [UNMATCHED, UNMATCHED]


def test_overlaps__of_a_box_to_ignore_by_the_detections_own_area() -> None:
    boxes = np.array([[0, 0, 10, 10]], np.float32)
    truth = np.array([[0, 0, 10, 20], [5, 0, 25, 10]], np.float64)
    assert overlaps(boxes, truth, np.array([False, True])).tolist() == [[0.5, 0.5]]
    assert overlaps(boxes, truth, np.array([True, False])).tolist() == [[1.0, 0.2]]
