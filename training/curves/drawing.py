"""How plots of training look: panels over steps, one colour a run, guards' trips as marks, legends off the data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np

from ptedge.errors import PtedgeError
from ptedge.figures import COLOURS, GREY, NO_MATPLOTLIB, can_draw, new_figure, save

from .read import Curves, Series, running_median

STYLES = ("-", "--", ":", "-.")
TRIP = "#B00020"
TRIP_STYLE = (0, (4, 3))
MOST_NAMED = 5  # trips of guards
MANY_POINTS = 60  # from here on single values are pale and a running median carries the eye


@dataclass(frozen=True)
class Line:
    """One number of a panel.

    Attributes:
        key: as logged.
        label: for the legend; empty when the panel has one number only.
    """

    key: str
    label: str = ""


@dataclass(frozen=True)
class Panel:
    """One small plot over steps.

    Attributes:
        title: what it shows.
        unit: of the y axis.
        lines: numbers in it.
        low: lower end of the y axis; ``None`` leaves it to the data.
        high: upper end.
        log: logarithmic y axis.
    """

    title: str
    unit: str
    lines: tuple[Line, ...]
    low: float | None = None
    high: float | None = None
    log: bool = False


def draw_safely(draw: Callable[[Path], list[Path]], folder: Path) -> list[Path]:
    """Draw after a run: whatever goes wrong is said in one line, and the run's result stands.

    Args:
        draw: writes PNG files into a folder.
        folder: that one.

    Returns:
        The files written.
    """
    if not can_draw():
        click.echo(NO_MATPLOTLIB, err=True)
        return []
    try:
        return draw(folder)
    except Exception as error:  # a picture is never worth a finished training
        reason = str(error) if isinstance(error, (PtedgeError, OSError)) else f"{type(error).__name__}: {error}"
        click.echo(f"no plots in {folder}: {reason}", err=True)
        return []


def draw_panels(
    runs: Sequence[Curves], panels: Sequence[Panel], title: str, subtitle: str, out: Path, columns: int = 2
) -> Path | None:
    """Panels over steps, one colour a run; panels without data are left out.

    Args:
        runs: to overlay.
        panels: in reading order.
        title: of the figure.
        subtitle: what to look for.
        out: PNG to write.
        columns: panels a row at most.

    Returns:
        ``out``, or ``None`` when there is nothing to show.
    """
    panels = [panel for panel in panels if any(len(run.series(line.key)) for run in runs for line in panel.lines)]
    if not panels:
        return None
    columns = min(columns, len(panels))
    rows = -(-len(panels) // columns)
    width = 5.2 * columns if columns > 1 else 7.5
    with new_figure(width, 0.95 + 2.55 * rows, title, subtitle) as figure:
        axes = figure.subplots(rows, columns, squeeze=False)
        last = max(line["step"] for run in runs for line in run.lines)
        for i, ax in enumerate(axes.flat):
            if i >= len(panels):
                ax.remove()
                continue
            _draw_panel(ax, runs, panels[i])
            ax.set_xlim(0, last * 1.01 if last > 0 else 1)
            if i + columns >= len(panels):
                ax.set_xlabel("optimiser steps")
        legend_of_runs(figure, runs)
        return save(figure, out)


def _draw_panel(ax: Any, runs: Sequence[Curves], panel: Panel) -> None:
    lines = [line for line in panel.lines if any(len(run.series(line.key)) for run in runs)]
    for r, run in enumerate(runs):
        for n, line in enumerate(lines):
            colour = COLOURS[(r if len(runs) > 1 else n) % len(COLOURS)]
            style = STYLES[n % len(STYLES)] if len(runs) > 1 else "-"
            draw_series(ax, run.series(line.key), colour, style)
    ax.set_title(panel.title)
    ax.set_ylabel(panel.unit)
    _scale(ax, panel)
    mark_trips(ax, runs)
    if len(lines) > 1 and len(runs) > 1:
        _legend(ax, [_handle(GREY, STYLES[n % len(STYLES)], line.label) for n, line in enumerate(lines)])
    elif len(lines) > 1:
        _legend(ax, [_handle(COLOURS[n % len(COLOURS)], "-", line.label) for n, line in enumerate(lines)])


def _legend(ax: Any, handles: list[Any]) -> None:
    """On the title's line at the right: it covers neither data nor title."""
    ax.legend(
        handles=handles,
        loc="lower right",
        bbox_to_anchor=(1.0, 0.985),
        ncols=len(handles),
        borderpad=0,
        borderaxespad=0.1,
        handlelength=1.4,
        columnspacing=0.9,
    )


def draw_series(ax: Any, series: Series, colour: str, style: str = "-", width: float = 1.6) -> None:
    """One line; with many points the values are pale and a running median carries the eye."""
    if len(series) > MANY_POINTS:
        ax.plot(series.steps, series.values, color=colour, alpha=0.22, linewidth=0.8)
        smooth = running_median(series.values, len(series) // 20)
        ax.plot(series.steps, smooth, color=colour, linestyle=style, linewidth=width + 0.2)
    else:
        marker = "o" if len(series) <= 25 else None
        ax.plot(series.steps, series.values, color=colour, linestyle=style, linewidth=width, marker=marker, ms=3)


def mark_trips(ax: Any, runs: Sequence[Curves]) -> None:
    """A dashed line at each trip of a guard; of one run, numbered as in the figure's legend."""
    for r, run in enumerate(runs):
        colour = TRIP if len(runs) == 1 else COLOURS[r % len(COLOURS)]
        for number, trip in enumerate(run.trips, start=1):
            ax.axvline(trip.step, color=colour, linestyle=TRIP_STYLE, linewidth=1.0, zorder=1.5)
            if len(runs) == 1 and number <= MOST_NAMED:
                place = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points"}
                ax.annotate(str(number), (trip.step, 1.0), (2, -1), va="top", fontsize=8, color=TRIP, **place)


def _scale(ax: Any, panel: Panel) -> None:
    """Plain numbers on both axes: no powers of ten beside or above them, no halves of a step."""
    from matplotlib.ticker import FuncFormatter, LogFormatter, MaxNLocator

    ax.xaxis.set_major_locator(MaxNLocator(6, integer=True, steps=(1, 2, 2.5, 5, 10)))
    if panel.log:
        ax.set_yscale("log")
        ax.yaxis.set_major_formatter(LogFormatter())
        ax.yaxis.set_minor_formatter(LogFormatter(minor_thresholds=(1.0, 0.4)))
    else:
        ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.6g}"))
        _limits(ax, panel)


def _limits(ax: Any, panel: Panel) -> None:
    ax.margins(y=0.08)
    low, high = ax.get_ylim()
    if panel.low is not None and (panel.high is not None or ax.dataLim.y0 >= panel.low):
        low = panel.low
    if panel.high is not None:
        high = panel.high
    ax.set_ylim(low, high if high > low else low + 1)


def legend_of_runs(figure: Any, runs: Sequence[Curves]) -> None:
    """Below all panels: the runs' colours, and what tripped when."""
    handles = []
    if len(runs) > 1:
        handles = [_handle(COLOURS[r % len(COLOURS)], "-", run.name) for r, run in enumerate(runs)]
        if any(run.trips for run in runs):
            handles.append(_handle(GREY, TRIP_STYLE, "a guard tripped"))
    else:
        for number, trip in enumerate(runs[0].trips[:MOST_NAMED], start=1):
            handles.append(_handle(TRIP, TRIP_STYLE, f"guard {number}: step {trip.step}, {trip.text}"))
        if len(runs[0].trips) > MOST_NAMED:
            handles.append(_handle(TRIP, TRIP_STYLE, f"and {len(runs[0].trips) - MOST_NAMED} more"))
    if handles:
        figure.legend(handles=handles, loc="outside lower left", ncols=min(4 if len(runs) > 1 else 2, len(handles)))


def _handle(colour: str, style: Any, label: str) -> Any:
    from matplotlib.lines import Line2D

    return Line2D([], [], color=colour, linestyle=style, linewidth=1.8, label=label)


def relative(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Change against the first value, in percent."""
    change: np.ndarray[Any, Any] = 100.0 * (values / values[0] - 1.0)
    return change
