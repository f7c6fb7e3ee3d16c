"""How proposals and detections are selected, as a manifest records it for a model of two stages."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ptedge.config import require

MOST_ROWS = 3840  # of a selection, as in the model's own settings


@dataclass(frozen=True)
class Selection:
    """What the one graph has inside, and code needs that runs its two stages.

    Attributes:
        anchors: (width, height) of each learned anchor in input pixels, exactly.
        proposals: (before, after) suppression: how many of each image.
        proposal_nms: IoU threshold of the proposals' suppression.
        candidates: at most this many (proposal, class) pairs enter the suppression of detections.
        nms: IoU threshold of that one.
        probabilistic: the second stage gives variances.
    """

    anchors: tuple[tuple[float, float], ...]
    proposals: tuple[int, int]
    proposal_nms: float
    candidates: int
    nms: float
    probabilistic: bool = True

    def __post_init__(self) -> None:
        if not self.anchors or not all(0 < side < math.inf for shape in self.anchors for side in shape):
            raise ValueError("anchors must be finite widths and heights above 0, at least one pair")
        for count in self.proposals:
            require("a count of proposals", count, 1, MOST_ROWS)
        require("candidates", self.candidates, 1, MOST_ROWS)
        require("proposal_nms", self.proposal_nms, 0, 1)
        require("nms", self.nms, 0, 1)
