"""The RPN head's rows, and proposals against a slow loop."""

from __future__ import annotations

import pytest
import torch
from slow_nms import slow_nms

from ptedge.detector.anchors import LearnableAnchors
from ptedge.detector.config import RPN_WEIGHTS
from ptedge.detector.gaussian import decode
from ptedge.detector.rpn import RPNHead, RPNOutput, propose

SIZE = (64, 96)  # height, width


@pytest.mark.parametrize("probabilistic", [True, False])
def test_rpn_head__rows_follow_the_anchors(probabilistic: bool) -> None:
    head = RPNHead(4, 2, probabilistic, 1e-3)
    features = torch.randn(2, 4, 3, 5, generator=torch.Generator().manual_seed(0))
    logits, deltas, variances = head(features)
    assert logits.shape == (2, 30) and deltas.shape == variances.shape == (2, 30, 4)
    hidden = head.conv(features).relu()
    image, y, x, a = 1, 2, 3, 1
    row = (y * 5 + x) * 2 + a
    assert logits[image, row].detach() == head.objectness(hidden)[image, a, y, x].detach()
    torch.testing.assert_close(deltas[image, row], head.deltas(hidden)[image, 4 * a : 4 * a + 4, y, x])
    if probabilistic:
        assert head.variances is not None
        logit = head.variances(hidden)[image, 4 * a : 4 * a + 4, y, x]
        torch.testing.assert_close(variances[image, row], 1e-3 + 0.999 * logit.sigmoid())
    else:
        assert not variances.any()


def test_propose__against_a_slow_loop() -> None:
    generator = torch.Generator().manual_seed(5)
    anchors = LearnableAnchors((24.0, 40.0), (0.5, 2.0))(4, 6)  # [96, 4]
    output = RPNOutput(
        torch.randn(2, 96, generator=generator),
        torch.randn(2, 96, 4, generator=generator) * 0.3,
        torch.ones(2, 96, 4),
        anchors,
    )
    proposals = propose(output, SIZE, (50, 12), 0.5)
    for i in range(2):
        order = sorted(range(96), key=lambda n: -float(output.logits[i, n]))[:50]
        boxes = decode(output.deltas[i], anchors.detach(), RPN_WEIGHTS)
        boxes[:, 0::2] = boxes[:, 0::2].clamp(0, 96)
        boxes[:, 1::2] = boxes[:, 1::2].clamp(0, 64)
        kept = slow_nms(boxes, order, 0.5, [0] * 96)[:12]
        assert len(kept) == 12
        torch.testing.assert_close(proposals[i], boxes[kept])
        assert not proposals[i].requires_grad


def _apart(count: int) -> RPNOutput:
    """Anchors 6 x 6 that do not touch, the first the best."""
    anchors = torch.tensor([[8.0 * i, 0.0, 8.0 * i + 6.0, 6.0] for i in range(count)])
    nothing = torch.zeros(1, count, 4)
    return RPNOutput(torch.arange(float(count), 0, -1).unsqueeze(0), nothing, nothing + 0.5, anchors)


def test_propose__counts_before_and_after_nms() -> None:
    for before, after, count in ((4, 9, 4), (9, 4, 4), (20, 20, 10)):
        (found,) = propose(_apart(10), SIZE, (before, after), 0.5)
        assert found[:, 0].tolist() == [8.0 * i for i in range(count)]


def test_propose__an_anchor_beyond_the_border_takes_no_slot() -> None:
    output = _apart(4)
    output.anchors[1] += torch.tensor([96.0, 0.0, 96.0, 0.0])  # wholly to the right of 96 columns
    (found,) = propose(output, SIZE, (4, 2), 0.5)
    assert found[:, 0].tolist() == [0.0, 16.0]
