"""Static operators against torchvision's and against slow references."""

from __future__ import annotations

import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import Tensor
from torchvision.ops import batched_nms, box_iou, nms, roi_align

from ptedge.export.graph_ops import best_rows, fixpoint_nms, roi_feature_order, static_roi_align, take_rows


def clustered_boxes(count: int, clusters: int, seed: int, jitter: float = 8.0) -> Tensor:
    g = torch.Generator().manual_seed(seed)
    centre = torch.rand(clusters, 2, generator=g) * 300
    size = torch.rand(clusters, 2, generator=g) * 80 + 10
    which = torch.randint(clusters, (count,), generator=g)
    c = centre[which] + torch.randn(count, 2, generator=g) * jitter
    s = (size[which] * (torch.randn(count, 2, generator=g) * 0.2).exp()).clamp(min=1)
    return torch.cat([c - s / 2, c + s / 2], 1)


def kept(boxes: Tensor, threshold: float, labels: Tensor | None = None, **options: int) -> tuple[list[int], bool]:
    keep, converged = fixpoint_nms(boxes, torch.ones(len(boxes)), threshold, labels, **options)
    return keep.nonzero().flatten().tolist(), bool(converged == 1)


def descending(count: int) -> Tensor:
    return torch.arange(count, 0, -1).float()


def far_from(boxes: Tensor, threshold: float) -> bool:
    iou = box_iou(boxes, boxes)
    return not bool((iou - threshold).abs().lt(1e-5).any())


def greedy(boxes: Tensor, alive: list[bool], threshold: float, labels: list[int]) -> list[int]:
    """Rows that stay, box by box, with the numbers that the graph compares: IoU > t as its documentation turns it."""
    x1, y1, x2, y2 = boxes.unbind(1)
    share = (x2 - x1) * (y2 - y1) * (threshold / (1.0 + threshold))
    stay: list[int] = []
    for i in range(len(boxes)):
        width = (torch.minimum(x2[i], x2) - torch.maximum(x1[i], x1)).clamp(min=0)
        height = (torch.minimum(y2[i], y2) - torch.maximum(y1[i], y1)).clamp(min=0)
        above = (width * height > share[i] + share).tolist()
        if alive[i] and not any(above[j] and labels[i] == labels[j] for j in stay):
            stay.append(i)
    return stay


@settings(max_examples=120, deadline=None)
@given(
    count=st.integers(1, 60),
    clusters=st.integers(1, 6),
    classes=st.integers(1, 3),
    seed=st.integers(0, 10_000),
    threshold=st.sampled_from([0.0, 0.1, 0.5, 0.7, 1.0]),
    rounds=st.sampled_from([2, 4, 12]),
    block=st.sampled_from([7, 20, 640]),
    step=st.sampled_from([0.0, 4.0]),
)
def test_fixpoint_nms__is_greedy_nms_wherever_it_says_so_and_else_loses_nothing(
    count: int, clusters: int, classes: int, seed: int, threshold: float, rounds: int, block: int, step: float
) -> None:
    g = torch.Generator().manual_seed(seed)
    boxes = clustered_boxes(count, clusters, seed)
    if step:  # on a grid there are equal boxes, boxes without area, and IoUs exactly at the threshold
        boxes = (boxes / step).round() * step
    alive, labels = torch.rand(count, generator=g) > 0.2, torch.randint(classes, (count,), generator=g)
    expected = greedy(boxes, alive.tolist(), threshold, labels.tolist())
    keep, converged = fixpoint_nms(
        boxes, alive.float(), threshold, labels if classes > 1 else None, rounds=rounds, block=block
    )
    got = keep.nonzero().flatten().tolist()
    assert set(keep.tolist()) <= {0.0, 1.0}
    if converged == 1 or block >= count:  # a block that kept too much may suppress too much in those behind
        assert set(expected) <= set(got)
    if converged == 1:
        assert got == expected
    if rounds == 12 and block == 7:  # a chain through 7 boxes has 6 links
        assert converged == 1


@settings(max_examples=60, deadline=None)
@given(
    count=st.integers(1, 120),
    clusters=st.integers(1, 12),
    seed=st.integers(0, 10_000),
    threshold=st.sampled_from([0.3, 0.5, 0.7]),
    block=st.sampled_from([7, 32, 500]),
)
def test_fixpoint_nms__agrees_with_torchvision(
    count: int, clusters: int, seed: int, threshold: float, block: int
) -> None:
    boxes = clustered_boxes(count, clusters, seed)
    assume(far_from(boxes, threshold))
    got, converged = kept(boxes, threshold, rounds=32, block=block)
    assert converged
    assert got == sorted(nms(boxes, descending(count), threshold).tolist())


@settings(max_examples=40, deadline=None)
@given(count=st.integers(1, 100), classes=st.integers(1, 5), seed=st.integers(0, 10_000))
def test_fixpoint_nms__agrees_with_batched_nms(count: int, classes: int, seed: int) -> None:
    boxes = clustered_boxes(count, 5, seed)
    assume(far_from(boxes, 0.5))
    labels = torch.randint(classes, (count,), generator=torch.Generator().manual_seed(seed))
    got, converged = kept(boxes, 0.5, labels, rounds=32, block=40)
    assert converged
    # torchvision shifts the classes apart, which costs digits: compare class by class instead
    expected: list[int] = []
    for c in range(classes):
        rows = (labels == c).nonzero().flatten()
        expected += rows[nms(boxes[rows], descending(len(rows)), 0.5)].tolist()
    assert got == sorted(expected)
    assert len(got) == len(batched_nms(boxes, descending(count), labels, 0.5))


def test_fixpoint_nms__duplicates_keep_the_first() -> None:
    boxes = torch.tensor([[10.0, 10, 30, 40]]).repeat(9, 1)
    assert kept(boxes, 0.5, block=4) == ([0], True)


def test_fixpoint_nms__zero_boxes_suppress_nothing() -> None:
    boxes = torch.zeros(5, 4)
    assert kept(boxes, 0.5) == ([0, 1, 2, 3, 4], True)


def test_fixpoint_nms__a_suppressed_box_does_not_suppress() -> None:
    # 0 overlaps 1 (IoU 0.6), 1 overlaps 2 (IoU 0.6), 0 and 2 do not reach 0.5 (20 / 60)
    boxes = torch.tensor([[0.0, 0, 40, 10], [10, 0, 50, 10], [20, 0, 60, 10]])
    assert kept(boxes, 0.5) == ([0, 2], True)


def test_fixpoint_nms__dead_boxes_neither_live_nor_suppress() -> None:
    boxes = torch.tensor([[0.0, 0, 10, 10], [0, 0, 10, 10], [50, 0, 60, 10]])
    keep, _ = fixpoint_nms(boxes, torch.tensor([0.0, 1, 1]), 0.5)
    assert keep.tolist() == [0, 1, 1]


def test_fixpoint_nms__too_few_rounds_are_reported() -> None:
    # a chain in which each box overlaps only its neighbours takes a round a link
    x = torch.arange(40).float() * 10
    boxes = torch.stack([x, torch.zeros(40), x + 30, torch.full((40,), 10.0)], 1)
    assert kept(boxes, 0.4, rounds=4, block=100)[1] is False
    got, converged = kept(boxes, 0.4, rounds=41, block=100)
    assert converged and got == list(range(0, 40, 2))
    # blocks cut the chain
    assert kept(boxes, 0.4, rounds=9, block=8) == (got, True)


def test_fixpoint_nms__batch_is_image_by_image() -> None:
    boxes = torch.stack([clustered_boxes(50, 3, seed) for seed in (1, 2, 3)])
    alive = torch.ones(3, 50)
    keep, converged = fixpoint_nms(boxes, alive, 0.5)
    assert converged.shape == (3,)
    for i in range(3):
        assert torch.equal(keep[i], fixpoint_nms(boxes[i], alive[i], 0.5)[0])


@settings(max_examples=60, deadline=None)
@given(
    h=st.integers(1, 14),
    w=st.integers(1, 14),
    channels=st.integers(1, 5),
    batch=st.integers(1, 2),
    count=st.integers(1, 6),
    seed=st.integers(0, 10_000),
)
def test_static_roi_align__agrees_with_torchvision(
    h: int, w: int, channels: int, batch: int, count: int, seed: int
) -> None:
    g = torch.Generator().manual_seed(seed)
    features = torch.randn(batch, channels, h, w, generator=g)
    # a third of the range lies outside the image on each side, and is clipped: many boxes touch borders, some are lines
    image = torch.tensor([w * 16.0, h * 16.0])
    corners = ((torch.rand(batch, count, 2, 2, generator=g) * 3 - 1) * image).clamp(torch.zeros(2), image)
    boxes = torch.cat([corners.amin(-2), corners.amax(-2)], -1)
    expected = roi_align(features, list(boxes), 7, 1 / 16, sampling_ratio=2, aligned=True)  # [B * R, C, 7, 7]
    got = static_roi_align(features, boxes, 1 / 16)
    order = roi_feature_order(channels, h, w)
    torch.testing.assert_close(got.reshape(batch * count, -1), expected.flatten(1)[:, order], atol=1e-4, rtol=1e-4)


def test_static_roi_align__constant_map_gives_the_constant() -> None:
    pooled = static_roi_align(torch.full((1, 2, 6, 9), 3.0), torch.tensor([[[8.0, 8.0, 100.0, 60.0]]]), 1 / 16)
    torch.testing.assert_close(pooled, torch.full((1, 1, 98), 3.0))


def test_roi_feature_order__a_linear_layer_answers_the_same() -> None:
    g = torch.Generator().manual_seed(0)
    features = torch.randn(1, 4, 5, 8, generator=g)
    boxes = torch.tensor([[[10.0, 5, 90, 70], [0, 0, 128, 80]]])
    weight = torch.randn(3, 4 * 49, generator=g)
    usual = roi_align(features, list(boxes), 7, 1 / 16, sampling_ratio=2, aligned=True).flatten(1) @ weight.T
    permuted = static_roi_align(features, boxes, 1 / 16)[0] @ weight[:, roi_feature_order(4, 5, 8)].T
    torch.testing.assert_close(permuted, usual, atol=1e-3, rtol=1e-4)


def test_best_rows__masked_rows_come_last() -> None:
    scores = torch.tensor([[0.2, -1.0, 0.9, 0.5]])
    values, rows = best_rows(scores, 3)
    assert rows.tolist() == [[2, 3, 0]]
    assert best_rows(scores, 10)[0].shape == (1, 4)
    torch.testing.assert_close(values, torch.tensor([[0.9, 0.5, 0.2]]))


def test_take_rows__picks_in_each_image() -> None:
    values = torch.arange(12.0).reshape(2, 3, 2)
    rows = torch.tensor([[2, 0], [1, 1]])
    assert take_rows(values, rows).tolist() == [[[4, 5], [0, 1]], [[8, 9], [8, 9]]]
    assert take_rows(values[1:], rows[:1]).tolist() == [[[10, 11], [6, 7]]]
