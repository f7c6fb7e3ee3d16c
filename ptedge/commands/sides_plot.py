"""The picture of ``ptedge eval --out``: errors of each side, coverage, and AP with and without the common offset."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptedge.figures import COLOURS, GREY, new_figure, save
from ptedge.scores.evaluation import MATCH_IOU, EvaluationResult
from ptedge.scores.sides import SIDES, SideErrors, relative_errors
from ptedge.scores.sigma_quality import SHARES

AS_IT_IS, REMOVED = COLOURS[0], COLOURS[1]
MANY_DOTS = 400  # from here on dots are pale, as they lie over each other


def plot_sides(result: EvaluationResult, title: str, path: Path) -> Path | None:
    """Draw what ``ptedge eval`` says of the sides.

    Args:
        result: of an evaluation.
        title: of the figure.
        path: PNG to write.

    Returns:
        ``path``, or ``None`` when there is no true positive to draw.

    Raises:
        OutputError: not writable, or the disk is full.
    """
    if not len(result.matches):
        return None
    boxes = len(result.matches)
    subtitle = (
        f"{boxes} true positive{'s' if boxes > 1 else ''} (IoU {MATCH_IOU:g}). "
        "Offset removed: boxes moved by the medians of these same labels, to find the cause; not a score to report"
    )
    with new_figure(13.5, 4.9, title, subtitle) as figure:
        errors, coverage, precision = figure.subplots(1, 3, width_ratios=(2.1, 1, 1))
        _draw_errors(errors, relative_errors(result.matches), result.sides)
        _draw_coverage(coverage, result)
        _draw_precision(precision, result)
        return save(figure, path)


def _draw_errors(ax: Any, errors: NDArray[np.float64], sides: SideErrors) -> None:
    """A row a side, x1 above: dots, the median with the spread around it, and the sigma that the detector gave."""
    assert sides.offset is not None
    rows = np.arange(len(SIDES), dtype=np.float64)
    jitter = np.random.default_rng(0).uniform(-0.26, 0.10, errors.shape)  # that equal errors can be told apart
    alpha = 0.4 if len(errors) < MANY_DOTS else 0.12
    ax.scatter(100 * errors, rows + jitter, s=12, color=AS_IT_IS, alpha=alpha, linewidths=0, label="one box")
    if sides.spread is not None:
        bars = {"linewidth": 3.2, "color": REMOVED, "label": "offset (median) and spread"}
        ax.hlines(rows + 0.2, 100 * (sides.offset - sides.spread), 100 * (sides.offset + sides.spread), **bars)
    if sides.sigma is not None:
        bars = {"linewidth": 3.2, "color": GREY, "label": "sigma, around the offset"}
        ax.hlines(rows + 0.32, 100 * (sides.offset - sides.sigma), 100 * (sides.offset + sides.sigma), **bars)
    label = "offset (median)" if sides.spread is None else None  # else the bar's label names it
    ax.plot(100 * sides.offset, rows + 0.2, "D", color=REMOVED, ms=6, markeredgecolor="white", label=label)
    for row, offset in zip(rows, sides.offset, strict=True):
        ax.annotate(f"{100 * offset:+.1f} %", (1.0, row), xycoords=("axes fraction", "data"), ha="right", va="center")
    ax.axvline(0, color="black", linewidth=0.9)
    widest = 1.08 * float(np.abs(100 * errors).max())
    ax.set_xlim(-max(widest, 1.0), 1.25 * max(widest, 1.0))  # room for the numbers at the right
    ax.set_yticks(rows, SIDES)
    ax.set_ylim(len(SIDES) - 0.5, -0.5)
    ax.grid(axis="y", visible=False)
    ax.set_title("Detected minus labelled")
    ax.set_xlabel("% of the box's width (x) or height (y); right and down are positive")
    ax.legend(loc="upper left", bbox_to_anchor=(0, -0.13), borderaxespad=0, ncols=3)


def _draw_coverage(ax: Any, result: EvaluationResult) -> None:
    names = [f"coverage_{share}" for share in SHARES]
    ax.set_title("Sides within their interval")
    if result.sigma.coverage_50 is None:
        ax.text(0.5, 0.5, "this model gives no sigma", ha="center", va="center", color=GREY, transform=ax.transAxes)
        ax.set_axis_off()
        return
    told = result.sigma.to_json()
    ax.plot([0, 100], [0, 100], color="black", linewidth=0.9, label="a true sigma")
    for values, colour, label in ((told, AS_IT_IS, "as it is"), (result.offset_removed.coverage, REMOVED, "removed")):
        within = [100 * float(values[name] or 0.0) for name in names]
        ax.plot(SHARES, within, "o-", color=colour, linewidth=1.8, ms=5, label=label)
    ax.set_xlim(40, 100)
    ax.set_ylim(0, 100)
    ax.set_xticks(SHARES)
    ax.set_xlabel("interval, % of a Gaussian of that sigma")
    ax.set_ylabel("% of the sides in it")
    ax.legend(loc="upper left", bbox_to_anchor=(0, -0.13), borderaxespad=0, ncols=3, columnspacing=1.0)


def _draw_precision(ax: Any, result: EvaluationResult) -> None:
    names = ("AP50", "AP75", "AP")
    before, after = result.metrics.to_json(), result.offset_removed.to_json()
    for shift, values, colour, label in ((-0.2, before, AS_IT_IS, "as it is"), (0.2, after, REMOVED, "offset removed")):
        heights = [float(values[name] or 0.0) for name in names]
        bars = ax.bar(np.arange(len(names)) + shift, heights, 0.37, color=colour, label=label)
        ax.bar_label(bars, fmt="%.3f", padding=2, fontsize=8.5)
    ax.set_xticks(range(len(names)), names)
    ax.set_ylim(0, 1.08)
    ax.grid(axis="x", visible=False)
    ax.set_title("Average precision")
    ax.legend(loc="upper left", bbox_to_anchor=(0, -0.13), borderaxespad=0, ncols=2)
