"""A frame in a few pixels: its hash, by which alike frames are known, and its light."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray


def small_grey(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """A grey copy of 8 x 9 pixels, each the mean of its part of the picture.

    Args:
        image: [H, W, 3] uint8 RGB.

    Returns:
        [8, 9].
    """
    grey = cv2.cvtColor(cv2.resize(image, (9, 8), interpolation=cv2.INTER_AREA), cv2.COLOR_RGB2GRAY)
    return np.asarray(grey, np.uint8)


def dhash(image: NDArray[np.uint8]) -> int:
    """Difference hash: 64 bits that say where a small grey copy gets brighter to the right; alike for alike images.

    Args:
        image: [H, W, 3] uint8 RGB.
    """
    return dhash_of_small(small_grey(image))


def dhash_of_small(small: NDArray[np.uint8]) -> int:
    """As :func:`dhash`, of a copy as :func:`small_grey` makes it."""
    bits = (small[:, 1:] > small[:, :-1]).ravel()  # [64]
    return int.from_bytes(np.packbits(bits).tobytes(), "big")
