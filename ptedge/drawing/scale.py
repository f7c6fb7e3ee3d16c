"""Frames at the size in which they are shown, their detections with them."""

from __future__ import annotations

import dataclasses

import cv2
import numpy as np
from numpy.typing import NDArray

from ptedge.detections import Detections


def at_shown_width(
    image: NDArray[np.uint8], found: Detections, narrowest: int, widest: int, enlarge: int = cv2.INTER_LINEAR
) -> tuple[NDArray[np.uint8], Detections]:
    """A frame no narrower and no wider than asked, its aspect kept; as it is where it fits.

    Args:
        image: [H, W, 3] uint8 RGB.
        found: boxes and sigma in its pixels.
        narrowest: pixels; a narrower frame is enlarged.
        widest: pixels; a wider one is shrunk, by area.
        enlarge: OpenCV's interpolation where it is enlarged.

    Returns:
        The frame, and the detections in its pixels.
    """
    height, width = image.shape[:2]
    scale = min(max(width, narrowest), widest) / width
    if scale == 1:
        return image, found
    size = (round(width * scale), max(1, round(height * scale)))
    resized = np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA if scale < 1 else enlarge), np.uint8)
    factor = np.float32(scale)
    return resized, dataclasses.replace(found, boxes=found.boxes * factor, sigma=found.sigma * factor)


__all__ = ["at_shown_width"]
