"""Region proposal network with a variance for every box delta."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torchvision.ops import clip_boxes_to_image, nms

from .config import RPN_WEIGHTS
from .gaussian import decode, full_precision, logit_to_variance


@dataclass(frozen=True)
class RPNOutput:
    """What the RPN says of every anchor of a batch; N = height * width * A.

    Attributes:
        logits: [B, N] objectness before the sigmoid.
        deltas: [B, N, 4] delta means, weights 1.
        variances: [B, N, 4] in delta space; zeros from the vanilla head.
        anchors: [N, 4] xyxy in input pixels, with gradient to the anchor shapes.
    """

    logits: Tensor
    deltas: Tensor
    variances: Tensor
    anchors: Tensor


class RPNHead(nn.Module):
    """3 x 3 convolution, then objectness, delta means and variance logits for A anchors a cell.

    Args:
        channels: of the feature map.
        num_anchors: A.
        probabilistic: with variance logits.
        variance_floor: lowest variance.

    Reference:
        method.md section 1.
    """

    def __init__(self, channels: int, num_anchors: int, probabilistic: bool, variance_floor: float) -> None:
        super().__init__()
        self.variance_floor = variance_floor
        self.conv = nn.Conv2d(channels, channels, 3, padding=1)
        self.objectness = nn.Conv2d(channels, num_anchors, 1)
        self.deltas = nn.Conv2d(channels, 4 * num_anchors, 1)
        self.variances = nn.Conv2d(channels, 4 * num_anchors, 1) if probabilistic else None
        for layer in self.modules():
            if isinstance(layer, nn.Conv2d):
                nn.init.normal_(layer.weight, std=0.01)
                nn.init.zeros_(layer.bias)  # type: ignore[arg-type]

    def forward(self, features: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Predictions of every anchor.

        Args:
            features: [B, C, h, w].

        Returns:
            Objectness logits [B, N], deltas [B, N, 4], variances [B, N, 4]; anchors in the order of
            :class:`~ptedge.detector.anchors.LearnableAnchors`.
        """
        hidden = F.relu(self.conv(features))
        logits = full_precision(self.objectness(hidden)).permute(0, 2, 3, 1).flatten(1)  # [B, h*w*A]
        deltas = self._rows(self.deltas(hidden))
        if self.variances is None:
            return logits, deltas, torch.zeros_like(deltas)
        return logits, deltas, logit_to_variance(self._rows(self.variances(hidden)), self.variance_floor)

    @staticmethod
    def _rows(x: Tensor) -> Tensor:
        return full_precision(x).permute(0, 2, 3, 1).reshape(x.shape[0], -1, 4)  # [B, h*w*A, 4]


def has_area(boxes: Tensor) -> Tensor:
    """[...] bool: boxes [..., 4] that are wider and higher than nothing."""
    return (boxes[..., 2:] > boxes[..., :2]).all(dim=-1)


@torch.no_grad()
def propose(
    output: RPNOutput, input_size: tuple[int, int], top_n: tuple[int, int], nms_threshold: float
) -> list[Tensor]:
    """Proposals: the best anchors, decoded, clipped to the input and thinned by NMS.

    Args:
        output: of the RPN.
        input_size: (height, width) in pixels.
        top_n: how many before NMS, how many at most after it.
        nms_threshold: IoU.

    Returns:
        One [R, 4] xyxy tensor an image, in input pixels, best objectness first; R <= top_n[1]. Without gradient.
    """
    before, after = top_n
    proposals = []
    for logits, deltas in zip(output.logits, output.deltas, strict=True):
        scores, index = logits.topk(min(before, len(logits)))
        boxes = decode(deltas[index], output.anchors[index], RPN_WEIGHTS)
        boxes = clip_boxes_to_image(boxes, input_size)
        inside = has_area(boxes)  # an anchor beyond the border is clipped to a line, and would take a slot
        boxes, scores = boxes[inside], scores[inside]
        proposals.append(boxes[nms(boxes, scores, nms_threshold)[:after]])
    return proposals
