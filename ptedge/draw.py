"""Draw detections: box, label, and on every side a band as wide as that side's standard deviation."""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

from ptedge.detections import Detections

# Distinct in hue and lightness, for eight classes before they repeat (Okabe and Ito's colours for every eye, RGB).
COLORS = (
    (230, 159, 0),
    (86, 180, 233),
    (0, 200, 140),
    (240, 228, 66),
    (90, 130, 255),
    (230, 110, 30),
    (220, 140, 190),
    (235, 235, 235),
)
BAND_SIGMAS = 2.0
BAND_OPACITY = 0.4
FONT = cv2.FONT_HERSHEY_SIMPLEX


def draw_detections(image: NDArray[np.uint8], detections: Detections, class_names: Sequence[str]) -> NDArray[np.uint8]:
    """A copy of an image with its detections on it.

    Each side of a box carries a translucent band from two standard deviations inside to two outside (95 % of a
    Gaussian), so that a sharp side looks thin and a doubtful one wide.

    Args:
        image: [H, W, 3] uint8 RGB.
        detections: in pixels of the image.
        class_names: names by label.

    Returns:
        [H, W, 3] uint8 RGB; the argument is unchanged.
    """
    out: NDArray[np.uint8] = np.array(image, order="C")
    if not len(detections):
        return out
    size = min(image.shape[:2])
    line = max(1, round(size / 300))
    order = np.argsort(detections.scores, kind="stable")  # the best last, so on top
    for i in order:
        _draw_bands(out, detections.boxes[i], detections.sigma[i], _color(int(detections.labels[i])))
    for i in order:
        x1, y1, x2, y2 = (round(float(v)) for v in detections.boxes[i])
        cv2.rectangle(out, (x1, y1), (x2, y2), _color(int(detections.labels[i])), line, cv2.LINE_AA)
    for i in order:
        label = int(detections.labels[i])
        _draw_label(out, detections.boxes[i], f"{class_names[label]} {detections.scores[i]:.2f}", _color(label), line)
    return out


def _color(label: int) -> tuple[int, int, int]:
    return COLORS[label % len(COLORS)]


def _draw_bands(
    image: NDArray[np.uint8], box: NDArray[np.float32], sigma: NDArray[np.float32], color: tuple[int, int, int]
) -> None:
    """Blend the four bands of one box into the image, each pixel once, so that corners are no darker."""
    height, width = image.shape[:2]
    x1, y1, x2, y2 = (float(v) for v in box)
    s1, t1, s2, t2 = (BAND_SIGMAS * float(v) for v in sigma)
    bands = (  # x from, y from, x to, y to
        (x1 - s1, y1, x1 + s1, y2),
        (x1, y1 - t1, x2, y1 + t1),
        (x2 - s2, y1, x2 + s2, y2),
        (x1, y2 - t2, x2, y2 + t2),
    )
    left, top = max(0, int(x1 - s1)), max(0, int(y1 - t1))
    right, bottom = min(width, int(x2 + s2) + 2), min(height, int(y2 + t2) + 2)
    if right <= left or bottom <= top:
        return
    mask = np.zeros((bottom - top, right - left), np.uint8)
    for xa, ya, xb, yb in bands:
        rows = slice(max(0, round(ya) - top), max(0, round(yb) - top + 1))
        columns = slice(max(0, round(xa) - left), max(0, round(xb) - left + 1))
        mask[rows, columns] = 1
    region = image[top:bottom, left:right]
    blended = cv2.addWeighted(region, 1 - BAND_OPACITY, np.full_like(region, color), BAND_OPACITY, 0)
    np.copyto(region, blended, where=mask[:, :, None].astype(bool))


def _draw_label(
    image: NDArray[np.uint8], box: NDArray[np.float32], text: str, color: tuple[int, int, int], line: int
) -> None:
    """Dark text on a plate of the box's colour: above the box, below its top side where there is no room."""
    height, width = image.shape[:2]
    scale = max(0.32, min(height, width) / 1200)
    weight = max(1, round(scale * 1.6))
    (text_width, text_height), descent = cv2.getTextSize(text, FONT, scale, weight)
    margin = max(2, line)
    plate_width, plate_height = text_width + 2 * margin, text_height + descent + 2 * margin
    x = int(np.clip(round(float(box[0])), 0, max(0, width - plate_width)))
    above = round(float(box[1])) - plate_height
    y = int(np.clip(above if above >= 0 else round(float(box[1])), 0, max(0, height - plate_height)))
    cv2.rectangle(image, (x, y), (x + plate_width - 1, y + plate_height - 1), color, cv2.FILLED)
    cv2.putText(image, text, (x + margin, y + margin + text_height), FONT, scale, (20, 20, 20), weight, cv2.LINE_AA)
