"""Sigma of a cluster: by hand, at its edges, and against slow loops."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from slow_cluster import slow_cluster_sigma
from torch import Tensor
from torchvision.ops import batched_nms, box_iou, clip_boxes_to_image

from ptedge.detector.cluster import cluster_sigma

BOX = [10.0, 10.0, 20.0, 20.0]


def ask(kept: list[int], boxes: Tensor, scores: Tensor, sigma: Tensor, **more: Tensor) -> Tensor:
    return cluster_sigma(boxes[kept], boxes, scores, sigma, **more)


def test_cluster_sigma__two_candidates_by_hand() -> None:
    # the second is 8 of 10 high: IoU 0.8, nearness exp(-0.2^2 / 0.1) = 0.67032, weights 0.9 and 0.5 * 0.67032 = 0.33516
    boxes = torch.tensor([BOX, [10.0, 10.0, 20.0, 18.0]])
    sigma = torch.tensor([[1.0, 1.0, 1.0, 1.0], [2.0, 2.0, 2.0, 2.0]])
    found = ask([0], boxes, torch.tensor([0.9, 0.5]), sigma)
    # three sides agree: (0.9 * 1 + 0.33516 * 4) / 1.23516 = 1.81405; y2 is two pixels off: + 0.33516 * 4 / 1.23516
    torch.testing.assert_close(found, torch.tensor([[1.34687, 1.34687, 1.34687, 1.70278]]), atol=1e-5, rtol=0)


def test_cluster_sigma__the_only_candidate_keeps_its_own() -> None:
    sigma = torch.tensor([[1.5, 0.25, 3.0, 40.0]])
    torch.testing.assert_close(ask([0], torch.tensor([BOX]), torch.tensor([0.06]), sigma), sigma)


def test_cluster_sigma__nothing_at_all() -> None:
    none = torch.zeros(0, 4)
    assert cluster_sigma(none, none, torch.zeros(0), none).shape == (0, 4)
    assert cluster_sigma(none, none, torch.zeros(0), none, torch.zeros(0, 0, dtype=torch.bool)).shape == (0, 4)


@pytest.mark.parametrize(("height", "counts"), [(3.0, False), (3.01, True)])
def test_cluster_sigma__overlap_at_the_limit_does_not_count(height: float, counts: bool) -> None:
    boxes = torch.tensor([BOX, [10.0, 10.0, 20.0, 10.0 + height]])  # IoU 0.3, and a little more
    found = ask([0], boxes, torch.tensor([0.5, 0.9]), torch.ones(2, 4))
    assert (found[0, 3] > 1.0 + 1e-3) == counts


def test_cluster_sigma__another_limit() -> None:
    boxes = torch.tensor([BOX, [10.0, 10.0, 20.0, 18.0]])
    sigma = torch.ones(2, 4)
    torch.testing.assert_close(cluster_sigma(boxes[:1], boxes, torch.ones(2), sigma, iou_above=0.81), sigma[:1])


def test_cluster_sigma__other_classes_do_not_count() -> None:
    boxes, sigma = torch.tensor([BOX, [10.0, 10.0, 20.0, 18.0]]), torch.tensor([[1.0] * 4, [2.0] * 4])
    same = torch.tensor([[True, False], [False, True]])
    torch.testing.assert_close(ask([0, 1], boxes, torch.tensor([0.9, 0.5]), sigma, same_class=same), sigma)


def test_cluster_sigma__equal_boxes_mix_their_variances() -> None:
    sigma = torch.tensor([[3.0] * 4, [4.0] * 4])
    found = ask([0], torch.tensor([BOX, BOX]), torch.tensor([0.5, 0.5]), sigma)
    torch.testing.assert_close(found, torch.full((1, 4), math.sqrt(12.5)))


def test_cluster_sigma__a_shared_border_of_the_input_is_agreement() -> None:
    # clipped at x = 0 both begin there, wherever they began before
    boxes = clip_boxes_to_image(torch.tensor([[-4.0, 10.0, 20.0, 20.0], [-900.0, 10.0, 20.0, 20.0]]), (64, 96))
    torch.testing.assert_close(ask([0], boxes, torch.ones(2), torch.ones(2, 4)), torch.ones(1, 4))


def test_cluster_sigma__far_from_the_origin_nothing_cancels() -> None:
    boxes = torch.tensor([BOX, [10.0, 10.0, 20.0, 20.0 - 2.0**-9]]) + 16000.0
    found = ask([0], boxes, torch.ones(2), torch.full((2, 4), 1e-4))
    assert float(found[0, 3]) == pytest.approx(2.0**-9 / math.sqrt(2), rel=0.01)
    assert found[0, :3].tolist() == pytest.approx([1e-4] * 3)


def test_cluster_sigma__rows_without_area_or_score_take_no_part() -> None:
    boxes = torch.tensor([BOX, BOX, [5.0, 5.0, 5.0, 5.0], [5.0, 5.0, 5.0, 5.0]])
    scores, sigma = torch.tensor([0.5, 0.0, 0.0, 0.0]), torch.tensor([[1.0] * 4, [9.0] * 4, [9.0] * 4, [9.0] * 4])
    found = ask([0, 2], boxes, scores, sigma)
    torch.testing.assert_close(found, torch.tensor([[1.0] * 4, [0.0] * 4]))


@settings(max_examples=60, deadline=None)
@given(
    count=st.integers(0, 40),
    classes=st.integers(1, 3),
    repeats=st.integers(1, 3),
    batch=st.integers(1, 2),
    seed=st.integers(0, 10_000),
)
def test_cluster_sigma__against_slow_loops(count: int, classes: int, repeats: int, batch: int, seed: int) -> None:
    draws = torch.Generator().manual_seed(seed)
    centre = torch.randint(0, 3, (count, 2), generator=draws) * 32.0 + torch.randn(count, 2, generator=draws) * 4
    size = 24.0 + torch.randn(count, 2, generator=draws).abs() * 12
    boxes = clip_boxes_to_image(torch.cat([centre - size / 2, centre + size / 2], dim=1), (64, 96))
    boxes = boxes.repeat(repeats, 1)  # ties: the same box again, of another class or score
    boxes = boxes[((boxes[:, 2:] - boxes[:, :2]) > 0).all(dim=1)]
    n = len(boxes)
    iou = box_iou(boxes.double(), boxes.double())
    if (iou - 0.3).abs().lt(1e-5).any():
        return  # float32 does not decide it
    scores = 0.05 + 0.95 * torch.rand(n, generator=draws)
    sigma = 0.1 + 5 * torch.rand(n, 4, generator=draws)
    labels = torch.randint(classes, (n,), generator=draws)
    kept = batched_nms(boxes, scores, labels, 0.5)
    same = labels[kept].unsqueeze(1) == labels.unsqueeze(0)
    found = cluster_sigma(
        boxes[kept].expand(batch, -1, -1), boxes.expand(batch, -1, -1), scores.expand(batch, -1), sigma, same
    )
    expected = slow_cluster_sigma(kept.tolist(), boxes, scores, sigma, labels)
    assert found.shape == (batch, len(kept), 4)
    for image in found:
        torch.testing.assert_close(image, expected, atol=1e-4, rtol=1e-4)
