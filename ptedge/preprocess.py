"""Letterbox: the one way an image becomes network input, in training, in checks and on the device.

The image is scaled, aspect kept, to fit the H x W input, and placed in the top left corner; the rest is filled
with the channel mean, which is zero after the network's own normalisation. Placing it at the corner makes the inverse
a division by the scale. Pixels outside the image hold no object, so boxes are clipped to the image on the way back.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from ptedge.boxes import clip_boxes
from ptedge.detections import Detections

# ImageNet statistics, RGB, on the 0..255 scale: the normalisation of every backbone in ptedge.
PIXEL_MEAN = (123.675, 116.28, 103.53)
PIXEL_STD = (58.395, 57.12, 57.375)


@dataclass(frozen=True)
class Letterbox:
    """Placement of a ``width`` x ``height`` image in the network's ``input_height`` x ``input_width`` input."""

    width: int
    height: int
    input_height: int
    input_width: int

    @property
    def scale(self) -> float:
        """Input pixels an image pixel, the same for x and y; above 1 the image is enlarged."""
        return min(self.input_width / self.width, self.input_height / self.height)

    @property
    def content(self) -> tuple[int, int]:
        """(height, width) in input pixels of the part that shows the image."""
        width = max(1, min(self.input_width, round(self.width * self.scale)))
        height = max(1, min(self.input_height, round(self.height * self.scale)))
        return height, width

    def image(self, image: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Scale and pad an image.

        Args:
            image: [height, width, 3] uint8 RGB.

        Returns:
            [input_height, input_width, 3] uint8 RGB.

        Raises:
            ValueError: the image is not of the size this letterbox was made for.
        """
        if image.shape != (self.height, self.width, 3):
            raise ValueError(f"a letterbox for {self.height} x {self.width} x 3 got an image of shape {image.shape}")
        height, width = self.content
        # area averaging when shrinking: bilinear sampling would skip pixels and alias
        method = cv2.INTER_AREA if self.scale < 1 else cv2.INTER_LINEAR
        out = np.empty((self.input_height, self.input_width, 3), np.uint8)
        # only what the image leaves free: filling three bytes at a time takes a millisecond for a whole input
        out[height:] = out[:height, width:] = np.round(PIXEL_MEAN).astype(np.uint8)
        out[:height, :width] = cv2.resize(image, (width, height), interpolation=method)
        return out

    def boxes(self, boxes: NDArray[np.float32]) -> NDArray[np.float32]:
        """Boxes of the image as boxes of the input.

        Args:
            boxes: [N, 4] xyxy in image pixels.

        Returns:
            [N, 4] xyxy in input pixels.
        """
        return np.asarray(boxes * self.scale, np.float32)

    def undo(self, detections: Detections) -> Detections:
        """Detections in input pixels as detections in image pixels: boxes and sigma divided by the scale.

        Boxes are clipped to the image; those left without area lay in the padding and are dropped.
        """
        boxes = clip_boxes(detections.boxes / np.float32(self.scale), self.width, self.height)
        moved = Detections(
            boxes,
            detections.scores,
            detections.labels,
            (detections.sigma / np.float32(self.scale)).astype(np.float32),
            detections.entropy,
        )
        return moved.select((boxes[:, 2] > boxes[:, 0]) & (boxes[:, 3] > boxes[:, 1]))
