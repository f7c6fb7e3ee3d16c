"""Anchors by hand."""

from __future__ import annotations

import torch

from ptedge.detector.anchors import LearnableAnchors


def test_anchors__by_hand() -> None:
    anchors = LearnableAnchors((32.0,), (1.0, 4.0))  # 32 x 32, and 16 wide 64 high
    torch.testing.assert_close(anchors.shapes().detach(), torch.tensor([[32.0, 32.0], [16.0, 64.0]]))
    boxes = anchors(2, 3).detach()
    assert boxes.shape == (12, 4)
    torch.testing.assert_close(boxes[0], torch.tensor([-8.0, -8.0, 24.0, 24.0]))  # first cell, centre (8, 8)
    torch.testing.assert_close(boxes[1], torch.tensor([0.0, -24.0, 16.0, 40.0]))
    torch.testing.assert_close(boxes[2], torch.tensor([8.0, -8.0, 40.0, 24.0]))  # next column
    torch.testing.assert_close(boxes[6], torch.tensor([-8.0, 8.0, 24.0, 40.0]))  # next row


def test_anchors__gradient_is_of_the_logarithm() -> None:
    anchors = LearnableAnchors((32.0,), (1.0,))
    anchors(1, 2)[:, 2].sum().backward()  # x2 = cx + exp(log w) / 2, in two cells
    torch.testing.assert_close(anchors.log_wh.grad, torch.tensor([[32.0, 0.0]]))
