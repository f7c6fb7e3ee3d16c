"""Anchors before and after, drawn over one another at one scale."""

from __future__ import annotations

from collections.abc import Sequence

from .charts import HEIGHT, WIDTH, figure, key, svg
from .markup import Markup, element

ROOM = 12  # pixels around the largest


def anchor_drawing(before: Sequence[Sequence[float]], after: Sequence[Sequence[float]]) -> Markup:
    """Rectangles around one centre.

    Args:
        before: [A][2] width and height in input pixels, above 0.
        after: likewise.
    """
    widest, highest = (max(shape[side] for shape in (*before, *after)) for side in (0, 1))
    scale = min((WIDTH - 2 * ROOM) / widest, (HEIGHT - 2 * ROOM) / highest)
    parts = [_outline(shape, scale, "line under t-before") for shape in before]
    parts += [_outline(shape, scale, "line t-after") for shape in after]
    alt = (
        f"{len(after)} anchors before and after, the largest {widest:.0f} wide and {highest:.0f} high, in input pixels"
    )
    return figure("Anchors", "at one scale", svg(parts, alt), [key("before", "before wide"), key("after", "after")])


def _outline(shape: Sequence[float], scale: float, style: str) -> Markup:
    width, height = shape[0] * scale, shape[1] * scale
    return element("rect", x=(WIDTH - width) / 2, y=(HEIGHT - height) / 2, width=width, height=height, class_=style)
