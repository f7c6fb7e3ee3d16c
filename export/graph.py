"""A trained detector as one graph of fixed shapes, ready for tracing: what the device runs."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ptedge.detector.cluster import cluster_sigma
from ptedge.detector.config import ROI_WEIGHTS, RPN_WEIGHTS, STRIDE
from ptedge.detector.gaussian import calibrate_sides, corner_sigma, decode, logit_to_variance
from ptedge.detector.model import ProbabilisticFasterRCNN
from ptedge.detector.roi_heads import ROIHead
from ptedge.graph_contract import SIDE_OFFSET, SIGMA_SCALE

from .graph_ops import best_rows, fixpoint_nms, roi_feature_order, static_roi_align, take_rows

# of the NMS fixpoint in each block; frames need up to 9 and 6, even ones up to 15 and 1 (docs/results.md)
PROPOSAL_ROUNDS, ROUNDS = 16, 12


class StaticOutput(NamedTuple):
    """Outputs of the graph; rows beyond ``num_detections`` are zero. D = ``max_detections``.

    Attributes:
        boxes: [B, D, 4] float32 xyxy in input pixels, best score first.
        scores: [B, D] float32.
        labels: [B, D] int32.
        sigma: [B, D, 4] float32, standard deviation in pixels of x1, y1, x2, y2.
        num_detections: [B] int32.
        entropy: [B, D] float32, class entropy in nats.
        converged: [B] int32, 1 where both NMS reached their fixpoint.
    """

    boxes: Tensor
    scores: Tensor
    labels: Tensor
    sigma: Tensor
    num_detections: Tensor
    entropy: Tensor
    converged: Tensor


class StageTensors(NamedTuple):
    """What lies between the stages of the graph, and behind the second, by its names there.

    Attributes:
        features: [B, C, h, w], what RoIAlign reads.
        objectness: [B, N] logits.
        anchor_deltas: [B, N, 4].
        proposals: [B, R, 4] xyxy in input pixels.
        logits: [B, R, K + 1], background last.
        box_deltas: [B, R, K, 4].
        variances: [B, R, K, 4] in delta space; zeros of a vanilla detector.
    """

    features: Tensor
    objectness: Tensor
    anchor_deltas: Tensor
    proposals: Tensor
    logits: Tensor
    box_deltas: Tensor
    variances: Tensor


class StaticGraph(nn.Module):
    """The detector's ``detect`` with fixed shapes: same weights, same answers, no data-dependent control flow.

    Args:
        model: trained detector; put in eval mode, its weights are used and not changed.
        input_size: (height, width) in pixels, multiples of 16; ``None`` takes the model's.
    """

    anchor_boxes: Tensor
    side_offset: Tensor
    sigma_scale: Tensor

    def __init__(self, model: ProbabilisticFasterRCNN, input_size: tuple[int, int] | None = None) -> None:
        super().__init__()
        self.model = model.eval()
        self.input_size = input_size if input_size is not None else model.config.input_size
        h, w = (side // STRIDE for side in self.input_size)
        with torch.no_grad():
            self.register_buffer("anchor_boxes", model.anchors(h, w).detach().clone())
            # by these names the graph's constants are found again, and written anew, on a device without onnx
            self.register_buffer(SIDE_OFFSET, model.side_offset.clone())
            self.register_buffer(SIGMA_SCALE, model.sigma_scale.clone())
            head = model.roi_head
            order = roi_feature_order(model.config.roi_channels or model.backbone.channels, h, w)
            self.fc1 = nn.Linear(head.fc1.in_features, head.fc1.out_features)
            self.fc1.weight.copy_(head.fc1.weight[:, order.to(head.fc1.weight.device)])
            self.fc1.bias.copy_(head.fc1.bias)
            self.predictor = _joined_predictors(head)

    def forward(self, images: Tensor) -> StaticOutput:
        """Detections of a batch.

        Args:
            images: [B, 3, H, W] uint8 RGB of exactly the input size.
        """
        return self.with_stages(images)[0]

    def with_stages(self, images: Tensor) -> tuple[StaticOutput, StageTensors]:
        """As :meth:`forward`, with the tensors at which the graph can be cut.

        Args:
            images: [B, 3, H, W] uint8 RGB of exactly the input size.
        """
        features = self.model.backbone(self.model.normalise(images))
        anchors = self.score_anchors(features)
        proposals, alive, converged = self.propose(*anchors)
        seen = self.model.roi_head.looked_at(features)
        rows = self.classify(seen, proposals)
        return self.detect(rows, proposals, alive, converged), StageTensors(seen, *anchors, proposals, *rows)

    def score_anchors(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """What the RPN says of every anchor.

        Args:
            features: [B, C, h, w] of the backbone.

        Returns:
            Objectness logits [B, N] and deltas [B, N, 4].
        """
        head = self.model.rpn_head
        hidden = F.relu(head.conv(features))
        objectness = head.objectness(hidden).permute(0, 2, 3, 1).flatten(1)  # [B, N]
        return objectness, head.deltas(hidden).permute(0, 2, 3, 1).reshape(features.shape[0], -1, 4)

    def propose(self, objectness: Tensor, deltas: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Proposals in the manner of :func:`ptedge.detector.rpn.propose`.

        Args:
            objectness: [B, N] logits.
            deltas: [B, N, 4].

        Returns:
            Boxes [B, R, 4], best first; alive [B, R] 1.0 for a proposal, 0.0 for the rows left over where NMS leaves
            fewer than R; converged [B].
        """
        config = self.model.config
        before, after = config.rpn_test_top_n
        _, index = best_rows(objectness, before)
        boxes = self._clip(decode(take_rows(deltas, index), self.anchor_boxes[index], RPN_WEIGHTS))
        keep, converged = fixpoint_nms(boxes, _has_area(boxes), config.rpn_nms, rounds=PROPOSAL_ROUNDS)
        row, alive = _first_kept(keep, after)
        return take_rows(boxes, row), alive, converged

    def classify(self, seen: Tensor, proposals: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """What the ROI head says of proposals.

        Args:
            seen: [B, C, h, w] features as RoIAlign reads them.
            proposals: [B, R, 4].

        Returns:
            Class logits [B, R, K+1], delta means and variances [B, R, K, 4].
        """
        head, K = self.model.roi_head, self.model.num_classes
        pooled = static_roi_align(seen, proposals, 1.0 / STRIDE)
        hidden = F.relu(head.fc2(F.relu(self.fc1(pooled))))
        rows = self.predictor(hidden)  # [B, R, K+1 + 8K (or 4K)]
        logits, sides = torch.split(rows, [K + 1, self.predictor.out_features - (K + 1)], dim=-1)
        sides = sides.reshape(*rows.shape[:-1], K, -1)  # [B, R, K, 8 (or 4)]
        if head.variances is None:
            return logits, sides, torch.zeros_like(sides)
        deltas, variance_logits = torch.split(sides, 4, dim=-1)
        return logits, deltas, logit_to_variance(variance_logits, head.variance_floor, head.variance_ceiling)

    def detect(
        self, rows: tuple[Tensor, Tensor, Tensor], proposals: Tensor, alive: Tensor, rpn_converged: Tensor
    ) -> StaticOutput:
        """Detections in the manner of :func:`ptedge.detector.roi_heads.postprocess`, padded to ``max_detections``.

        Args:
            rows: of :meth:`classify`.
            proposals: [B, R, 4].
            alive: [B, R] 1.0 for rows that take part.
            rpn_converged: [B] 1.0 where the proposals are those of greedy NMS.
        """
        config, K = self.model.config, self.model.num_classes
        logits, deltas, variances = rows
        probabilities = logits.softmax(dim=-1)
        entropy = -(probabilities * logits.log_softmax(dim=-1)).sum(-1, keepdim=True)  # [B, R, 1]
        scores = torch.split(probabilities, [K, 1], dim=-1)[0]  # [B, R, K]
        if config.score_rule == "certainty":
            scores = scores * (1.0 - variances.mean(dim=-1))
        # rows that are no proposals get score 0, which no threshold lets pass
        scores, pair = best_rows((scores * alive.unsqueeze(-1)).flatten(1), config.candidates)  # [B, M]
        row = pair if K == 1 else torch.div(pair, K, rounding_mode="floor")
        labels = (pair - row * K).to(scores.dtype)
        references, entropy = torch.split(take_rows(torch.cat([proposals, entropy], dim=-1), row), [4, 1], dim=-1)
        sides = take_rows(torch.cat([deltas, variances], dim=-1).flatten(1, 2), pair)  # [B, M, 8]
        chosen_deltas, chosen_variances = torch.split(sides, 4, dim=-1)
        decoded = decode(chosen_deltas, references, ROI_WEIGHTS)
        sigma = corner_sigma(chosen_variances, decoded, references, ROI_WEIGHTS)
        boxes = self._clip(decoded)
        above = (scores > config.score_threshold).to(boxes.dtype) * _has_area(boxes)
        keep, converged = fixpoint_nms(boxes, above, config.nms, labels if K > 1 else None, rounds=ROUNDS)

        best, valid = _first_kept(keep, config.max_detections)
        fields = torch.cat([boxes, sigma, *(x.unsqueeze(-1) for x in (scores, labels)), entropy], dim=-1)
        # rows that are no detection are zero from here on, and stay it
        fields = take_rows(fields, best) * valid.unsqueeze(-1)
        kept, kept_sigma, kept_scores, kept_labels, kept_entropy = torch.split(fields, [4, 4, 1, 1, 1], dim=-1)
        if config.clustered:
            # suppression has no IoU to lend: it compares areas, each box with the worse ones only, and not by detection
            same_class = None if K == 1 else kept_labels == labels.unsqueeze(-2)
            kept_sigma = cluster_sigma(kept, boxes, scores * above, sigma, same_class)
        kept, kept_sigma = calibrate_sides(kept, kept_sigma, self.side_offset, self.sigma_scale)
        padding = config.max_detections - best.shape[1]  # a small graph may have fewer pairs than D
        return StaticOutput(
            boxes=_pad(self._clip(kept), padding),
            scores=_pad(kept_scores.flatten(1), padding),
            labels=_pad(kept_labels.flatten(1).to(torch.int32), padding),
            sigma=_pad(kept_sigma, padding),
            num_detections=valid.sum(1).to(torch.int32),
            entropy=_pad(kept_entropy.flatten(1), padding),
            converged=(rpn_converged * converged).to(torch.int32),
        )

    def _clip(self, boxes: Tensor) -> Tensor:
        # torchvision's clip_boxes_to_image, which the detector uses, takes x and y apart and stacks them again: traced,
        # that is slices and a concatenation around every clip, where this is a maximum and a minimum
        height, width = self.input_size
        return torch.minimum(F.relu(boxes), boxes.new_tensor([width, height, width, height]))


def _joined_predictors(head: ROIHead) -> nn.Linear:
    """One product instead of three that are too narrow to be efficient; what belongs to a class stands together.

    Rows: K+1 class logits, then for each class 4 delta means and, where there are any, 4 variance logits.
    """
    sides = [p for p in (head.deltas, head.variances) if p is not None]
    joined = nn.Linear(head.fc2.out_features, sum(p.out_features for p in (head.logits, *sides)))
    for name in ("weight", "bias"):
        by_class = [getattr(p, name).unflatten(0, (head.num_classes, 4)) for p in sides]  # [K, 4, ...]
        getattr(joined, name).copy_(torch.cat([getattr(head.logits, name), torch.cat(by_class, dim=1).flatten(0, 1)]))
    return joined


def _first_kept(keep: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The first rows that stayed, and after them others.

    Args:
        keep: [B, N] 1.0 for rows that stay, best first.
        count: rows wanted; at most N are given.

    Returns:
        Indices [B, n]; [B, n] 1.0 for those that stayed, 0.0 for what fills the rest.
    """
    # every rank is a different number, so there are no ties
    rank = torch.arange(keep.shape[1], 0, -1, dtype=keep.dtype, device=keep.device)
    ranks, row = best_rows(keep * rank, count)
    return row, ranks.clamp(max=1.0)


def _has_area(boxes: Tensor) -> Tensor:
    """[..., N] 1.0 for boxes [..., N, 4] with area; comparisons and products only, no reduction over booleans."""
    top_left, bottom_right = torch.split(boxes, 2, dim=-1)
    width, height = torch.split(bottom_right - top_left, 1, dim=-1)
    return (torch.minimum(width, height) > 0).to(boxes.dtype).squeeze(-1)


def _pad(values: Tensor, rows: int) -> Tensor:
    """Append rows of zeros: [B, n, ...] -> [B, n + rows, ...]."""
    if rows == 0:
        return values
    return torch.cat([values, values.new_zeros((values.shape[0], rows, *values.shape[2:]))], dim=1)
