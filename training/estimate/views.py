"""Two looks at one picture: as it is, and mirrored and smaller. What differs between the answers is error."""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np
import torch
from numpy.typing import NDArray

from ptedge.backends.checkpoint_predictor import to_detections
from ptedge.boxes import clip_boxes
from ptedge.detections import Detections
from ptedge.detector.model import ProbabilisticFasterRCNN
from ptedge.preprocess import PIXEL_MEAN
from ptedge.scores.label_free import Answers, suppress

SECOND_SCALE = 0.9  # other cells of the feature map and other anchors answer; small objects are still seen


def second_view(image: NDArray[np.uint8], content: tuple[int, int]) -> tuple[NDArray[np.uint8], tuple[float, float]]:
    """The picture mirrored and scaled by :data:`SECOND_SCALE`, in the top left corner as every picture is.

    Args:
        image: network input, RGB uint8 [H, W, 3].
        content: (height, width) of the part that shows the picture, at the top left.

    Returns:
        An input of the same size, and the (x, y) scales, which rounding makes two.
    """
    height, width = content
    small = (max(1, round(width * SECOND_SCALE)), max(1, round(height * SECOND_SCALE)))
    out = np.empty_like(image)
    out[:] = np.round(PIXEL_MEAN).astype(np.uint8)
    mirrored = np.ascontiguousarray(image[:height, :width][:, ::-1])
    out[: small[1], : small[0]] = cv2.resize(mirrored, small, interpolation=cv2.INTER_AREA)
    return out, (small[0] / width, small[1] / height)


def undo_second(found: Detections, content: tuple[int, int], scales: tuple[float, float]) -> Detections:
    """Detections of :func:`second_view` as detections of the picture as it is; left and right sides change places.

    Args:
        found: in pixels of the second view.
        content: as given to :func:`second_view`.
        scales: as it returned.
    """
    height, width = content
    x_scale, y_scale = scales
    x1, y1, x2, y2 = (found.boxes[:, i] for i in range(4))
    boxes = np.stack([width - x2 / x_scale, y1 / y_scale, width - x1 / x_scale, y2 / y_scale], axis=1)
    sigma = found.sigma[:, [2, 1, 0, 3]] / np.array([x_scale, y_scale, x_scale, y_scale], np.float32)
    boxes = clip_boxes(boxes.astype(np.float32), width, height)
    moved = replace(found, boxes=boxes, sigma=sigma.astype(np.float32))
    return moved.select((boxes[:, 2] > boxes[:, 0]) & (boxes[:, 3] > boxes[:, 1]))


@torch.no_grad()
def look_twice(model: ProbabilisticFasterRCNN, image: NDArray[np.uint8], content: tuple[int, int]) -> Answers:
    """What a model says of a picture in both views.

    Args:
        model: in eval mode.
        image: network input, RGB uint8 [H, W, 3].
        content: (height, width) of the part that shows the picture, at the top left.
    """
    other, scales = second_view(image, content)
    device = next(model.parameters()).device
    batch = torch.from_numpy(np.stack([image, other])).permute(0, 3, 1, 2).to(device)
    config = model.config
    everything = replace(config, nms=1.0, max_detections=config.candidates)
    found = model.detect_features(model.features(batch), everything)
    candidates, others = (to_detections(raw) for raw in found)
    plain, second = (suppress(one, config.nms, config.max_detections) for one in (candidates, others))
    return Answers(plain, candidates, undo_second(second, content, scales))
