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
    paint, mask = out.copy(), np.zeros(image.shape[:2], bool)
    for i in order:
        _paint_bands(paint, mask, detections.boxes[i], detections.sigma[i], _color(int(detections.labels[i])))
    # blended once, however many bands overlap, so that the image stays visible below
    blended = cv2.addWeighted(out, 1 - BAND_OPACITY, paint, BAND_OPACITY, 0)
    np.copyto(out, blended, where=mask[:, :, None])
    for i in order:
        x1, y1, x2, y2 = (round(float(v)) for v in detections.boxes[i])
        cv2.rectangle(out, (x1, y1), (x2, y2), _color(int(detections.labels[i])), line, cv2.LINE_AA)
    for i in order:
        label = int(detections.labels[i])
        _draw_label(out, detections.boxes[i], f"{class_names[label]} {detections.scores[i]:.2f}", _color(label), line)
    return out


def _color(label: int) -> tuple[int, int, int]:
    return COLORS[label % len(COLORS)]


def _paint_bands(
    paint: NDArray[np.uint8],
    mask: NDArray[np.bool_],
    box: NDArray[np.float32],
    sigma: NDArray[np.float32],
    color: tuple[int, int, int],
) -> None:
    """Fill the bands of the four sides in ``paint`` and mark them in ``mask``; inside they end at the box's middle."""
    x1, y1, x2, y2 = (float(v) for v in box)
    left, top, right, bottom = (BAND_SIGMAS * float(v) for v in sigma)
    middle_x, middle_y = (x1 + x2) / 2, (y1 + y2) / 2
    bands = (  # x from, y from, x to, y to
        (x1 - left, y1, min(x1 + left, middle_x), y2),
        (x1, y1 - top, x2, min(y1 + top, middle_y)),
        (max(x2 - right, middle_x), y1, x2 + right, y2),
        (x1, max(y2 - bottom, middle_y), x2, y2 + bottom),
    )
    for xa, ya, xb, yb in bands:
        area = slice(max(0, round(ya)), max(0, round(yb) + 1)), slice(max(0, round(xa)), max(0, round(xb) + 1))
        paint[area] = color
        mask[area] = True


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
