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
QUICK_SCALE = 0.5  # from here down; below twice the size, averaging all of an image takes little time


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

    def image(self, image: NDArray[np.uint8], *, quick: bool = False) -> NDArray[np.uint8]:
        """Scale and pad an image.

        Args:
            image: [height, width, 3] uint8 RGB.
            quick: shrink as :func:`shrink_quickly` does where the image is at least twice as large as it becomes.

        Returns:
            [input_height, input_width, 3] uint8 RGB.

        Raises:
            ValueError: the image is not of the size this letterbox was made for.
        """
        if image.shape != (self.height, self.width, 3):
            raise ValueError(f"a letterbox for {self.height} x {self.width} x 3 got an image of shape {image.shape}")
        height, width = self.content
        out = np.empty((self.input_height, self.input_width, 3), np.uint8)
        # only what the image leaves free: filling three bytes at a time takes a millisecond for a whole input
        out[height:] = out[:height, width:] = np.round(PIXEL_MEAN).astype(np.uint8)
        if quick and self.scale <= QUICK_SCALE:
            out[:height, :width] = shrink_quickly(image, (width, height))
        else:
            # area averaging when shrinking: bilinear sampling would skip pixels and alias
            method = cv2.INTER_AREA if self.scale < 1 else cv2.INTER_LINEAR
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


def shrink_quickly(image: NDArray[np.uint8], size: tuple[int, int]) -> NDArray[np.uint8]:
    """Nearly what area averaging gives, in a quarter of the time: means over whole pixels, bilinearly between them.

    Where the scale is 1 to a whole number, the two are the same to a rounding; elsewhere they differ by a fraction
    of a grey level on average, and by some ten at hard edges (docs/results.md).

    Args:
        image: [height, width, 3] uint8.
        size: (width, height) wanted, each at most that of the image.

    Returns:
        [height, width, 3] uint8.
    """
    ratios = image.shape[1] / size[0], image.shape[0] / size[1]
    sides = round(ratios[0]), round(ratios[1])
    # the mean of an even number of pixels lies half a pixel before the one in whose place it stands
    means = cv2.blur(image, sides, anchor=(sides[0] // 2, sides[1] // 2), borderType=cv2.BORDER_REPLICATE)
    shift = [0.0 if side % 2 else 0.5 for side in sides]
    if not any(shift):
        return np.asarray(cv2.resize(means, size, interpolation=cv2.INTER_LINEAR), np.uint8)
    (x, y), (dx, dy) = ratios, shift
    places = np.array([[x, 0, (x - 1) / 2 + dx], [0, y, (y - 1) / 2 + dy]])
    how = cv2.WARP_INVERSE_MAP | cv2.INTER_LINEAR
    return np.asarray(cv2.warpAffine(means, places, size, flags=how, borderMode=cv2.BORDER_REPLICATE), np.uint8)
