"""Bands that show how sure each side of a box is: translucent, fading with the distance from the side."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

BAND_SIGMAS = 2.0
OPACITY = 0.6  # at the side itself
EDGE_OPACITY = 0.35  # of the hairline where a band ends, or its width could not be read
INNER_SHARE = 0.25  # of a box that a band reaches into at most, so that what is in a small box stays visible
FloatArray = NDArray[np.float32]


class Bands:
    """Bands of many boxes on one image: gathered first and blended once, so that they never add up.

    Args:
        height: of the image, in pixels.
        width: of the image, in pixels.
    """

    def __init__(self, height: int, width: int) -> None:
        self._alpha = np.zeros((height, width), np.float32)
        self._paint = np.zeros((height, width, 3), np.uint8)

    def add(self, box: FloatArray, sigma: FloatArray, color: tuple[int, int, int]) -> None:
        """Put the four bands of a box above those of earlier ones, where they are stronger.

        Args:
            box: [4] xyxy in pixels.
            sigma: [4] standard deviations in pixels.
            color: RGB.
        """
        height, width = self._alpha.shape
        columns = _Axis(float(box[0]), float(box[2]), float(sigma[0]), float(sigma[2]), width)
        rows = _Axis(float(box[1]), float(box[3]), float(sigma[1]), float(sigma[3]), height)
        for ys, xs in _frame(rows, columns):
            alpha = _alpha(rows, columns, ys, xs)
            area = rows.on_image(ys), columns.on_image(xs)
            stronger = alpha > self._alpha[area]
            np.copyto(self._alpha[area], alpha, where=stronger)
            np.copyto(self._paint[area], np.array(color, np.uint8), where=stronger[..., None])

    def blend(self, image: NDArray[np.uint8]) -> None:
        """Lay the bands over an image.

        Args:
            image: [H, W, 3] uint8, changed in place.
        """
        cv2.blendLinear(image, self._paint, 1 - self._alpha, self._alpha, dst=image)


class _Axis:
    """One axis of a box: how strong the bands of its two sides are at each pixel from ``first`` on.

    Attributes:
        first: pixel that the arrays begin with.
        outside: [n] 1 between the sides, fading outwards to 0 at two sigma.
        inside: [n] 1 at the sides, fading inwards; 0 outside.
        between: [n] whether a pixel lies between the sides.
        low, high: positions in the arrays up to which, and from which, the inner parts of the two bands reach.
    """

    def __init__(self, low: float, high: float, sigma_low: float, sigma_high: float, size: int) -> None:
        first = int(np.clip(np.floor(low - BAND_SIGMAS * sigma_low), 0, size))
        end = int(np.clip(np.ceil(high + BAND_SIGMAS * sigma_high) + 1, first, size))
        at = np.arange(first, end, dtype=np.float32)
        low, high = float(round(low)), float(round(high))  # where the line is drawn
        self.first, self.between = first, (at >= low) & (at <= high)
        self.outside = np.minimum(_outward(low - at, sigma_low), _outward(at - high, sigma_high))
        reach = INNER_SHARE * max(0.0, high - low)
        inward = np.maximum(_inward(at - low, sigma_low, reach), _inward(high - at, sigma_high, reach))
        self.inside = np.where(self.between, inward, np.float32(0))
        self.low = int(np.clip(np.ceil(low + reach) + 1 - first, 0, len(at)))
        self.high = int(np.clip(np.floor(high - reach) - first, self.low, len(at)))

    def on_image(self, part: slice) -> slice:
        """A part of the arrays as pixels of the image."""
        return slice(part.start + self.first, part.stop + self.first)


def _fade(distance: FloatArray, sigma: float) -> FloatArray:
    """A Gaussian's bell, 1 at distance 0, lowered so that it is 0 from two sigma on."""
    if sigma <= 0:
        return (distance <= 0).astype(np.float32)
    floor = np.exp(-(BAND_SIGMAS**2) / 2)
    bell = np.exp(-((distance / sigma) ** 2) / 2)
    return np.asarray(np.clip((bell - floor) / (1 - floor), 0, 1), np.float32)


def _outward(distance: FloatArray, sigma: float) -> FloatArray:
    """Strength at a distance outside a side; 1 on its other side."""
    edge = np.abs(distance - BAND_SIGMAS * sigma) <= 0.5
    fading = _fade(np.maximum(distance, 0), sigma)
    hair = np.where(edge & (distance > 1), np.float32(EDGE_OPACITY / OPACITY), np.float32(0))
    return np.asarray(np.maximum(fading, hair), np.float32)


def _inward(distance: FloatArray, sigma: float, reach: float) -> FloatArray:
    """Strength at a distance inside a side: as outside, and 0 from ``reach`` on."""
    if reach <= 0:
        return np.zeros_like(distance)
    window = np.clip(1 - distance / reach, 0, 1)
    return np.asarray(_fade(np.abs(distance), sigma) * window, np.float32)


def _frame(rows: _Axis, columns: _Axis) -> list[tuple[slice, slice]]:
    """The four parts of an area that bands reach: all but the middle of the box."""
    height, width = len(rows.between), len(columns.between)
    middle = slice(rows.low, rows.high)
    return [
        (slice(0, rows.low), slice(0, width)),
        (slice(rows.high, height), slice(0, width)),
        (middle, slice(0, columns.low)),
        (middle, slice(columns.high, width)),
    ]


def _alpha(rows: _Axis, columns: _Axis, ys: slice, xs: slice) -> FloatArray:
    """[h, w] opacity of a part: around the box the product of both axes, in it the stronger one."""
    around = rows.outside[ys, None] * columns.outside[None, xs]
    within = np.maximum(rows.inside[ys, None], columns.inside[None, xs])
    in_box = rows.between[ys, None] & columns.between[None, xs]
    return np.asarray(OPACITY * np.where(in_box, within, around), np.float32)
