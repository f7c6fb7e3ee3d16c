"""The picture of accuracy over time: every row that was timed and scored, and the line of the best."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ptedge.figures import COLOURS, GREY, new_figure, save

from ..plot import KIND_COLOURS, KIND_NAMES
from .table import SpeedRow

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_speed(rows: Sequence[SpeedRow], title: str, threads: int, out: Path) -> list[Path]:
    """Draw AP50 over milliseconds an image.

    Args:
        rows: of :func:`~ptedge.training.study.timing.table.speed_rows`, fastest first.
        title: of the study.
        threads: that were used.
        out: folder for ``speed.png``.

    Returns:
        The files written; none where no row has an AP.
    """
    scored = [row for row in rows if row.results]
    if not scored:
        return []
    subtitle = f"one image, CPU, {threads} thread(s), one run; bars: range over seeds; line: no row as fast is better"
    with new_figure(8.5, 5.2, f"{title}: accuracy over time", subtitle) as figure:
        ax = figure.subplots()
        for kind in dict.fromkeys(row.results[0].kind for row in scored):
            own = [row for row in scored if row.results[0].kind == kind]
            low = [row.ap50 - 100 * min(one.last.ap50 for one in row.results) for row in own]
            high = [100 * max(one.last.ap50 for one in row.results) - row.ap50 for row in own]
            ax.errorbar(
                [row.speed.ms for row in own],
                [row.ap50 for row in own],
                [low, high],
                fmt="o",
                capsize=3,
                color=KIND_COLOURS.get(kind, COLOURS[-1]),
                label=KIND_NAMES.get(kind, kind),
            )
        best = [row for row in scored if row.best]
        ax.step([row.speed.ms for row in best], [row.ap50 for row in best], where="post", color=GREY, linewidth=1.2)
        for row in best:
            ax.annotate(row.name, (row.speed.ms, row.ap50), (4, 5), textcoords="offset points", fontsize=8)
        _draw_others(ax, rows)
        _space_by_factors(ax)
        ax.set_xlabel("ms an image")
        ax.set_ylabel("AP50 (%)")
        ax.legend(loc="lower right")
        return [save(figure, out / "speed.png")]


def _draw_others(ax: Axes, rows: Sequence[SpeedRow]) -> None:
    """Lines at the times of graphs that have no AP here."""
    for row in rows:
        if row.speed.kind == "other":
            ax.axvline(row.speed.ms, color=GREY, linestyle=":", linewidth=1.2)
            ax.annotate(
                row.name,
                (row.speed.ms, 0.02),
                (3, 0),
                xycoords=("data", "axes fraction"),
                textcoords="offset points",
                rotation=90,
                fontsize=8,
                color=GREY,
            )


def _space_by_factors(ax: Axes) -> None:
    """Detectors differ by factors, and most are among the fast ones."""
    from matplotlib.ticker import FormatStrFormatter, LogLocator, NullFormatter

    ax.set_xscale("log")
    ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.xaxis.set_major_formatter(FormatStrFormatter("%g"))
    ax.xaxis.set_minor_formatter(NullFormatter())
