"""Plots of a study: every variant with its seeds, and AP50 over each axis that its rows declare."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from ptedge.figures import COLOURS, GREY, new_figure, save

from ..curves.drawing import STYLES, draw_safely
from .result import Result

KIND_NAMES = {"adapt": "with source", "source_free": "source-free", "train": "trained on source", "oracle": "oracle"}
KIND_COLOURS = dict(zip(("source_free", "adapt", "train", "oracle"), COLOURS, strict=False))
REFERENCES = (("source", GREY, "grey"), ("oracle", COLOURS[2], "green"))  # role, colour, its name
MOST_COLUMNS = 3
NO_SWEEP = (
    'no sweeps.png: no row says where it stands in a sweep. Add for example sweep = {axis = "tau", value = 0.25} to '
    "rows of the study's file and give ptedge study again; finished runs are kept"
)
Curve = dict[float, list[float]]  # value on the axis -> AP50 of each seed, per cent


def plot_study(results: Sequence[Result], out: Path) -> list[Path]:
    """Draw the results of a study; that there is no sweep to draw is said on stderr.

    Args:
        results: of finished runs.
        out: folder for the PNG files.

    Returns:
        The files written: ``study.png``; ``sweeps.png`` where rows declare a sweep.
    """
    if not results:
        return []
    files = [_plot_variants(results, out / "study.png")]
    curves = curves_of(results)
    if curves:
        files.append(_plot_sweeps(results, curves, out / "sweeps.png"))
    else:
        click.echo(NO_SWEEP, err=True)
    return files


def plot_study_safely(results: Sequence[Result], out: Path) -> list[Path]:
    """:func:`plot_study` for the end of a study, which stands whatever goes wrong with its pictures."""
    return draw_safely(lambda folder: plot_study(results, folder), out)


def curves_of(results: Sequence[Result]) -> dict[str, dict[str, Curve]]:
    """The points of every sweep, as rows declare them.

    Args:
        results: of finished runs. Those of one variant, one a seed, share its points.

    Returns:
        Axis -> kind -> value -> AP50 of each seed in per cent, in the order of the results.
    """
    curves: dict[str, dict[str, Curve]] = {}
    for result in results:
        for sweep in result.sweep:
            curve = curves.setdefault(sweep.axis, {}).setdefault(result.kind, {})
            curve.setdefault(sweep.value, []).append(100 * result.last.ap50)
    return curves


def _by_variant(results: Sequence[Result], value: Callable[[Result], float | None]) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for result in results:
        share = value(result)
        if share is not None:
            found.setdefault(result.variant, []).append(100 * share)
    return found


def _with_role(results: Sequence[Result], role: str) -> list[Result]:
    return [result for result in results if role in result.roles]


def _plot_variants(results: Sequence[Result], out: Path) -> Path:
    last = _by_variant(results, lambda result: result.last.ap50)
    chosen = _by_variant(results, lambda result: result.chosen.ap50)
    chosen = {name: found for name, found in chosen.items() if found != last[name]}
    best = _by_variant(results, lambda result: result.best.ap50 if result.best else None)
    names = list(last)
    subtitle = "dot: last checkpoint of one seed, bar: median"
    subtitle += "; ring: chosen without labels, where it is another" if chosen else ""
    subtitle += "; cross: best by target labels" if best else ""
    with new_figure(9.5, max(1.5 + 0.32 * len(names), 3.0), "AP50 of every variant", subtitle) as figure:
        ax = figure.subplots()
        for y, name in enumerate(names):
            shift = 0.15 if name in chosen else 0.0
            ax.plot([min(last[name]), max(last[name])], [y - shift] * 2, color=COLOURS[0], alpha=0.35, linewidth=3.5)
            _dots(ax, last[name], y - shift, COLOURS[0], {"marker": "o", "ms": 4.5}, "black")
            if name in chosen:
                _dots(ax, chosen[name], y + shift, COLOURS[1], {"marker": "o", "mfc": "white", "ms": 4.5}, COLOURS[1])
            ax.plot(best.get(name, []), [y] * len(best.get(name, [])), "x", color=COLOURS[3], ms=5)
        told = []
        for role, colour, colour_name in REFERENCES:
            for name, found in _by_variant(_with_role(results, role), lambda result: result.last.ap50).items():
                ax.axvline(float(np.median(found)), color=colour, linewidth=1.1, linestyle="--", zorder=0.5)
                told.append(f"{name} ({colour_name})")
        ax.set_yticks(range(len(names)), names)
        ax.set_ylim(len(names) - 0.4, -0.6)
        ax.set_xlabel("AP50 (%)" + (f"; dashed: median of {' and '.join(told)}" if told else ""))
        ax.grid(axis="y", visible=False)
        return save(figure, out)


def _dots(ax: Any, values: list[float], y: float, colour: str, look: dict[str, Any], bar: str) -> None:
    ax.plot(values, [y] * len(values), linestyle="", color=colour, **look)
    ax.plot(np.median(values), y, "|", color=bar, ms=11, mew=1.8)


def _plot_sweeps(results: Sequence[Result], curves: dict[str, dict[str, Curve]], out: Path) -> Path:
    columns = min(len(curves), MOST_COLUMNS)
    rows = -(-len(curves) // columns)
    title = f"AP50 over {', '.join(curves)}" if len(curves) <= MOST_COLUMNS else "AP50 over every sweep"
    subtitle = "median of the seeds and their range; spread: highest less lowest median"
    beside = _with_role(results, "beside")
    with new_figure(max(4.6 * columns, 7.0), 0.6 + 4.2 * rows, title, subtitle) as figure:
        axes = figure.subplots(rows, columns, squeeze=False, sharey=True)
        for ax in axes.flat[len(curves) :]:
            ax.remove()
        for ax, (axis, kinds) in zip(axes.flat, curves.items(), strict=False):
            for kind, curve in kinds.items():
                _draw_curve(ax, curve, kind)
            _draw_beside(ax, beside)
            ax.set_xlabel(axis)
            ax.set_xticks(sorted({value for curve in kinds.values() for value in curve}))
            ax.margins(x=0.08, y=0.1)
            ax.tick_params(labelleft=True)
            ax.legend(loc="upper left", bbox_to_anchor=(0, -0.14), borderaxespad=0)
        for ax in axes[:, 0]:
            ax.set_ylabel("AP50 (%)")
        return save(figure, out)


def _draw_curve(ax: Any, curve: Curve, kind: str) -> None:
    x = np.array(sorted(curve))
    middle = np.array([np.median(curve[value]) for value in x])
    low, high = (np.array([pick(curve[value]) for value in x]) for pick in (min, max))
    label = KIND_NAMES.get(kind, kind) + (f": spread {middle.max() - middle.min():.1f}" if len(x) > 1 else "")
    look = {"color": KIND_COLOURS.get(kind, COLOURS[-1]), "marker": "o", "ms": 5, "linewidth": 1.8, "capsize": 3}
    ax.errorbar(x, middle, np.stack([middle - low, high - middle]), label=label, **look)


def _draw_beside(ax: Any, results: Sequence[Result]) -> None:
    """One dashed line a row, in the colour of its kind; further rows of a kind have other dashes."""
    seen: dict[str, int] = {}
    for name, values in _by_variant(results, lambda result: result.last.ap50).items():
        kind = next(result.kind for result in results if result.variant == name)
        seen[kind] = seen.get(kind, 0) + 1
        colour, style = KIND_COLOURS.get(kind, COLOURS[-1]), STYLES[1 + (seen[kind] - 1) % (len(STYLES) - 1)]
        ax.axhspan(min(values), max(values), color=colour, alpha=0.10, linewidth=0)
        ax.axhline(float(np.median(values)), color=colour, linestyle=style, linewidth=1.5, label=name)
