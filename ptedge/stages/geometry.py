"""Box maths of the two stages in NumPy, float32 like the graph's. Boxes are xyxy in pixels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptedge.boxes import FloatArray
from ptedge.detector.config import CLUSTER_IOU, CLUSTER_WIDTH, MAX_LOG_SCALE, STRIDE, Weights

BLOCK = 256  # boxes whose overlaps with the ones behind them are held at once


def anchor_boxes(shapes: FloatArray, height: int, width: int) -> FloatArray:
    """Anchors of a feature map, in the order of the first stage's outputs.

    Args:
        shapes: [A, 2] width and height in input pixels.
        height: rows of the feature map.
        width: columns of the feature map.

    Returns:
        [height * width * A, 4], not clipped.
    """
    grid_y, grid_x = np.meshgrid(np.arange(height), np.arange(width), indexing="ij")
    centres = ((np.stack([grid_x, grid_y], axis=-1) + 0.5) * STRIDE).astype(np.float32).reshape(-1, 1, 2)
    half = np.float32(0.5) * shapes[None]  # [1, A, 2]
    boxes: FloatArray = np.concatenate([centres - half, centres + half], axis=-1).reshape(-1, 4)
    return boxes


def decode(deltas: FloatArray, references: FloatArray, weights: Weights) -> FloatArray:
    """Boxes from deltas.

    Args:
        deltas: [N, 4] tx, ty, tw, th.
        references: [N, 4] anchors or proposals.
        weights: of the head's deltas.

    Returns:
        [N, 4], not clipped.

    Reference:
        :func:`ptedge.detector.gaussian.decode`, which this repeats.
    """
    size = references[:, 2:] - references[:, :2]
    centre = references[:, :2] + np.float32(0.5) * size
    by = np.array(weights, np.float32)
    centre = centre + deltas[:, :2] / by[:2] * size
    half = np.float32(0.5) * np.exp(np.minimum(deltas[:, 2:] / by[2:], np.float32(MAX_LOG_SCALE))) * size
    boxes: FloatArray = np.concatenate([centre - half, centre + half], axis=-1)
    return boxes


def corner_sigma(variances: FloatArray, boxes: FloatArray, references: FloatArray, weights: Weights) -> FloatArray:
    """Standard deviation in pixels of x1, y1, x2, y2.

    Args:
        variances: [N, 4] in delta space.
        boxes: [N, 4] decoded, before clipping.
        references: [N, 4] that deltas are relative to.
        weights: of the head's deltas.

    Returns:
        [N, 4] pixels.

    Reference:
        :func:`ptedge.detector.gaussian.corner_sigma`, which this repeats.
    """
    by = np.array(weights, np.float32)
    centre = variances[:, :2] * ((references[:, 2:] - references[:, :2]) / by[:2]) ** 2
    size = variances[:, 2:] * ((boxes[:, 2:] - boxes[:, :2]) / by[2:]) ** 2
    sigma: FloatArray = np.tile(np.sqrt(centre + np.float32(0.25) * size), 2)
    return sigma


def has_area(boxes: FloatArray) -> NDArray[np.bool_]:
    """[N] whether a box [N, 4] is wider and higher than nothing."""
    wide: NDArray[np.bool_] = (boxes[:, 2] > boxes[:, 0]) & (boxes[:, 3] > boxes[:, 1])
    return wide


def suppress(
    boxes: FloatArray, threshold: float, labels: NDArray[Any] | None = None, most: int | None = None
) -> NDArray[np.intp]:
    """Greedy non-maximum suppression.

    Overlaps are compared as the graph compares them, intersection > t / (1 + t) * (area_i + area_j), so that both
    decide alike.

    Args:
        boxes: [N, 4] with area, best first.
        threshold: a box is suppressed by a better survivor of IoU above this.
        labels: [N] class of each box, or ``None``: only boxes of one class suppress each other.
        most: survivors wanted; ``None`` for all.

    Returns:
        Rows of the survivors, best first.
    """
    count = len(boxes)
    alive = np.ones(count, np.bool_)
    kept: list[int] = []
    size = boxes[:, 2:] - boxes[:, :2]
    share = size[:, 0] * size[:, 1] * np.float32(threshold / (1.0 + threshold))
    for start in range(0, count, BLOCK):
        end = min(start + BLOCK, count)
        overlap = _overlap(boxes[start:end], boxes[start:], share[start:end], share[start:])
        if labels is not None:
            overlap &= labels[start:end, None] == labels[None, start:]
        for row in range(start, end):
            if alive[row]:
                kept.append(row)
                if len(kept) == most:
                    return np.array(kept, np.intp)
                alive[row + 1 :] &= ~overlap[row - start, row + 1 - start :]
    return np.array(kept, np.intp)


def _overlap(rows: FloatArray, columns: FloatArray, share: FloatArray, column_share: FloatArray) -> NDArray[np.bool_]:
    width, height = _common_sides(rows, columns)
    above: NDArray[np.bool_] = np.maximum(width, 0) * height > share[:, None] + column_share[None, :]
    return above


def _common_sides(rows: FloatArray, columns: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Width and height of what two boxes have in common, negative where they are apart: each [n, m]."""
    width = np.minimum(rows[:, 2:3], columns[None, :, 2]) - np.maximum(rows[:, 0:1], columns[None, :, 0])
    height = np.minimum(rows[:, 3:4], columns[None, :, 3]) - np.maximum(rows[:, 1:2], columns[None, :, 1])
    return width, height


def cluster_sigma(
    kept: FloatArray,
    boxes: FloatArray,
    scores: FloatArray,
    sigma: FloatArray,
    same_class: NDArray[np.bool_],
) -> FloatArray:
    """Standard deviation of each side over the candidates that overlap a detection.

    Args:
        kept: [D, 4], each one of ``boxes``.
        boxes: [M, 4] with area, all that entered suppression.
        scores: [M] of their class.
        sigma: [M, 4] their own standard deviations in pixels.
        same_class: [D, M] whether detection and candidate are of one class.

    Returns:
        [D, 4] pixels.

    Reference:
        :func:`ptedge.detector.cluster.cluster_sigma`, which this repeats.
    """
    width, height = _common_sides(kept, boxes)
    common = np.maximum(width, 0) * np.maximum(height, 0)
    areas = [(b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1]) for b in (kept, boxes)]
    iou = common / (areas[0][:, None] + areas[1][None, :] - common)
    far = np.float32(1.0) - iou
    near = np.where((iou > CLUSTER_IOU) & same_class, np.exp(far * far * np.float32(-1.0 / CLUSTER_WIDTH)), 0)
    weight = (scores[None, :] * near).astype(np.float32)  # [D, M]
    deviation = boxes[None] - kept[:, None]  # [D, M, 4]
    spread = (sigma[None] ** 2 + deviation**2) * weight[..., None]
    found: FloatArray = np.sqrt(spread.sum(axis=1) / weight.sum(axis=1)[:, None])
    return found
