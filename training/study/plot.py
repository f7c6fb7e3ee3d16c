"""Plots of a study: every variant with its seeds, and AP over thresholds and over tau beside PT, as in the paper."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..curves.drawing import COLOURS, GREY, new_figure, save

NUMBER = re.compile(r"(?<![\w.])(\d*\.\d+|\d+)(?![\w.])")
MODES = {"adapt": "with source", "source_free": "source-free"}
REFERENCES = (("source only strong", GREY, "source only"), ("oracle", COLOURS[2], "oracle"))
Points = dict[float, list[float]]


def plot_study(results: Sequence[Mapping[str, Any]], out: Path) -> list[Path]:
    """Draw the results of a study.

    Args:
        results: one row a run with ``variant``, ``seed``, ``kind`` and ``AP50`` in 0..1; ``chosen`` and ``best`` with
            an ``AP50`` inside where there are such checkpoints. Rows without AP50 are passed over.
        out: folder for the PNG files.

    Returns:
        The files written: ``study.png``; ``thresholds.png`` where the study varies a threshold or tau.
    """
    rows = [row for row in results if ap_of(row) is not None]
    if not rows:
        return []
    sweeps = _plot_sweeps(rows, out / "thresholds.png")
    return [_plot_table(rows, out / "study.png"), *([sweeps] if sweeps is not None else [])]


def ap_of(row: Mapping[str, Any], which: str = "") -> float | None:
    """AP50 of a row in percent.

    Args:
        row: of a study.
        which: ``chosen`` or ``best``; empty for the last checkpoint.
    """
    place = row.get(which) if which else row
    value = place.get("AP50") if isinstance(place, Mapping) else None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return 100.0 * float(value)


def sweep_of(variant: str) -> tuple[str, float] | None:
    """What a variant varies, by its name: a score threshold of a mean teacher, or tau.

    Args:
        variant: for example ``mean teacher 0.7`` or ``PT, tau 0.3``.

    Returns:
        ``threshold`` or ``tau``, and the value; ``None`` for other variants.
    """
    name = _plain(variant)
    numbers = NUMBER.findall(name)
    if len(numbers) != 1:
        return None
    if re.search(r"\btau\b(?! (cls|bbox|box|class))", name):
        return "tau", float(numbers[0])
    if "threshold" in name or "mean teacher" in name:
        return "threshold", float(numbers[0])
    return None


def _plot_table(rows: Sequence[Mapping[str, Any]], out: Path) -> Path:
    names = list(dict.fromkeys(str(row["variant"]) for row in rows))
    values: dict[str, dict[str, list[float]]] = {}
    for which in ("", "chosen", "best"):
        for row in rows:
            value = ap_of(row, which)
            if value is not None:
                values.setdefault(which, {}).setdefault(str(row["variant"]), []).append(value)
    last, chosen, best = values[""], values.get("chosen", {}), values.get("best", {})
    chosen = {name: found for name, found in chosen.items() if found != last[name]}
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
        for word, colour, label in REFERENCES:
            found = next((last[n] for n in names if _plain(n).startswith(word)), None)
            if found is not None:
                ax.axvline(float(np.median(found)), color=colour, linewidth=1.1, linestyle="--", zorder=0.5)
                told.append(f"{label} ({'grey' if colour == GREY else 'green'})")
        ax.set_yticks(range(len(names)), names)
        ax.set_ylim(len(names) - 0.4, -0.6)
        ax.set_xlabel("AP50 (%)" + (f"; dashed: median of {' and '.join(told)}" if told else ""))
        ax.grid(axis="y", visible=False)
        return save(figure, out)


def _dots(ax: Any, values: list[float], y: float, colour: str, look: dict[str, Any], bar: str) -> None:
    ax.plot(values, [y] * len(values), linestyle="", color=colour, **look)
    ax.plot(np.median(values), y, "|", color=bar, ms=11, mew=1.8)


def _plot_sweeps(rows: Sequence[Mapping[str, Any]], out: Path) -> Path | None:
    sweeps: dict[tuple[str, str], Points] = {}
    reference: dict[str, list[float]] = {}
    for row in rows:
        name, mode, value = str(row["variant"]), MODES.get(str(row.get("kind")), ""), ap_of(row)
        assert value is not None
        found = sweep_of(name)
        if found is not None:
            sweeps.setdefault((found[0], mode), {}).setdefault(found[1], []).append(value)
        elif _is_pt(name):
            reference.setdefault(mode, []).append(value)
    sweeps = {key: points for key, points in sweeps.items() if len(points) > 1}
    kinds = [kind for kind in ("threshold", "tau") if any(key[0] == kind for key in sweeps)]
    if not kinds:
        return None
    modes = list(dict.fromkeys([*(mode for _, mode in sweeps), *reference]))
    subtitle = "median of the seeds and their range; spread: highest less lowest median"
    with new_figure(max(5.4 * len(kinds), 7.0), 4.8, "AP50 over threshold and over tau", subtitle) as figure:
        axes = figure.subplots(1, len(kinds), squeeze=False, sharey=True)[0]
        for ax, kind in zip(axes, kinds, strict=True):
            for mode, colour in zip(modes, COLOURS, strict=False):
                if (kind, mode) in sweeps:
                    _draw_sweep(ax, sweeps[kind, mode], colour, mode)
                if mode in reference:
                    _draw_reference(ax, reference[mode], colour, "PT" + (f", {mode}" if mode else ""))
            ax.set_title("Mean teacher over its score threshold" if kind == "threshold" else "PT over tau")
            ax.set_xlabel("score threshold" if kind == "threshold" else "tau")
            ax.set_xticks(sorted({value for key, points in sweeps.items() if key[0] == kind for value in points}))
            ax.margins(x=0.08, y=0.1)
            ax.tick_params(labelleft=True)
            ax.legend(loc="upper left", bbox_to_anchor=(0, -0.14), borderaxespad=0, ncols=2)
        axes[0].set_ylabel("AP50 (%)")
        return save(figure, out)


def _draw_sweep(ax: Any, points: Points, colour: str, mode: str) -> None:
    x = np.array(sorted(points))
    middle = np.array([np.median(points[value]) for value in x])
    low, high = (np.array([pick(points[value]) for value in x]) for pick in (min, max))
    label = f"{mode + ': ' if mode else ''}spread {middle.max() - middle.min():.1f}"
    ranges = [middle - low, high - middle]
    ax.errorbar(x, middle, ranges, color=colour, marker="o", ms=5, linewidth=1.8, capsize=3, label=label)


def _draw_reference(ax: Any, values: Sequence[float], colour: str, label: str) -> None:
    ax.axhspan(min(values), max(values), color=colour, alpha=0.10, linewidth=0)
    ax.axhline(float(np.median(values)), color=colour, linestyle="--", linewidth=1.5, label=label)


def _plain(name: str) -> str:
    return " ".join(re.sub(r"[_\-,()/]+", " ", name.lower()).split())


def _is_pt(name: str) -> bool:
    """PT as it is, with no switch turned."""
    plain = _plain(name)
    for words in ("source free", "with source"):
        plain = plain.replace(words, "").strip()
    return plain in ("pt", "probabilistic teacher")


__all__ = ["ap_of", "plot_study", "sweep_of"]
