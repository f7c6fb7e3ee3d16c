"""Strategy ``count_change``: the number of objects is another than in the frames around."""

from __future__ import annotations

from .window import Window


def count_change(window: Window) -> float:
    """Mean difference of the number of objects from the frame before and the one after; 0 without neighbours."""
    counts = [abs(len(window.now.objects) - len(look.objects)) for look in window.neighbours]
    return sum(counts) / len(counts) if counts else 0.0
