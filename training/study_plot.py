"""Plots of a study: every variant with its seeds, and AP over thresholds and over tau beside PT, as in the paper."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .drawing import COLOURS, new_figure, save

NUMBER = re.compile(r"(?<![\d.])(\d*\.\d+|\d+)(?![\d.])")
REFERENCES = (("source only", "#6b6b6b"), ("oracle", "#009E73"))
Groups = dict[str, list[float]]


def plot_study(results: Sequence[Mapping[str, Any]], out: Path) -> list[Path]:
    """Draw the results of a study.

    Args:
        results: one row a run with ``variant``, ``seed`` and the AP50 (in 0..1) of the last and, where it was taken,
            the chosen checkpoint: ``AP50``, or ``last`` and ``chosen`` with ``AP50`` inside. Rows without any AP50
            (failed, not yet run) are passed over.
        out: folder for the PNG files.

    Returns:
        The files written: ``study.png``; ``thresholds.png`` where the study varies a threshold or tau.
    """
    last, chosen = _groups(results, "last"), _groups(results, "chosen")
    if not last:
        return []
    files = [_plot_table(last, chosen, out / "study.png")]
    sweeps = _plot_sweeps(last, out / "thresholds.png")
    return files if sweeps is None else [*files, sweeps]


def ap_of(row: Mapping[str, Any], which: str) -> float | None:
    """AP50 of a row in percent.

    Args:
        row: of a study.
        which: ``last`` or ``chosen``.
    """
    nested = row.get(which)
    value = nested.get("AP50") if isinstance(nested, Mapping) else nested
    for key in (f"AP50_{which}", f"{which}_AP50", f"ap50_{which}", f"{which}_ap50"):
        value = row.get(key) if value is None else value
    if value is None and which == "last":
        value = row.get("AP50", row.get("ap50"))
        if isinstance(value, Mapping):
            value = value.get("last")
    elif value is None and isinstance(row.get("AP50"), Mapping):
        value = row["AP50"].get(which)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not np.isfinite(value):
        return None
    return 100.0 * float(value)


def sweep_of(variant: str) -> tuple[str, float] | None:
    """What a variant varies, by its name: a score threshold of a mean teacher, or tau.

    Args:
        variant: for example ``mean_teacher_0.7``, ``threshold 0.7 source-free`` or ``tau_0.3``.

    Returns:
        ``threshold`` or ``tau``, and the value; ``None`` for other variants.
    """
    name = variant.lower()
    numbers = NUMBER.findall(name)
    if not numbers:
        return None
    if "tau" in name and not re.search(r"tau_?-?(cls|bbox|box|class)", name):
        return "tau", float(numbers[0])
    if any(word in name for word in ("threshold", "teacher", "mt_", "mt ")):
        return "threshold", float(numbers[0])
    return None


def _groups(results: Sequence[Mapping[str, Any]], which: str) -> Groups:
    groups: Groups = {}
    for row in results:
        value = ap_of(row, which)
        if value is not None:
            groups.setdefault(str(row.get("variant", "?")), []).append(value)
    return groups


def _plot_table(last: Groups, chosen: Groups, out: Path) -> Path:
    names = list(last)
    height = 1.5 + 0.3 * len(names)
    subtitle = "dot: one seed, bar: median" + ("; hollow: the checkpoint chosen without labels" if chosen else "")
    with new_figure(9.0, max(height, 3.0), "AP50 of every variant", subtitle) as figure:
        ax = figure.subplots()
        for y, name in enumerate(names):
            values = last[name]
            shift = 0.14 if name in chosen else 0.0
            ax.plot([min(values), max(values)], [y - shift] * 2, color=COLOURS[0], alpha=0.35, linewidth=3.5)
            ax.plot(values, [y - shift] * len(values), "o", color=COLOURS[0], ms=4.5)
            ax.plot(np.median(values), y - shift, "|", color="black", ms=11, mew=1.8)
            if name in chosen:
                picked = chosen[name]
                ax.plot(picked, [y + shift] * len(picked), "o", color=COLOURS[1], mfc="white", ms=4.5)
                ax.plot(np.median(picked), y + shift, "|", color=COLOURS[1], ms=11, mew=1.8)
        for word, colour in REFERENCES:
            found = [v for name, v in last.items() if _plain(name).startswith(word) and "weak" not in name]
            if found:
                ax.axvline(float(np.median(found[0])), color=colour, linewidth=1.1, linestyle="--", zorder=0.5)
        ax.set_yticks(range(len(names)), names)
        ax.set_ylim(len(names) - 0.4, -0.6)
        ax.set_xlabel("AP50 (%); dashed: medians of source only (grey) and oracle (green)")
        ax.grid(axis="y", visible=False)
        return save(figure, out)


def _plot_sweeps(last: Groups, out: Path) -> Path | None:
    sweeps: dict[tuple[str, str], dict[float, list[float]]] = {}
    for name, values in last.items():
        found = sweep_of(name)
        if found is not None:
            sweeps.setdefault((found[0], _mode(name)), {})[found[1]] = values
    sweeps = {key: points for key, points in sweeps.items() if len(points) > 1}
    if not sweeps:
        return None
    kinds = [kind for kind in ("threshold", "tau") if any(key[0] == kind for key in sweeps)]
    reference = {_mode(name): values for name, values in reversed(last.items()) if _is_pt(name)}
    subtitle = "median of the seeds and their range; spread: highest less lowest median"
    with new_figure(5.4 * max(len(kinds), 1.3), 4.6, "AP50 over threshold and over tau", subtitle) as figure:
        axes = figure.subplots(1, len(kinds), squeeze=False, sharey=True)[0]
        modes = list(dict.fromkeys(mode for _, mode in sweeps))
        for ax, kind in zip(axes, kinds, strict=True):
            for m, mode in enumerate(modes):
                if (kind, mode) in sweeps:
                    _draw_sweep(ax, sweeps[kind, mode], COLOURS[m], mode)
                if mode in reference and kind == "threshold":
                    _draw_reference(ax, reference[mode], COLOURS[m], f"PT{', ' + mode if mode else ''}")
            ax.set_title("Mean teacher over its score threshold" if kind == "threshold" else "PT over tau")
            ax.set_xlabel("score threshold" if kind == "threshold" else "tau")
            ax.set_xticks(sorted({value for key, points in sweeps.items() if key[0] == kind for value in points}))
            ax.margins(x=0.08, y=0.1)
            ax.legend(loc="upper left", bbox_to_anchor=(0, -0.14), borderaxespad=0)
        axes[0].set_ylabel("AP50 (%)")
        for ax in axes[1:]:
            ax.tick_params(labelleft=True)
        return save(figure, out)


def _draw_sweep(ax: Any, points: Mapping[float, Sequence[float]], colour: str, mode: str) -> None:
    x = np.array(sorted(points))
    middle = np.array([np.median(points[value]) for value in x])
    low, high = (np.array([pick(points[value]) for value in x]) for pick in (min, max))
    spread = middle.max() - middle.min()
    label = f"{mode + ': ' if mode else ''}spread {spread:.1f}"
    ax.errorbar(
        x, middle, [middle - low, high - middle], color=colour, marker="o", ms=5, lw=1.8, capsize=3, label=label
    )


def _draw_reference(ax: Any, values: Sequence[float], colour: str, label: str) -> None:
    ax.axhspan(min(values), max(values), color=colour, alpha=0.10, linewidth=0)
    ax.axhline(float(np.median(values)), color=colour, linestyle="--", linewidth=1.5, label=label)


def _plain(name: str) -> str:
    return re.sub(r"[_\-]+", " ", name.lower()).strip()


def _mode(name: str) -> str:
    """Source-free, with source, or nothing where the name does not tell."""
    plain = _plain(name)
    if "source free" in plain or re.search(r"\bsf\b", plain):
        return "source-free"
    return "with source" if "with source" in plain else ""


def _is_pt(name: str) -> bool:
    """PT as it is, with no switch turned."""
    plain = _plain(name)
    for words in ("source free", "with source"):
        plain = plain.replace(words, "")
    return plain.replace("sf", "").strip() in ("pt", "probabilistic teacher")


__all__ = ["ap_of", "plot_study", "sweep_of"]
