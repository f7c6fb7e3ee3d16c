"""Pseudo boxes: what the teacher says of a target image, in the form the student learns from."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torchvision.ops import box_area

from ptedge.config import require, require_one_of
from ptedge.detector.roi_heads import RawDetections

from .equations import box_focal_weight, class_focal_weight, sharpen_classes


@dataclass(frozen=True)
class PseudoBoxes:
    """Pseudo boxes of one image, sharpened. N boxes, K classes.

    Attributes:
        boxes: [N, 4] xyxy in input pixels of the student's view.
        labels: [N] the class whose box this is.
        probabilities: [N, K+1] sharpened class distribution, background last.
        variances: [N, 4] sharpened, ROI delta space, relative to ``proposals``.
        proposals: [N, 4] xyxy in input pixels of the student's view.
        class_weight: [N] entropy focal weight, from before sharpening.
        box_weight: [N, 4] entropy focal weight of each coordinate, from before sharpening.
        score: [N] the teacher's score.
    """

    boxes: Tensor
    labels: Tensor
    probabilities: Tensor
    variances: Tensor
    proposals: Tensor
    class_weight: Tensor
    box_weight: Tensor
    score: Tensor

    @property
    def foreground(self) -> Tensor:
        """[N] bool: the most probable class is not the background."""
        return self.probabilities.argmax(dim=-1) < self.probabilities.shape[-1] - 1

    def moved(self, view: Tensor) -> PseudoBoxes:
        """The same boxes in another view.

        Args:
            view: [3 or more] (scale, dx, dy, ...): x' = scale x + dx. Variances are relative to the proposal and do
                not change.
        """
        shift = torch.cat([view[1:3], view[1:3]])
        return PseudoBoxes(
            self.boxes * view[0] + shift,
            self.labels,
            self.probabilities,
            self.variances,
            self.proposals * view[0] + shift,
            self.class_weight,
            self.box_weight,
            self.score,
        )

    def clipped(self, picture: Tensor) -> PseudoBoxes:
        """Boxes cut at the border of the picture; those of which less than half is left are dropped.

        Args:
            picture: [4] x1, y1, x2, y2 of what the view shows of it. An enlarged view shows less than the teacher saw.
        """
        boxes = cut_at(self.boxes, picture)
        keep = box_area(boxes) > 0.5 * box_area(self.boxes)
        return PseudoBoxes(
            boxes[keep],
            self.labels[keep],
            self.probabilities[keep],
            self.variances[keep],
            self.proposals[keep],
            self.class_weight[keep],
            self.box_weight[keep],
            self.score[keep],
        )


def cut_at(boxes: Tensor, picture: Tensor) -> Tensor:
    """Boxes cut at the border of the picture, which a letterboxed or zoomed view does not fill.

    Args:
        boxes: [N, 4] xyxy in pixels of the view.
        picture: [4] x1, y1, x2, y2 of the part of the view that shows the picture.
    """
    return torch.maximum(torch.minimum(boxes, picture[2:].repeat(2)), picture[:2].repeat(2))


@dataclass(frozen=True)
class PseudoRule:
    """How detections become pseudo boxes.

    Attributes:
        tau_cls: temperature of the class logits.
        tau_box: factor on the variances.
        focal_cls: power of the entropy focal weight of classes; 0 switches it off.
        focal_box: the same for boxes.
        clamp_focal: hold box weights in [0, 1].
        background: pseudo boxes whose likeliest class is the background: ``soft`` (the paper: they teach their class
            distribution), or ``drop``.
        score_threshold: keep only detections above; 0 keeps all (Probabilistic Teacher). A plain mean teacher sets it.
        hard_labels: one-hot classes and variance 0: the pseudo labels of a plain mean teacher.
    """

    tau_cls: float = 0.5
    tau_box: float = 0.5
    focal_cls: float = 0.5
    focal_box: float = 0.5
    clamp_focal: bool = False
    background: str = "soft"
    score_threshold: float = 0.0
    hard_labels: bool = False

    def __post_init__(self) -> None:
        require("tau_cls", self.tau_cls, 0, open_low=True)
        require("tau_box", self.tau_box, 0, open_low=True)
        require("focal_cls", self.focal_cls, 0)
        require("focal_box", self.focal_box, 0)
        require_one_of("background", self.background, ("soft", "drop"))
        require("score_threshold", self.score_threshold, 0, 1)


@torch.no_grad()
def make_pseudo_boxes(
    detections: RawDetections, rule: PseudoRule, probabilistic: bool = True, ceiling: float = 1.0
) -> PseudoBoxes:
    """Pseudo boxes of one image.

    Args:
        detections: of the teacher, in eval mode, after its ordinary post-processing.
        rule: sharpening and weights.
        ceiling: highest variance of the teacher's ROI head.
        probabilistic: the teacher has variances; without them box weights are 1.

    Reference:
        method.md sections 3 and 5.
    """
    keep = detections.scores > rule.score_threshold
    if rule.background == "drop":
        keep &= detections.logits.argmax(dim=-1) < detections.logits.shape[-1] - 1
    logits, labels, variances = detections.logits[keep], detections.labels[keep], detections.variances[keep]
    p = logits.softmax(dim=-1)
    if rule.hard_labels:
        sharp = torch.nn.functional.one_hot(labels, p.shape[-1]).to(p)
        variances_out = torch.zeros_like(variances)
    else:
        sharp = sharpen_classes(logits, rule.tau_cls)
        variances_out = variances * rule.tau_box
    if probabilistic:
        box_weight = box_focal_weight(variances, rule.focal_box, clamp=rule.clamp_focal, ceiling=ceiling)
    else:
        box_weight = torch.ones_like(variances)
    return PseudoBoxes(
        boxes=detections.boxes[keep],
        labels=labels,
        probabilities=sharp,
        variances=variances_out,
        proposals=detections.proposals[keep],
        class_weight=class_focal_weight(p, rule.focal_cls),
        box_weight=box_weight,
        score=detections.scores[keep],
    )
