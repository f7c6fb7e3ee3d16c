"""Text on pictures: a size that can be read, and a place where it covers least."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

FONT = cv2.FONT_HERSHEY_SIMPLEX
SMALLEST, PIXELS_OF_1 = 0.45, 1150  # scale of the font: below 0.45 its letters run together
Color = tuple[int, int, int]


class Area(NamedTuple):
    """A rectangle of whole pixels; ``right`` and ``bottom`` are the first ones outside."""

    left: int
    top: int
    right: int
    bottom: int


@dataclass(frozen=True)
class Lettering:
    """How text is written on a picture of some size.

    Attributes:
        scale: of the font.
        weight: of its strokes, in pixels.
        margin: between text and the edge of its plate, in pixels.
    """

    scale: float
    weight: int
    margin: int

    @classmethod
    def fitting(cls, height: int, width: int, letters: float = 1.0) -> Lettering:
        """For a picture of so many pixels; ``letters`` makes them larger or smaller than fits it."""
        scale = letters * max(SMALLEST, min(height, width) / PIXELS_OF_1)
        return cls(scale, max(1, round(scale * 1.4)), max(3, round(6 * scale)))

    def size(self, text: str) -> tuple[int, int]:
        """Width and height in pixels that a plate with the text has."""
        (width, height), descent = cv2.getTextSize(text, FONT, self.scale, self.weight)
        return width + 2 * self.margin, height + descent + 2 * self.margin

    def write(self, image: NDArray[np.uint8], text: str, left: int, top: int, color: Color) -> None:
        """Write on a plate that begins at (left, top)."""
        (_, height), _ = cv2.getTextSize(text, FONT, self.scale, self.weight)
        at = (left + self.margin, top + self.margin + height)
        cv2.putText(image, text, at, FONT, self.scale, color, self.weight, cv2.LINE_AA)


def areas_of(boxes: NDArray[np.float32]) -> list[Area]:
    """Areas of boxes.

    Args:
        boxes: [N, 4] xyxy in pixels.
    """
    return [Area(round(x1), round(y1), round(x2) + 1, round(y2) + 1) for x1, y1, x2, y2 in boxes.tolist()]


def least_covering(places: Sequence[Area], taken: Iterable[Area]) -> tuple[Area, int]:
    """The first of the places that cover the fewest pixels of what is taken, and how many it covers."""
    this, other = np.array(places)[:, None], np.array([*taken] or [Area(0, 0, 0, 0)])[None]  # [P, 1, 4], [1, T, 4]
    shared = np.minimum(this[..., 2:], other[..., 2:]) - np.maximum(this[..., :2], other[..., :2])
    costs = shared.clip(0).prod(-1).sum(-1)  # [P]
    best = int(costs.argmin())
    return places[best], int(costs[best])
