"""The legend of a picture: what a line, its colour and its band mean, in a corner where it covers no box."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ptedge.drawing.bands import Bands
from ptedge.drawing.lettering import Area, Color, Lettering, least_covering

PLATE, PLATE_OPACITY = (18, 20, 24), 0.8
TEXT = (240, 240, 240)
MOST_OF_WIDTH, MOST_OF_HEIGHT = 0.9, 0.4  # of a picture that a legend may take; a smaller picture has none


@dataclass(frozen=True)
class LegendRow:
    """One row.

    Attributes:
        text: what it says.
        color: RGB of the mark before it.
        band: the mark is a side with its band, else a line.
    """

    text: str
    color: Color
    band: bool = False


def band_row(color: Color) -> LegendRow:
    """The row that says what the bands are."""
    return LegendRow("side of a box, band of 2 sigma (95 %)", color, band=True)


def draw_legend(
    image: NDArray[np.uint8], rows: Sequence[LegendRow], taken: Sequence[Area], lettering: Lettering | None = None
) -> Area | None:
    """Write a legend into the corner where it covers least.

    Args:
        image: [H, W, 3] uint8 RGB, changed in place.
        rows: from the top.
        taken: areas it should leave free.
        lettering: how text is written; ``None`` takes what fits the picture.

    Returns:
        Where it is; ``None`` where the picture is too small for one, or there are no rows.
    """
    height, width = image.shape[:2]
    lettering = lettering or Lettering.fitting(height, width)
    sizes = [lettering.size(row.text) for row in rows]
    if not sizes:
        return None
    line = max(size[1] for size in sizes)
    mark = round(1.8 * line)
    area_width, area_height = mark + lettering.margin + max(size[0] for size in sizes), line * len(rows)
    if area_width > MOST_OF_WIDTH * width or area_height > MOST_OF_HEIGHT * height:
        return None
    left, top, gap = width - area_width, height - area_height, lettering.margin
    corners = [(gap, top - gap), (left - gap, top - gap), (gap, gap), (left - gap, gap)]
    area, _ = least_covering([Area(x, y, x + area_width, y + area_height) for x, y in corners], taken)
    plate = image[area.top : area.bottom, area.left : area.right]
    plate[:] = np.rint(plate * (1 - PLATE_OPACITY) + np.array(PLATE) * PLATE_OPACITY).astype(np.uint8)
    for i, row in enumerate(rows):
        _draw_mark(plate[i * line : (i + 1) * line, lettering.margin : mark], row)
        lettering.write(image, row.text, area.left + mark, area.top + i * line, TEXT)
    return area


def _draw_mark(image: NDArray[np.uint8], row: LegendRow) -> None:
    """A line across the middle of a small view of the picture, or the side of a box with its band."""
    height, width = image.shape[:2]
    middle = height // 2
    thick = max(1, height // 12)
    if not row.band:
        image[middle - thick // 2 : middle - thick // 2 + thick] = row.color
        return
    bands = Bands(height, width)
    sigma = (width / 2 - 1) / 2
    # the left side of a box whose other sides are out of sight
    box = np.array([width / 2, -9 * height, 9 * width, 9 * height], np.float32)
    bands.add(box, np.array([sigma, 0, 0, 0], np.float32), row.color)
    bands.blend(image)
    image[:, round(width / 2) - thick // 2 : round(width / 2) - thick // 2 + thick] = row.color
