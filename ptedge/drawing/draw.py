"""Draw detections: box, label, and on every side a band that fades out at two of that side's standard deviations."""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

from ptedge.detections import Detections
from ptedge.drawing.bands import Bands
from ptedge.drawing.legend import LegendRow, band_row, draw_legend
from ptedge.drawing.lettering import Area, Color, Lettering, areas_of, least_covering

# Distinct in hue and lightness, for eight classes before they repeat (Okabe and Ito's colours for every eye, RGB).
COLORS: tuple[Color, ...] = (
    (230, 159, 0),
    (86, 180, 233),
    (0, 200, 140),
    (240, 228, 66),
    (90, 130, 255),
    (230, 110, 30),
    (220, 140, 190),
    (235, 235, 235),
)
# where pictures compare models, a colour says who found a box
SOURCE_COLOR, ADAPTED_COLOR, TRUTH_COLOR = COLORS[0], COLORS[1], (255, 255, 255)
INK = (20, 20, 20)
SMALL_BOX = 64  # pixels of its shorter side; the line of a smaller box is one pixel


def draw_detections(
    image: NDArray[np.uint8],
    detections: Detections,
    class_names: Sequence[str],
    *,
    color: Color | None = None,
    legend: Sequence[LegendRow] | None = (),
    letters: float = 1.0,
) -> NDArray[np.uint8]:
    """A copy of an image with its detections and a legend on it.

    Each side of a box carries a translucent band that fades out at two standard deviations (95 % of a Gaussian), so
    that a sharp side looks thin and a doubtful one wide. Into the box a band reaches a quarter of it at most: what is
    in it stays visible.

    Args:
        image: [H, W, 3] uint8 RGB.
        detections: in pixels of the image.
        class_names: names by label.
        color: RGB of all boxes; ``None`` takes one for each class.
        legend: rows above the one about bands; ``None`` for no legend. An image too small for one has none.
        letters: size of text, as a share of what fits the image; above 1 for pictures that are shown smaller.

    Returns:
        [H, W, 3] uint8 RGB; the argument is unchanged.
    """
    out: NDArray[np.uint8] = np.array(image, order="C")
    order = np.argsort(detections.scores, kind="stable")  # the best last, so on top
    colors = [color or COLORS[int(label) % len(COLORS)] for label in detections.labels]
    bands = Bands(*image.shape[:2])
    for i in order:
        bands.add(detections.boxes[i], detections.sigma[i], colors[i])
    bands.blend(out)
    draw_boxes(out, detections.boxes[order], [colors[i] for i in order])
    lettering = Lettering.fitting(image.shape[0], image.shape[1], letters)
    areas, placed = areas_of(detections.boxes), list[Area]()
    if legend is not None:
        rows = [*legend, band_row(colors[int(order[-1])] if len(order) else color or COLORS[0])]
        legend_area = draw_legend(out, rows, areas, lettering)
        placed += [legend_area] if legend_area is not None else []
    labels: list[tuple[Area, str, int]] = []
    for i in order[::-1]:  # the best has the first choice of places
        text = f"{class_names[int(detections.labels[i])]} {detections.scores[i]:.2f}"
        place = _place(areas[i], lettering.size(text), image.shape[:2], areas, placed)
        placed.append(place)
        labels.append((place, text, i))
    for place, _, i in labels:
        _draw_leader(out, place, areas[i], colors[i])
    for place, text, i in labels[::-1]:
        cv2.rectangle(out, (place.left, place.top), (place.right - 1, place.bottom - 1), colors[i], cv2.FILLED)
        lettering.write(out, text, place.left, place.top, INK)
    return out


def draw_boxes(
    image: NDArray[np.uint8], boxes: NDArray[np.float32], colors: Sequence[Color], *, wider: int = 0
) -> None:
    """Outlines, thin around small boxes.

    Args:
        image: [H, W, 3] uint8 RGB, changed in place.
        boxes: [N, 4] xyxy in pixels.
        colors: RGB of each.
        wider: pixels added to the lines, so that they show around others that are drawn over them.
    """
    line = max(1, round(min(image.shape[:2]) / 300))
    for box, color in zip(boxes, colors, strict=True):
        x1, y1, x2, y2 = (round(float(v)) for v in box)
        thick = (1 if min(x2 - x1, y2 - y1) < SMALL_BOX else line) + wider
        # cv2.rectangle makes a line of three pixels five wide
        across = slice(max(0, x1 - thick // 2), max(0, x2 - thick // 2 + thick))
        down = slice(max(0, y1 - thick // 2), max(0, y2 - thick // 2 + thick))
        for x in (x1, x2):
            image[down, max(0, x - thick // 2) : max(0, x - thick // 2 + thick)] = color
        for y in (y1, y2):
            image[max(0, y - thick // 2) : max(0, y - thick // 2 + thick), across] = color


def _place(
    box: Area, size: tuple[int, int], image: tuple[int, ...], boxes: Sequence[Area], placed: Sequence[Area]
) -> Area:
    """Where a label covers least: above or below its box, up to two rows away, else beside or in it.

    Args:
        box: that it belongs to.
        size: width and height.
        image: height and width.
        boxes: all of them.
        placed: legend and labels; to cover these is worse, so they count twice.
    """
    wide, high = size
    corners = []
    for row in range(3):
        above, below = box.top - (row + 1) * high, box.bottom + row * high
        corners += [(x, y) for y in (above, below) for x in (box.left, box.right - wide)]
    corners += [(box.right, box.top), (box.left - wide, box.top), (box.left, box.top)]
    inside = [(max(0, min(x, image[1] - wide)), max(0, min(y, image[0] - high))) for x, y in corners]
    return least_covering([Area(x, y, x + wide, y + high) for x, y in inside], [*boxes, *placed, *placed])[0]


def _draw_leader(image: NDArray[np.uint8], label: Area, box: Area, color: Color) -> None:
    """A thin upright line from a label that stands apart from its box, where there was room, to the box."""
    low, high = (label.bottom, box.top) if label.bottom < box.top else (box.bottom, label.top)
    if high > low:
        x = min(max((label.left + label.right) // 2, box.left), box.right - 1)
        x = min(max(x, label.left), label.right - 1)
        image[low:high, x] = color
