"""Offsets of sides, by hand."""

from __future__ import annotations

import pytest
import torch

from ptedge.training.losses.offset import common_offset, side_errors, without_offset

TRUE = torch.tensor([[10.0, 10, 50, 30], [60, 10, 100, 30]])
LABELS = torch.tensor([0, 1])


def test_side_errors__over_the_labelled_box() -> None:
    found = TRUE.flip(0) + torch.tensor([4.0, 2, 0, -1])
    errors = side_errors(found, LABELS.flip(0), TRUE, LABELS)
    assert errors.tolist() == [pytest.approx([0.1, 0.1, 0.0, -0.05])] * 2
    assert side_errors(found, LABELS, TRUE, LABELS).shape == (0, 4)  # other classes
    assert side_errors(found[:0], LABELS[:0], TRUE, LABELS).shape == (0, 4)


def test_common_offset__median_shrunk_and_the_same_mirrored() -> None:
    errors = torch.tensor([[0.08, 0.14, 0.01, -0.05]] * 3 + [[9.0, 9, 9, 9]] * 2)
    share = 5 / 9
    expected = [0.035 * share, 0.14 * share, -0.035 * share, -0.05 * share]
    assert common_offset(errors).tolist() == pytest.approx(expected)
    mirrored = torch.stack([-errors[:, 2], errors[:, 1], -errors[:, 0], errors[:, 3]], dim=1)
    assert common_offset(mirrored[:3]).tolist() == pytest.approx(common_offset(errors[:3]).tolist())
    assert common_offset(errors[:0]).tolist() == [0, 0, 0, 0]


def test_without_offset__undoes_what_was_added() -> None:
    offset = torch.tensor([0.035, 0.14, -0.035, -0.05])
    size = (TRUE[:, 2:] - TRUE[:, :2]).repeat(1, 2)
    assert torch.allclose(without_offset(TRUE + offset * size, offset), TRUE, atol=1e-5)
    assert torch.equal(without_offset(TRUE, torch.zeros(4)), TRUE)
