"""Compare two reports of ``ptedge benchmark``: ratios, whether they exceed the noise, and what else changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from .document import Report, Run
from .stats import Ratio, ratio

COMPARISON = "ptedge.benchmark.comparison/1"
RATE = "images_per_second"
# of a run; how it was measured rather than what came out
ABOUT = ("model_hash", "precision", "input_size", "batch", "backend", "engine", "launch", "memory", "slots")
VOLATILE = {"load"}  # of the environment


def compare(old: Report, new: Report) -> dict[str, Any]:
    """What changed from one report to another.

    Runs of the same name are compared; where each report holds one run, those are, whatever their names.

    Args:
        old: report.
        new: report.

    Returns:
        ``pairs`` (of each: names, and by value ``old``, ``new``, ``ratio``, its interval and a verdict), ``only_old``,
        ``only_new``, ``differs`` (what else is not the same), ``warnings``.
    """
    before, after = ({run.name: run for run in report.runs} for report in (old, new))
    names = [(name, name) for name in before if name in after]
    if not names and len(before) == len(after) == 1:
        names = [(next(iter(before)), next(iter(after)))]
    differs = _differences(_surroundings(old), _surroundings(new))
    for old_name, new_name in names:
        prefix = f"{new_name}: " if len(names) > 1 else ""
        about = [
            {f"{prefix}{key}": _plain(getattr(run, key)) for key in ABOUT}
            for run in (before[old_name], after[new_name])
        ]
        differs += _differences(*about)
    return {
        "schema": COMPARISON,
        "old": old.created,
        "new": new.created,
        "pairs": [_pair(before[old_name], after[new_name]) for old_name, new_name in names],
        "only_old": [name for name in before if name not in {pair[0] for pair in names}],
        "only_new": [name for name in after if name not in {pair[1] for pair in names}],
        "differs": differs,
        "warnings": _warnings(old, new, names, differs),
    }


def verdict(value: Ratio, *, more_is_faster: bool = False) -> str:
    """The ratio in a word: faster, slower, no difference beyond noise, or too few rounds to tell.

    Args:
        value: new by old.
        more_is_faster: it is of rates, not of times.
    """
    if value.differs is None:
        return "too few rounds to tell"
    if not value.differs:
        return "no difference beyond noise"
    return "faster" if (value.value > 1) == more_is_faster else "slower"


def _pair(old: Run, new: Run) -> dict[str, Any]:
    """Two runs; times are of a call, or of an image where the calls are of different batches."""
    same = old.batch == new.batch
    series: dict[str, tuple[list[float], list[float]]] = {}
    for stage in old.latency_ms:
        parts = [[r.median_ms.get(stage, 0.0) for r in run.per_round] for run in (old, new)]
        if min(*parts[0], *parts[1]) > 0:
            scale = (1, 1) if same else (old.batch, new.batch)
            series[stage] = ([v / scale[0] for v in parts[0]], [v / scale[1] for v in parts[1]])
    rates = [[r.images_per_second for r in run.per_round] for run in (old, new)]
    if min(*rates[0], *rates[1]) > 0:
        series[RATE] = (rates[0], rates[1])
    values = {}
    for name, (first, second) in series.items():
        found = ratio(first, second)
        values[name] = {"old": _middle(first), "new": _middle(second)} | found.to_json()
        values[name]["verdict"] = verdict(found, more_is_faster=name == RATE)
    return {"old": old.name, "new": new.name, "per": "call" if same else "image", "values": values}


def _surroundings(report: Report) -> dict[str, Any]:
    """The environment and the frames as flat names and values, without what changes from minute to minute."""
    flat: dict[str, Any] = {}
    for name, value in asdict(report.environment).items():
        if isinstance(value, Mapping):
            prefix = "" if name == "versions" else f"{name} "
            flat |= {f"{prefix}{key}": inner for key, inner in value.items()}
        elif value is not None and name not in VOLATILE:
            flat[name] = value
    frames, (height, width) = report.frames, report.frames.size
    return flat | {"frames": f"{frames.source}, {frames.count} of {width}x{height}"}


def _differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[dict[str, Any]]:
    names = [*old, *(name for name in new if name not in old)]
    return [
        {"what": name, "old": old.get(name), "new": new.get(name)} for name in names if old.get(name) != new.get(name)
    ]


def _warnings(old: Report, new: Report, names: list[tuple[str, str]], differs: list[dict[str, Any]]) -> list[str]:
    found = []
    if not names:
        found.append("no run of one report is in the other: nothing is compared")
    own = set(_surroundings(old)) | set(_surroundings(new))
    machine = [entry["what"] for entry in differs if entry["what"] in own]
    if machine:
        found.append(f"not measured alike ({', '.join(machine)}): the ratios are not of the model alone")
    for title, report in (("old", old), ("new", new)):
        noisy = [*report.warnings, *(f"{run.name}: {w}" for run in report.runs for w in run.warnings)]
        found += [f"{title}: {text}" for text in noisy]
    return found


def _plain(value: Any) -> Any:
    """A value as JSON has it."""
    return list(value) if isinstance(value, tuple) else value


def _middle(values: list[float]) -> float:
    ranked = sorted(values)
    half = len(ranked) // 2
    middle = ranked[half] if len(ranked) % 2 else (ranked[half - 1] + ranked[half]) / 2
    return float(f"{middle:.6g}")
