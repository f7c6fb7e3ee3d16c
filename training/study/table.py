"""The table of a study: medians and ranges over seeds, paired differences, share of the gap, the paper's numbers."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .plan import Row, Study

Line = dict[str, Any]
Scores = Mapping[tuple[str, int], float]  # (row, seed) -> AP50


def spread(values: Sequence[float], digits: int = 1) -> str:
    """Median and range: ``88.5 (87.0 to 89.7)``; one value stands alone; none is a dash."""
    if not values:
        return "-"
    middle = f"{statistics.median(values):.{digits}f}"
    return middle if len(values) == 1 else f"{middle} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def paired_differences(scores: Scores, row: str, baseline: str) -> list[float]:
    """Row minus baseline, for every seed that has both."""
    seeds = [seed for name, seed in scores if name == row and (baseline, seed) in scores]
    return [scores[row, seed] - scores[baseline, seed] for seed in seeds]


def gap_closed(scores: Scores, row: str, source: str, oracle: str) -> list[float]:
    """(row - source) / (oracle - source), for every seed that has all three and an oracle above source only."""
    shares = []
    for name, seed in scores:
        low, high = scores.get((source, seed)), scores.get((oracle, seed))
        if name == row and low is not None and high is not None and high > low:
            shares.append((scores[row, seed] - low) / (high - low))
    return shares


def table(study: Study, lines: Sequence[Line]) -> str:
    """The page table.md.

    Args:
        study: its rows in order, the rows compared with, the paper's numbers.
        lines: of results.jsonl.
    """
    if not lines:
        return f"# {study.title}\n\nNo run is finished.\n"
    last = {(line["variant"], line["seed"]): 100 * line["AP50"] for line in lines}
    columns = _columns(study, lines, last)
    done = {line["variant"] for line in lines}
    body = [[make(row) for make in columns.values()] for row in study.row if row.name in done]
    parts = [f"# {study.title}", _legend(study, lines), _markdown(list(columns), body), _by_seed(study, last)]
    if study.spread:
        parts.append(_spreads(study, lines))
    return "\n\n".join(parts) + "\n"


def _columns(study: Study, lines: Sequence[Line], last: Scores) -> dict[str, Callable[[Row], str]]:
    def of(row: Row, value: Callable[[Line], float]) -> list[float]:
        return [value(line) for line in lines if line["variant"] == row.name]

    columns: dict[str, Callable[[Row], str]] = {
        "row": lambda row: row.name,
        "seeds": lambda row: str(len(of(row, lambda line: line["seed"]))),
        "AP50, last": lambda row: spread(of(row, lambda line: 100 * line["AP50"])),
    }
    if any(line["chosen"]["AP50"] != line["AP50"] for line in lines):
        columns["AP50, chosen"] = lambda row: spread(of(row, lambda line: 100 * line["chosen"]["AP50"]))
    if any("best" in line for line in lines):
        columns["AP50, best by target labels"] = lambda row: spread(
            [100 * line["best"]["AP50"] for line in lines if line["variant"] == row.name and "best" in line]
        )
    columns["AP75"] = lambda row: spread(of(row, lambda line: 100 * line["AP75"]))
    columns["AP"] = lambda row: spread(of(row, lambda line: 100 * line["AP"]))
    if study.baseline:
        columns[f"AP50 minus {study.baseline}"] = lambda row: (
            "-" if row.name == study.baseline else _signed(paired_differences(last, row.name, study.baseline))
        )
    if study.source and study.oracle:
        columns["gap closed"] = lambda row: (
            "-"
            if row.name in (study.source, study.oracle)
            else spread(gap_closed(last, row.name, study.source, study.oracle), 2)
        )
    columns["within 1 sigma"] = lambda row: spread(
        [v for line in lines if line["variant"] == row.name and (v := line["sigma"].get("coverage_1")) is not None], 2
    )
    if any(line.get("guard_trips") for line in lines):
        columns["guard trips"] = lambda row: spread(of(row, lambda line: line.get("guard_trips", 0)), 0)
    columns["seconds"] = lambda row: spread(of(row, lambda line: line["seconds"]), 0)
    for name in dict.fromkeys(name for row in study.row for name, _ in row.paper):
        columns[name] = lambda row, name=name: _paper(row.paper, name)  # type: ignore[misc]
    return columns


def _legend(study: Study, lines: Sequence[Line]) -> str:
    text = "Per cent; median (lowest to highest) over seeds; of the last checkpoint unless a column says otherwise."
    if any(line["chosen"]["AP50"] != line["AP50"] for line in lines):
        text += " *Chosen*: model.pt, chosen without target labels."
    if any("best" in line for line in lines):
        text += " *Best by target labels*: the best kept checkpoint, an oracle's choice that no user can make."
    if study.baseline:
        text += f" Differences to *{study.baseline}* are taken seed by seed."
    if study.source and study.oracle:
        text += f" *Gap closed*: (row - {study.source}) / ({study.oracle} - {study.source}), seed by seed."
    names = list(dict.fromkeys(name for row in study.row for name, _ in row.paper))
    if names:
        text += f" {', '.join(names)}: the paper's numbers, on its own data."
    return f"{text} {study.note}".rstrip()


def _by_seed(study: Study, last: Scores) -> str:
    seeds = sorted({seed for _, seed in last})
    rows = [row.name for row in study.row if any(name == row.name for name, _ in last)]
    body = [[name, *(f"{last[name, s]:.1f}" if (name, s) in last else "-" for s in seeds)] for name in rows]
    return "## AP50 of each seed, last checkpoint\n\n" + _markdown(["row", *(f"seed {s}" for s in seeds)], body)


def _spreads(study: Study, lines: Sequence[Line]) -> str:
    papers = list(dict.fromkeys(name for group in study.spread for name, _ in group.paper))
    body = []
    for group in study.spread:
        medians = []
        for name in group.rows:
            values = [100 * line["AP50"] for line in lines if line["variant"] == name]
            if values:
                medians.append(statistics.median(values))
        between = f"{max(medians) - min(medians):.1f}" if medians else "-"
        deviation = f"{statistics.pstdev(medians):.1f}" if medians else "-"
        count = f"{len(medians)} of {len(group.rows)}"
        body.append(
            [group.name, count, spread(medians), between, deviation, *(_paper(group.paper, name) for name in papers)]
        )
    head = ["over", "rows", "medians of AP50, last", "highest minus lowest", "standard deviation", *papers]
    return "## Spread of the medians\n\n" + _markdown(head, body)


def _signed(values: Sequence[float]) -> str:
    if not values:
        return "-"
    middle = f"{statistics.median(values):+.1f}"
    return middle if len(values) == 1 else f"{middle} ({min(values):+.1f} to {max(values):+.1f})"


def _paper(numbers: Sequence[tuple[str, float]], name: str) -> str:
    return next((f"{value:.1f}" for column, value in numbers if column == name), "")


def _markdown(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *body]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
