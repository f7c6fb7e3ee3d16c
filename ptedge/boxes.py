"""Box geometry in numpy. Boxes are xyxy in pixels, float32 [N, 4]."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float32]


def box_area(boxes: FloatArray) -> FloatArray:
    """Area of each box.

    Args:
        boxes: [N, 4] xyxy in pixels; an inverted box counts as area 0.

    Returns:
        [N] square pixels.
    """
    size = np.clip(boxes[:, 2:] - boxes[:, :2], 0, None)
    area: FloatArray = size[:, 0] * size[:, 1]
    return area


def box_iou(a: FloatArray, b: FloatArray) -> FloatArray:
    """Intersection over union of every pair.

    Args:
        a: [N, 4] xyxy in pixels.
        b: [M, 4] xyxy in pixels.

    Returns:
        [N, M] in [0, 1]; 0 where both boxes are empty.
    """
    top_left = np.maximum(a[:, None, :2], b[None, :, :2])
    bottom_right = np.minimum(a[:, None, 2:], b[None, :, 2:])
    size = np.clip(bottom_right - top_left, 0, None)  # [N, M, 2]
    intersection = size[..., 0] * size[..., 1]
    union = box_area(a)[:, None] + box_area(b)[None, :] - intersection
    iou: FloatArray = np.divide(intersection, union, out=np.zeros_like(intersection), where=union > 0)
    return iou


def clip_boxes(boxes: FloatArray, width: float, height: float) -> FloatArray:
    """Cut boxes at the image border.

    Args:
        boxes: [N, 4] xyxy in pixels.
        width: image width in pixels.
        height: image height in pixels.

    Returns:
        [N, 4], every x in [0, width] and every y in [0, height].
    """
    limit = np.array([width, height, width, height], dtype=np.float32)
    return np.clip(boxes, np.float32(0), limit).astype(np.float32)
