"""The second stage: RoIAlign, two fully connected layers, class logits, Gaussian box deltas; and post-processing."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torchvision.ops import batched_nms, clip_boxes_to_image, roi_align

from .cluster import cluster_sigma
from .config import ROI_WEIGHTS, STRIDE
from .gaussian import class_entropy, corner_sigma, decode, full_precision, logit_to_variance
from .rpn import has_area

POOL = 7  # RoIAlign output cells a side
SAMPLING = 2  # sampling points a cell and side


@dataclass(frozen=True)
class ROIOutput:
    """What the ROI head says of R proposals (of the whole batch, in order).

    Attributes:
        logits: [R, K+1] class logits, background last.
        deltas: [R, K, 4] delta means for each class, weights 10, 10, 5, 5.
        variances: [R, K, 4] in delta space; zeros from the vanilla head.
        hidden: [R, n] second fully connected layer before its ReLU: what alignment of instances sees.
    """

    logits: Tensor
    deltas: Tensor
    variances: Tensor
    hidden: Tensor

    def split(self, counts: list[int]) -> list[ROIOutput]:
        """The same for each image, ``counts`` proposals each."""
        fields = (self.logits, self.deltas, self.variances, self.hidden)
        return [ROIOutput(*rows) for rows in zip(*(torch.split(x, counts) for x in fields), strict=True)]


@dataclass(frozen=True)
class RawDetections:
    """Detections of one image as tensors, with all a teacher needs of them. N detections, best score first.

    Attributes:
        boxes: [N, 4] xyxy in input pixels, clipped.
        scores: [N] by the score rule.
        labels: [N] int64.
        logits: [N, K+1] class logits, background last.
        variances: [N, 4] of the detection's class, ROI delta space.
        proposals: [N, 4] xyxy that deltas and variances are relative to.
        sigma: [N, 4] standard deviation in pixels of x1, y1, x2, y2.
        entropy: [N] class entropy in nats.
    """

    boxes: Tensor
    scores: Tensor
    labels: Tensor
    logits: Tensor
    variances: Tensor
    proposals: Tensor
    sigma: Tensor
    entropy: Tensor


class ROIHead(nn.Module):
    """RoIAlign 7 x 7, two layers of ``hidden``, three predictors.

    Args:
        channels: of the feature map.
        num_classes: K, background not counted.
        probabilistic: with variance logits.
        variance_floor: lowest variance.
        variance_ceiling: highest variance.
        hidden: width of the fully connected layers.
        reduced: channels after a 1 x 1 convolution before RoIAlign (after Light-Head R-CNN, Li et al. 2017: most of the
            head's work is channels x 49 x hidden); 0 for none.

    Reference:
        method.md section 1.
    """

    def __init__(
        self,
        channels: int,
        num_classes: int,
        probabilistic: bool,
        variance_floor: float,
        variance_ceiling: float = 1.0,
        hidden: int = 1024,
        reduced: int = 0,
    ) -> None:
        super().__init__()
        self.num_classes = num_classes
        self.variance_floor = variance_floor
        self.variance_ceiling = variance_ceiling
        self.reduce = nn.Conv2d(channels, reduced, 1) if reduced else None
        self.fc1 = nn.Linear((reduced or channels) * POOL * POOL, hidden)
        self.fc2 = nn.Linear(hidden, hidden)
        self.logits = nn.Linear(hidden, num_classes + 1)
        self.deltas = nn.Linear(hidden, 4 * num_classes)
        self.variances = nn.Linear(hidden, 4 * num_classes) if probabilistic else None
        for layer, std in ((self.logits, 0.01), (self.deltas, 0.001), (self.variances, 0.001)):
            if layer is not None:
                nn.init.normal_(layer.weight, std=std)
                nn.init.zeros_(layer.bias)
        if self.variances is not None:  # begin at a variance of about 1/2, whatever the ceiling
            nn.init.constant_(self.variances.bias, -math.log(2.0 * variance_ceiling - 1.0))

    def looked_at(self, features: Tensor) -> Tensor:
        """What RoIAlign reads: the feature map [B, C, h, w], or fewer channels of it."""
        return features if self.reduce is None else self.reduce(features)

    def forward(self, features: Tensor, proposals: list[Tensor]) -> ROIOutput:
        """Classify and refine proposals.

        Args:
            features: [B, C, h, w], stride 16.
            proposals: one [R_i, 4] xyxy tensor an image, input pixels.
        """
        pooled = roi_align(
            self.looked_at(features), proposals, POOL, 1.0 / STRIDE, SAMPLING, aligned=True
        )  # [R, C, 7, 7]
        hidden = self.fc2(F.relu(self.fc1(pooled.flatten(1))))  # [R, hidden]
        active = F.relu(hidden)
        logits = full_precision(self.logits(active))
        deltas = full_precision(self.deltas(active)).reshape(-1, self.num_classes, 4)
        if self.variances is None:
            return ROIOutput(logits, deltas, torch.zeros_like(deltas), hidden)
        logit = full_precision(self.variances(active)).reshape(-1, self.num_classes, 4)
        return ROIOutput(logits, deltas, logit_to_variance(logit, self.variance_floor, self.variance_ceiling), hidden)


def class_scores(logits: Tensor, variances: Tensor, rule: str) -> Tensor:
    """Detection scores of every class.

    Args:
        logits: [R, K+1], background last.
        variances: [R, K, 4] in delta space.
        rule: ``class``: softmax probability; ``certainty``: probability * (1 - mean variance).

    Returns:
        [R, K] in [0, 1].

    Reference:
        method.md section 1, "Box score at inference".
    """
    probabilities = logits.softmax(dim=-1)[:, :-1]
    if rule == "certainty":
        return probabilities * (1.0 - variances.mean(dim=-1))
    return probabilities


@torch.no_grad()
def postprocess(
    output: ROIOutput,
    proposals: Tensor,
    input_size: tuple[int, int],
    *,
    score_rule: str,
    score_threshold: float,
    nms_threshold: float,
    candidates: int,
    max_detections: int,
    cluster_iou: float | None = None,
) -> RawDetections:
    """Detections of one image: score, decode, class-wise NMS.

    Args:
        output: of the ROI head, for this image's R proposals.
        proposals: [R, 4] xyxy in input pixels.
        input_size: (height, width) in pixels.
        score_rule: see :func:`class_scores`.
        score_threshold: (proposal, class) pairs at or below are dropped.
        nms_threshold: IoU.
        candidates: at most this many pairs enter NMS.
        max_detections: at most this many leave it.
        cluster_iou: sigma is that of all candidates above this IoU; ``None`` leaves each detection its own.
    """
    scores = class_scores(output.logits, output.variances, score_rule)  # [R, K]
    num_classes = scores.shape[1]
    flat, pair = scores.flatten().topk(min(candidates, scores.numel()))
    pair = pair[flat > score_threshold]
    flat = flat[flat > score_threshold]
    row, labels = pair // num_classes, pair % num_classes
    decoded = decode(output.deltas[row, labels], proposals[row], ROI_WEIGHTS)
    boxes = clip_boxes_to_image(decoded, input_size)
    inside = has_area(boxes)
    boxes, decoded, flat, row, labels = boxes[inside], decoded[inside], flat[inside], row[inside], labels[inside]
    keep = batched_nms(boxes, flat, labels, nms_threshold)[:max_detections]
    sigma = corner_sigma(output.variances[row, labels], decoded, proposals[row], ROI_WEIGHTS)  # of all candidates
    kept_sigma = sigma[keep]
    if cluster_iou is not None:
        same_class = labels[keep].unsqueeze(1) == labels.unsqueeze(0)
        kept_sigma = cluster_sigma(boxes[keep], boxes, flat, sigma, same_class, cluster_iou)
    row, labels = row[keep], labels[keep]
    logits, variances = output.logits[row], output.variances[row, labels]
    return RawDetections(
        boxes=boxes[keep],
        scores=flat[keep],
        labels=labels,
        logits=logits,
        variances=variances,
        proposals=proposals[row],
        sigma=kept_sigma,
        entropy=class_entropy(logits.softmax(dim=-1)),
    )
