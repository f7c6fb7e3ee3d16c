"""Offsets of sides, by hand."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from ptedge.detector.roi_heads import RawDetections
from ptedge.training.losses.offset import (
    mirrored_alike,
    of_detected,
    shared_offset,
    side_drift,
    side_errors,
    without_offset,
)

TRUE = torch.tensor([[10.0, 10, 50, 30], [60, 10, 100, 30]])
LABELS = torch.tensor([0, 1])


def detections(boxes: torch.Tensor, scores: list[float], labels: torch.Tensor = LABELS) -> RawDetections:
    given: dict[str, Any] = dict.fromkeys(RawDetections.__dataclass_fields__, boxes)
    return RawDetections(**{**given, "scores": torch.tensor(scores), "labels": labels})


def test_side_errors__over_the_labelled_box() -> None:
    found = TRUE.flip(0) + torch.tensor([4.0, 2, 0, -1])
    errors = side_errors(found, LABELS.flip(0), TRUE, LABELS)
    assert errors.tolist() == [pytest.approx([0.1, 0.1, 0.0, -0.05])] * 2
    assert side_errors(found, LABELS, TRUE, LABELS).shape == (0, 4)  # other classes
    assert side_errors(found[:0], LABELS[:0], TRUE, LABELS).shape == (0, 4)
    assert side_errors(found, LABELS, TRUE[:0], LABELS[:0]).shape == (0, 4)


def test_side_errors__the_surest_box_is_asked_not_the_best() -> None:
    found = torch.stack([TRUE[0] + torch.tensor([4.0, 0, 0, 0]), TRUE[0]])
    errors = side_errors(found, LABELS[:1].repeat(2), TRUE[:1], LABELS[:1])
    assert errors.tolist() == [pytest.approx([0.1, 0.0, 0.0, 0.0])]


def test_shared_offset__shrunk_where_pairs_are_few() -> None:
    errors = torch.tensor([[0.08, 0.14, 0.01, -0.05]] * 12)
    assert shared_offset(errors).tolist() == pytest.approx([0.06, 0.105, 0.0075, -0.0375])  # 12 / 16 of it
    assert shared_offset(errors[:4]).tolist() == pytest.approx([0.04, 0.07, 0.005, -0.025])
    assert shared_offset(errors[:0]).tolist() == [0, 0, 0, 0]


def test_side_drift__of_boxes_that_both_are_sure_of() -> None:
    before = detections(TRUE, [0.9, 0.6])
    moved = TRUE + torch.tensor([[4.0, 0, 0, 0], [0, 2, 0, 0]])
    # weights 0.5 and 0.6: a tenth of the width of one, a tenth of the height of the other
    drift = side_drift([detections(moved, [0.5, 0.8])], [before])
    assert drift.tolist() == pytest.approx([0.05 / 1.1, 0.06 / 1.1, 0, 0])
    assert side_drift([detections(moved, [0.5, 0.2])], [before]).tolist() == pytest.approx([0.1, 0, 0, 0])
    assert side_drift([detections(moved, [0.1, 0.2])], [before]).tolist() == [0, 0, 0, 0]
    assert side_drift([], []).tolist() == [0, 0, 0, 0]


def test_mirrored_alike__leaves_out_a_shift_to_one_side() -> None:
    offset = torch.tensor([0.08, 0.14, 0.01, -0.05])
    mirrored = torch.tensor([-0.01, 0.14, -0.08, -0.05])
    assert mirrored_alike(offset).tolist() == pytest.approx([0.035, 0.14, -0.035, -0.05])
    assert mirrored_alike(mirrored).tolist() == pytest.approx(mirrored_alike(offset).tolist())


def test_of_detected__undoes_with_the_size_of_the_detected_box() -> None:
    offset = torch.tensor([0.08, 0.14, 0.01, -0.05])
    found = TRUE + offset * (TRUE[:, 2:] - TRUE[:, :2]).repeat(1, 2)
    again = found - of_detected(offset) * (found[:, 2:] - found[:, :2]).repeat(1, 2)
    assert torch.allclose(again, TRUE, atol=1e-5)


def test_without_offset__undoes_what_was_added() -> None:
    offset = torch.tensor([0.08, 0.14, 0.01, -0.05])
    size = (TRUE[:, 2:] - TRUE[:, :2]).repeat(1, 2)
    assert torch.allclose(without_offset(TRUE + offset * size, offset), TRUE, atol=1e-5)
    assert torch.equal(without_offset(TRUE, torch.zeros(4)), TRUE)
