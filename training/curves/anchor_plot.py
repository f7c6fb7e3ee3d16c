"""Anchors over training: how far each has moved, and its shape at the beginning and at the end."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ptedge.figures import COLOURS, GREY, new_figure, save

from .drawing import draw_series, legend_of_runs, mark_trips, relative
from .read import Curves, FloatArray, Series

MOST_RUNS = 6
MOST_NAMED = 15
ANCHOR_COLOURS = (*COLOURS, "#9A8B00", "#8C6BB1")  # nine anchors are the rule


def plot_anchors(runs: Sequence[Curves], out: Path) -> Path | None:
    """One row a run: change of widths, change of heights, shapes at start and end.

    Args:
        runs: at most ``MOST_RUNS`` are drawn.
        out: PNG to write.

    Returns:
        ``out``, or ``None`` when no run logged anchors.
    """
    shown = [(run, *run.anchors()) for run in runs]
    shown = [(run, steps, shapes) for run, steps, shapes in shown if len(steps)][:MOST_RUNS]
    if not shown:
        return None
    title = f"Anchors: {shown[0][0].name}" if len(runs) == 1 else f"Anchors: {len(shown)} runs"
    subtitle = "one colour an anchor; shapes are drawn around one centre, dashed at the start, full at the end"
    with new_figure(13.5, 0.95 + 3.5 * len(shown), title, subtitle) as figure:
        axes = figure.subplots(len(shown), 3, squeeze=False, width_ratios=(1, 1, 0.95))
        for row, (run, steps, shapes) in zip(axes, shown, strict=True):
            prefix = f"{run.name}: " if len(runs) > 1 else ""
            for side, name, ax in ((0, "width", row[0]), (1, "height", row[1])):
                for a in range(shapes.shape[1]):
                    draw_series(ax, Series(steps, relative(shapes[:, a, side])), _colour(a), _style(a))
                ax.axhline(0, color=GREY, linewidth=0.8)
                ax.set_title(f"{prefix}change of {name}" if prefix and side == 0 else f"Change of {name}")
                ax.set_ylabel("% of the start")
                ax.set_xlabel("optimiser steps")
                ax.set_xlim(0, max(float(steps[-1]) * 1.01, 1))
                ax.locator_params(axis="x", integer=True, nbins=6)
                most = max(abs(v) for v in (*ax.get_ylim(), 1.0))
                ax.set_ylim(-most, most)
                mark_trips(ax, [run])
            _draw_shapes(row[2], shapes)
        if len(runs) == 1:
            legend_of_runs(figure, [shown[0][0]])
        return save(figure, out)


def _draw_shapes(ax: Any, shapes: FloatArray) -> None:
    from matplotlib.patches import Rectangle

    handles = []
    for a in range(shapes.shape[1]):
        for (width, height), style, strength in ((shapes[0, a], "--", 0.65), (shapes[-1, a], "-", 1.0)):
            corner = (-width / 2, -height / 2)
            box = Rectangle(corner, width, height, fill=False, edgecolor=_colour(a), linestyle=style, alpha=strength)
            box.set_linewidth(1.5 if style == "-" else 1.0)
            ax.add_patch(box)
        (width, height), (end_width, end_height) = shapes[0, a], shapes[-1, a]
        box.set_label(f"{width:.0f} x {height:.0f} to {end_width:.0f} x {end_height:.0f}")
        handles.append(box)
    reach = float(np.max(shapes)) / 2 * 1.08
    ax.set_xlim(-reach, reach)
    ax.set_ylim(reach, -reach)
    ax.set_aspect("equal")
    ax.set_title("Shapes, width x height")
    ax.set_xlabel("input pixels")
    if len(handles) <= MOST_NAMED:
        ax.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.02, 1.0), borderaxespad=0, fontsize=8)


def _colour(anchor: int) -> str:
    return ANCHOR_COLOURS[anchor % len(ANCHOR_COLOURS)]


def _style(anchor: int) -> str:
    return "-" if anchor < len(ANCHOR_COLOURS) else "--"
