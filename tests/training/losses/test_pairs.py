"""Boxes of two detectors paired one to one."""

from __future__ import annotations

import torch

from ptedge.training.losses.pairs import pair_boxes

BOXES = torch.tensor([[0.0, 0, 10, 10], [0, 0, 10, 8], [50, 50, 60, 60]])
LABELS = torch.tensor([0, 0, 1])


def test_pair_boxes__the_highest_iou_first_and_each_box_once() -> None:
    # IoU of row 0: 0.9 and 0.8; of row 1 (10 x 8): 8/9 and 1.0. The best pair, (1, 1), leaves (0, 0)
    other = torch.tensor([[0.0, 0, 10, 9], [0, 0, 10, 8], [0, 0, 10, 8]])
    assert pair_boxes(BOXES, LABELS, other, torch.tensor([0, 0, 0]), 0.5) == [(1, 1), (0, 0)]


def test_pair_boxes__other_classes_and_the_threshold_itself_are_no_pair() -> None:
    half = torch.tensor([[0.0, 0, 10, 5]])  # IoU 0.5 with row 0, 5/8 with row 1
    assert pair_boxes(BOXES[:1], LABELS[:1], half, torch.tensor([0]), 0.5) == []
    assert pair_boxes(BOXES[:1], LABELS[:1], half, torch.tensor([0]), 0.49) == [(0, 0)]
    assert pair_boxes(BOXES[2:], LABELS[2:], BOXES[2:], torch.tensor([0]), 0.5) == []


def test_pair_boxes__nothing_to_pair() -> None:
    none, no_labels = torch.zeros(0, 4), torch.zeros(0, dtype=torch.int64)
    assert pair_boxes(none, no_labels, BOXES, LABELS, 0.5) == pair_boxes(BOXES, LABELS, none, no_labels, 0.5) == []
