"""Fog by Koschmieder's law, as Foggy Cityscapes has it.

Reference: Sakaridis, Dai, Van Gool, Semantic Foggy Scene Understanding with Synthetic Data, IJCV 2018, section 3; the
atmospheric light after He et al. 2011 and Tang et al. 2014, as cited there.
"""

from __future__ import annotations

import math

import cv2
import numpy as np
from numpy.typing import NDArray

_DARK_WINDOW = 15  # pixels; He et al. 2011
_BRIGHTEST = 1000  # one of so many pixels
_GREY = (0.299, 0.587, 0.114)  # BT.601, of red, green and blue


def transmittance(distance: NDArray[np.float64], beta: float) -> NDArray[np.float64]:
    """Share of the light of a scene that arrives, exp(-beta * distance).

    Args:
        distance: [H, W] metres from the camera along the ray; may be infinite.
        beta: attenuation coefficient in 1/m; fog begins at 0.003.
    """
    return np.exp(-beta * distance)


def visibility(beta: float) -> float:
    """Metres at which contrast has fallen to 5 %, the meteorological optical range: ln(20) / beta."""
    return math.log(20) / beta


def add_fog(
    image: NDArray[np.uint8], transmitted: NDArray[np.float64], light: NDArray[np.float64]
) -> NDArray[np.uint8]:
    """The scene through fog: I = R t + L (1 - t).

    Args:
        image: [H, W, 3] RGB in clear weather.
        transmitted: [H, W] between 0 and 1.
        light: [3] atmospheric light, 0 to 255.

    Returns:
        [H, W, 3] uint8 RGB.
    """
    share = transmitted[:, :, None]
    foggy: NDArray[np.uint8] = np.round(image * share + light * (1 - share)).astype(np.uint8)
    return foggy


def atmospheric_light(image: NDArray[np.uint8]) -> NDArray[np.float64]:
    """The colour of the fog: of the 0.1 % of pixels that are brightest in the dark channel, the one of median grey.

    The dark channel is the darkest value of any colour in a window of 15 pixels. The number of pixels is odd, so that
    the median is one of them.

    Args:
        image: [H, W, 3] uint8 RGB.

    Returns:
        [3] float64, 0 to 255.
    """
    dark = cv2.erode(image.min(axis=2), np.ones((_DARK_WINDOW, _DARK_WINDOW), np.uint8))
    count = max(1, dark.size // _BRIGHTEST) // 2 * 2 + 1
    brightest = np.argsort(-dark.ravel().astype(np.int16), kind="stable")[:count]
    colours = image.reshape(-1, 3)[brightest].astype(np.float64)  # [count, 3]
    middle = np.argsort(colours @ np.array(_GREY), kind="stable")[len(colours) // 2]
    light: NDArray[np.float64] = colours[middle]
    return light
