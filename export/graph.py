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
from ptedge.graph_contract import SIDE_OFFSET, SIGMA_SCALE

from .graph_ops import best_rows, fixpoint_nms, roi_feature_order, static_roi_align, take_rows

DEAD = -1.0  # score of a row that takes no further part: below every probability
ROUNDS = 16  # of the NMS fixpoint in each block; real frames need 3 to 8, an evenly black one 10


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
            # one product instead of three that are too narrow to be efficient
            predictors = [p for p in (head.logits, head.deltas, head.variances) if p is not None]
            self.predictor = nn.Linear(head.fc2.out_features, sum(p.out_features for p in predictors))
            self.predictor.weight.copy_(torch.cat([p.weight for p in predictors]))
            self.predictor.bias.copy_(torch.cat([p.bias for p in predictors]))

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
        keep, converged = fixpoint_nms(boxes, _has_area(boxes), config.rpn_nms, rounds=ROUNDS)
        # survivors first, each group in order of objectness: every rank is a different number, so no ties
        rank = torch.arange(keep.shape[1], 0, -1, dtype=keep.dtype, device=keep.device)
        kept_rank, row = best_rows(keep * rank, after)
        alive = (kept_rank > 0).to(boxes.dtype)
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
        rows = self.predictor(hidden)  # [B, R, K+1 + 4K (+ 4K)]
        logits, deltas = rows[..., : K + 1], rows[..., K + 1 : 5 * K + 1].unflatten(-1, (K, 4))
        if head.variances is None:
            return logits, deltas, torch.zeros_like(deltas)
        variance_logits = rows[..., 5 * K + 1 :].unflatten(-1, (K, 4))
        return (
            logits,
            deltas,
            logit_to_variance(variance_logits, head.variance_floor, head.variance_ceiling),
        )

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
        entropy = -(probabilities * logits.log_softmax(dim=-1)).sum(-1)  # [B, R]
        scores = probabilities[..., :K]  # [B, R, K]
        if config.score_rule == "certainty":
            scores = scores * (1.0 - variances.mean(dim=-1))
        scores = torch.where((scores > config.score_threshold) & (alive.unsqueeze(-1) > 0), scores, DEAD)

        scores, pair = best_rows(scores.flatten(1), config.candidates)  # [B, M]
        row = pair if K == 1 else torch.div(pair, K, rounding_mode="floor")
        labels = (pair - row * K).to(torch.int32)
        references = take_rows(proposals, row)
        decoded = decode(take_rows(deltas.flatten(1, 2), pair), references, ROI_WEIGHTS)
        sigma = corner_sigma(take_rows(variances.flatten(1, 2), pair), decoded, references, ROI_WEIGHTS)
        boxes = self._clip(decoded)
        above = (scores > 0).to(boxes.dtype) * _has_area(boxes)
        keep, converged = fixpoint_nms(boxes, above, config.nms, labels if K > 1 else None, rounds=ROUNDS)

        rank = torch.arange(keep.shape[1], 0, -1, dtype=keep.dtype, device=keep.device)
        kept_rank, best = best_rows(keep * rank, config.max_detections)
        valid = kept_rank > 0  # [B, D]
        kept, kept_sigma = take_rows(boxes, best), take_rows(sigma, best)
        if config.clustered:
            # suppression has no IoU to lend: it compares areas, each box with the worse ones only, and not by detection
            same_class = None if K == 1 else take_rows(labels, best).unsqueeze(-1) == labels.unsqueeze(-2)
            kept_sigma = cluster_sigma(kept, boxes, scores * above, sigma, same_class)
        padding = config.max_detections - best.shape[1]  # a small graph may have fewer pairs than D
        kept, kept_sigma = calibrate_sides(kept, kept_sigma, self.side_offset, self.sigma_scale)
        return StaticOutput(
            boxes=_fill(self._clip(kept), valid, padding),
            scores=_fill(take_rows(scores, best), valid, padding),
            labels=_fill(take_rows(labels, best), valid, padding),
            sigma=_fill(kept_sigma, valid, padding),
            num_detections=valid.to(torch.int32).sum(1, dtype=torch.int32),
            entropy=_fill(take_rows(take_rows(entropy, row), best), valid, padding),
            converged=(rpn_converged * converged).to(torch.int32),
        )

    def _clip(self, boxes: Tensor) -> Tensor:
        # torchvision's clip_boxes_to_image, which the detector uses, takes x and y apart and stacks them again: traced,
        # that is slices and a concatenation around every clip, where this is a maximum and a minimum
        height, width = self.input_size
        return torch.minimum(boxes.clamp(min=0.0), boxes.new_tensor([width, height, width, height]))


def _has_area(boxes: Tensor) -> Tensor:
    """[..., N] 1.0 for boxes [..., N, 4] with area; comparisons and products only, no reduction over booleans."""
    size = boxes[..., 2:] - boxes[..., :2]
    return ((size[..., 0] > 0) & (size[..., 1] > 0)).to(boxes.dtype)


def _fill(values: Tensor, valid: Tensor, padding: int) -> Tensor:
    """Zero the rows that are not valid, and append ``padding`` rows of zeros."""
    mask = valid if values.dim() == 2 else valid.unsqueeze(-1)
    values = torch.where(mask, values, torch.zeros_like(values))
    if padding == 0:
        return values
    zeros = values.new_zeros((values.shape[0], padding, *values.shape[2:]))
    return torch.cat([values, zeros], dim=1)
