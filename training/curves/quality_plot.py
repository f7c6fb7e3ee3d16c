"""Score against IoU and sigma against IoU, as in the paper's figures: does what the detector says rank its boxes?"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ptedge.figures import COLOURS, GREY, new_figure, save

from .quality import LEAST_IOU, QualityPairs
from .read import FloatArray

BINS = np.linspace(LEAST_IOU, 1.0, 10)  # a tenth wide
LEAST_IN_BIN = 3


def plot_quality(models: Sequence[tuple[str, QualityPairs]], out: Path) -> Path | None:
    """Scatter, and medians with quartiles over tenths of IoU.

    Args:
        models: name and pairs of each.
        out: PNG to write.

    Returns:
        ``out``, or ``None`` when there are no pairs.
    """
    models = [(name, pairs) for name, pairs in models if len(pairs)]
    if not models:
        return None
    name, pairs = models[0]
    counts = "; ".join(f"{name + ': ' if len(models) > 1 else ''}{len(p)} boxes" for name, p in models[:3])
    subtitle = (
        f"labelled data, used for this figure only. {counts} with IoU of at least {LEAST_IOU:g}"
        + (f"; {pairs.elsewhere} show no labelled object" if len(models) == 1 else "")
        + ". Line: median, band: quartiles"
    )
    title = f"What tells a good box: {name}" if len(models) == 1 else f"What tells a good box: {len(models)} runs"
    with_sigma = any(p.sigma.any() for _, p in models)
    with new_figure(11 if with_sigma else 6.5, 5.0, title, subtitle) as figure:
        axes = figure.subplots(1, 2 if with_sigma else 1, squeeze=False)[0]
        _draw(axes[0], models, lambda p: p.score, lambda p: p.rank_score, "score")
        axes[0].set_title("Score against IoU")
        axes[0].set_ylabel("score")
        axes[0].set_ylim(0, 1.02)
        if with_sigma:
            _draw(axes[1], models, lambda p: 100 * p.sigma, lambda p: p.rank_sigma, "sigma")
            axes[1].set_title("Sigma against IoU")
            axes[1].set_ylabel("mean sigma of the sides, % of √area")
            top = max(float(np.quantile(100 * p.sigma, 0.995)) for _, p in models if p.sigma.any())
            axes[1].set_ylim(0, top * 1.08)
        return save(figure, out)


def _draw(
    ax: Any,
    models: Sequence[tuple[str, QualityPairs]],
    values_of: Callable[[QualityPairs], FloatArray],
    rank_of: Callable[[QualityPairs], float | None],
    what: str,
) -> None:
    from matplotlib.lines import Line2D

    handles = []
    for m, (name, pairs) in enumerate(models):
        colour, values = COLOURS[m % len(COLOURS)], values_of(pairs)
        dots = {"s": 11, "alpha": 0.35 if len(pairs) < 1000 else 0.12, "linewidths": 0}
        ax.scatter(pairs.iou, values, color=colour, **dots)
        centres, low, middle, high = _binned(pairs.iou, values)
        ax.fill_between(centres, low, high, color=colour, alpha=0.16, linewidth=0)
        ax.plot(centres, middle, color=colour, linewidth=2, marker="o", ms=4)
        rank = rank_of(pairs)
        told = "not defined" if rank is None else f"{rank:+.2f}"
        label = f"{name + ': ' if len(models) > 1 else ''}Spearman of {what} and IoU {told}"
        handles.append(Line2D([], [], color=colour, linewidth=2, marker="o", ms=4, label=label))
    ax.set_xlim(LEAST_IOU, 1.0)
    ax.set_xlabel("IoU with the labelled box")
    ax.axvline(0.5, color=GREY, linewidth=0.8, linestyle=":")
    ax.legend(handles=handles, loc="upper left", bbox_to_anchor=(0, -0.13), borderaxespad=0)


def _binned(iou: FloatArray, values: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Centre, lower quartile, median and upper quartile of each tenth of IoU with enough boxes."""
    rows = []
    for a, b in itertools.pairwise(BINS):
        own = values[(iou >= a) & ((iou < b) | (b == 1.0))]
        if len(own) >= LEAST_IN_BIN:
            rows.append(((a + b) / 2, *np.quantile(own, (0.25, 0.5, 0.75))))
    table = np.array(rows, np.float64).reshape(-1, 4)
    return table[:, 0], table[:, 1], table[:, 2], table[:, 3]
