"""Proposals from the first stage's answers, detections from the second's: selection and suppression in NumPy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptedge.boxes import FloatArray, clip_boxes
from ptedge.calibration import Sides
from ptedge.detector.config import ROI_WEIGHTS, RPN_WEIGHTS, STRIDE
from ptedge.graph_contract import (
    ANCHOR_DELTAS,
    BOX_DELTAS,
    LOGITS,
    OBJECTNESS,
    VARIANCES,
    Outputs,
    output_signature,
)
from ptedge.stages.geometry import anchor_boxes, cluster_sigma, corner_sigma, decode, has_area, suppress
from ptedge.stages.settings import Selection


@dataclass(frozen=True)
class Rules:
    """What detections of a model follow, beside its selection.

    Attributes:
        selection: of the manifest.
        input_size: (height, width) in pixels.
        score_rule: ``class`` or ``certainty``.
        clustered: sigma is that of all candidates of a detection.
        score_threshold: detections at or below it are dropped.
        max_detections: rows D.
        side_offset: sides are moved back by these shares of the box.
        sigma_scale: what sigma is multiplied by.
    """

    selection: Selection
    input_size: tuple[int, int]
    score_rule: str
    clustered: bool
    score_threshold: float
    max_detections: int
    side_offset: Sides
    sigma_scale: Sides


class Selector:
    """Selection and suppression between and behind the stages of one model; holds its anchors and no other state."""

    def __init__(self, rules: Rules) -> None:
        """Lay the anchors out.

        Args:
            rules: of the model.
        """
        self.rules = rules
        height, width = rules.input_size
        shapes = np.array(rules.selection.anchors, np.float32)
        self._anchors = anchor_boxes(shapes, height // STRIDE, width // STRIDE)

    def propose(self, outputs: Outputs) -> tuple[FloatArray, list[int]]:
        """Proposals: the best anchors, decoded, clipped to the input and thinned by suppression.

        Args:
            outputs: of the first stage.

        Returns:
            [B, R, 4] xyxy in input pixels, best first, and how many of them each image has; the rest are zeros.
        """
        objectness, deltas = (np.asarray(outputs[name], np.float32) for name in (OBJECTNESS, ANCHOR_DELTAS))
        before, after = self.rules.selection.proposals
        proposals = np.zeros((len(objectness), min(after, before, len(self._anchors)), 4), np.float32)
        counts = []
        for i, (scores, moves) in enumerate(zip(objectness, deltas, strict=True)):
            rows = _best(scores, before)
            boxes = self._clip(decode(moves[rows], self._anchors[rows], RPN_WEIGHTS))
            boxes = boxes[has_area(boxes)]
            boxes = boxes[suppress(boxes, self.rules.selection.proposal_nms, most=proposals.shape[1])]
            proposals[i, : len(boxes)] = boxes
            counts.append(len(boxes))
        return proposals, counts

    def detect(self, outputs: Outputs, proposals: FloatArray, counts: list[int]) -> dict[str, NDArray[Any]]:
        """Detections as the one graph gives them: score, decode, suppression in each class, sigma.

        Args:
            outputs: of the second stage.
            proposals: [B, R, 4] that it was given.
            counts: how many of them each image has.

        Returns:
            Outputs of :data:`ptedge.graph_contract.OUTPUTS`; suppression here always reaches its end.
        """
        shapes = output_signature(len(proposals), self.rules.max_detections)
        answer: dict[str, NDArray[Any]] = {name: np.zeros(shape, kind) for name, (shape, kind) in shapes.items()}
        answer["converged"][:] = 1
        for i, count in enumerate(counts):
            logits, deltas = (np.asarray(outputs[name][i][:count], np.float32) for name in (LOGITS, BOX_DELTAS))
            variances = np.zeros_like(deltas)
            if VARIANCES in outputs:
                variances = np.asarray(outputs[VARIANCES][i][:count], np.float32)
            found = self._detect_image(logits, deltas, variances, proposals[i, :count])
            kept = len(found["scores"])
            answer["num_detections"][i] = kept
            for name, values in found.items():
                answer[name][i, :kept] = values
        return answer

    def _detect_image(
        self, logits: FloatArray, deltas: FloatArray, variances: FloatArray, proposals: FloatArray
    ) -> dict[str, NDArray[Any]]:
        """Rows of each output: logits [R, K + 1], deltas and variances [R, K, 4], proposals [R, 4]."""
        rules, classes = self.rules, deltas.shape[1]
        probabilities, entropy = _softmax(logits)
        scores = probabilities[:, :classes]
        if rules.score_rule == "certainty":
            scores = scores * (np.float32(1.0) - variances.mean(axis=-1))
        scores = scores.ravel()
        pairs = np.flatnonzero(scores > np.float32(rules.score_threshold))
        pairs = pairs[_best(scores[pairs], rules.selection.candidates)]
        rows, labels = pairs // classes, pairs % classes
        decoded = decode(deltas[rows, labels], proposals[rows], ROI_WEIGHTS)
        sigma = corner_sigma(variances[rows, labels], decoded, proposals[rows], ROI_WEIGHTS)
        boxes, scores = self._clip(decoded), scores[pairs]
        inside = has_area(boxes)
        boxes, scores, sigma, rows, labels = boxes[inside], scores[inside], sigma[inside], rows[inside], labels[inside]
        keep = suppress(boxes, rules.selection.nms, labels if classes > 1 else None, rules.max_detections)
        kept, kept_sigma = boxes[keep], sigma[keep]
        if rules.clustered:
            kept_sigma = cluster_sigma(kept, boxes, scores, sigma, labels[keep][:, None] == labels[None, :])
        size = np.tile(kept[:, 2:] - kept[:, :2], 2)
        return {
            "boxes": self._clip(kept - np.array(rules.side_offset, np.float32) * size),
            "scores": scores[keep],
            "labels": labels[keep],
            "sigma": kept_sigma * np.array(rules.sigma_scale, np.float32),
            "entropy": entropy[rows[keep]],
        }

    def _clip(self, boxes: FloatArray) -> FloatArray:
        height, width = self.rules.input_size
        return clip_boxes(boxes, width, height)


def _best(scores: FloatArray, count: int) -> NDArray[np.intp]:
    """Rows of the highest scores, best first; of equal ones the first, as ONNX's TopK takes them."""
    order: NDArray[np.intp] = np.argsort(-scores, kind="stable")[:count]
    return order


def _softmax(logits: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Class probabilities [R, C] of logits [R, C], and their entropy [R] in nats."""
    shifted = logits - logits.max(axis=-1, keepdims=True)
    powers = np.exp(shifted)
    total = powers.sum(axis=-1, keepdims=True)
    probabilities: FloatArray = powers / total
    entropy: FloatArray = -(probabilities * (shifted - np.log(total))).sum(axis=-1)
    return probabilities, entropy
