"""The table of a study: medians and ranges over seeds, paired differences, share of the gap, the paper's numbers."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence

from ptedge.scores.convention import CONVENTIONS, VOC

from .plan import Row, Study
from .result import Result
from .sections import by_class, data_counts, markdown, median_and_range, published

PairedScores = Mapping[tuple[str, int], float]  # (row, seed) -> AP50


def paired_differences(scores: PairedScores, row: str, baseline: str) -> list[float]:
    """Row minus baseline, for every seed that has both."""
    seeds = [seed for name, seed in scores if name == row and (baseline, seed) in scores]
    return [scores[row, seed] - scores[baseline, seed] for seed in seeds]


def gap_closed(scores: PairedScores, row: str, source: str, oracle: str) -> list[float]:
    """(row - source) / (oracle - source), for every seed that has all three and an oracle above source only."""
    shares = []
    for name, seed in scores:
        low, high = scores.get((source, seed)), scores.get((oracle, seed))
        if name == row and low is not None and high is not None and high > low:
            shares.append((scores[row, seed] - low) / (high - low))
    return shares


def table(study: Study, results: Sequence[Result]) -> str:
    """The page table.md.

    Args:
        study: its rows in order, the rows compared with, the paper's numbers.
        results: of finished runs.
    """
    if not results:
        parts = [f"# {study.title}", "No run is finished.", data_counts(study), published(study)]
        return "\n\n".join(part for part in parts if part) + "\n"
    last = {(result.variant, result.seed): 100 * result.last.ap50 for result in results}
    columns = _columns(study, results, last)
    done = {result.variant for result in results}
    body = [[make(row) for make in columns.values()] for row in study.row if row.name in done]
    parts = [f"# {study.title}", _legend(study, results), markdown(list(columns), body), _by_seed(study, last)]
    parts.append(by_class(study, results))
    if study.spread:
        parts.append(_spreads(study, results))
    parts += [data_counts(study), published(study)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _columns(study: Study, results: Sequence[Result], last: PairedScores) -> dict[str, Callable[[Row], str]]:
    def over_seeds(value: Callable[[Result], float | None], digits: int = 1) -> Callable[[Row], str]:
        """A column: median and range of what the row's results have of a value."""

        def cell(row: Row) -> str:
            found = [value(result) for result in results if result.variant == row.name]
            return median_and_range([number for number in found if number is not None], digits)

        return cell

    columns: dict[str, Callable[[Row], str]] = {
        "row": lambda row: row.name,
        "seeds": lambda row: str(sum(result.variant == row.name for result in results)),
        "AP50, last": over_seeds(lambda result: 100 * result.last.ap50),
    }
    if _any_chosen_earlier(results):
        columns["AP50, chosen"] = over_seeds(lambda result: 100 * result.chosen.ap50)
    if any(result.best for result in results):
        columns["AP50, best by target labels"] = over_seeds(lambda r: 100 * r.best.ap50 if r.best else None)
    columns["AP75"] = over_seeds(lambda result: 100 * result.last.ap75)
    columns["AP"] = over_seeds(lambda result: 100 * result.last.ap)
    if study.baseline:
        columns[f"AP50 minus {study.baseline}"] = lambda row: (
            "-" if row.name == study.baseline else _signed(paired_differences(last, row.name, study.baseline))
        )
    if study.source and study.oracle:
        columns["gap closed"] = lambda row: (
            "-"
            if row.name in (study.source, study.oracle)
            else median_and_range(gap_closed(last, row.name, study.source, study.oracle), 2)
        )
    columns["within 1 sigma"] = over_seeds(lambda result: result.sigma.get("coverage_1"), 2)
    if any(result.guard_trips for result in results):
        columns["guard trips"] = over_seeds(lambda result: result.guard_trips, 0)
    columns["seconds"] = over_seeds(lambda result: result.seconds, 0)
    for name in dict.fromkeys(name for row in study.row for name, _ in row.paper):
        columns[name] = lambda row, name=name: _paper(row.paper, name)  # type: ignore[misc]
    return columns


def _any_chosen_earlier(results: Sequence[Result]) -> bool:
    """Whether model.pt is another checkpoint than the last of a run, as far as AP50 tells."""
    return any(result.chosen.ap50 != result.last.ap50 for result in results)


def _legend(study: Study, results: Sequence[Result]) -> str:
    text = f"AP50 and AP75: {CONVENTIONS[study.convention].text}. " if study.convention != VOC.name else ""
    text += "Per cent; median (lowest to highest) over seeds; of the last checkpoint unless a column says otherwise."
    if _any_chosen_earlier(results):
        text += " *Chosen*: model.pt, chosen without target labels."
    if any(result.best for result in results):
        text += " *Best by target labels*: the best kept checkpoint, an oracle's choice that no user can make."
    if study.baseline:
        text += f" Differences to *{study.baseline}* are taken seed by seed."
    if study.source and study.oracle:
        text += f" *Gap closed*: (row - {study.source}) / ({study.oracle} - {study.source}), seed by seed."
    names = list(dict.fromkeys(name for row in study.row for name, _ in row.paper))
    if names:
        text += f" {', '.join(names)}: the paper's numbers, on its own data."
    return f"{text} {study.note}".rstrip()


def _by_seed(study: Study, last: PairedScores) -> str:
    seeds = sorted({seed for _, seed in last})
    rows = [row.name for row in study.row if any(name == row.name for name, _ in last)]
    body = [[name, *(f"{last[name, s]:.1f}" if (name, s) in last else "-" for s in seeds)] for name in rows]
    return "## AP50 of each seed, last checkpoint\n\n" + markdown(["row", *(f"seed {s}" for s in seeds)], body)


def _spreads(study: Study, results: Sequence[Result]) -> str:
    papers = list(dict.fromkeys(name for group in study.spread for name, _ in group.paper))
    body = []
    for group in study.spread:
        medians = []
        for name in group.rows:
            values = [100 * result.last.ap50 for result in results if result.variant == name]
            if values:
                medians.append(statistics.median(values))
        between = f"{max(medians) - min(medians):.1f}" if medians else "-"
        deviation = f"{statistics.pstdev(medians):.1f}" if medians else "-"
        count = f"{len(medians)} of {len(group.rows)}"
        numbers = (_paper(group.paper, name) for name in papers)
        body.append([group.name, count, median_and_range(medians), between, deviation, *numbers])
    head = ["over", "rows", "medians of AP50, last", "highest minus lowest", "standard deviation", *papers]
    return "## Spread of the medians\n\n" + markdown(head, body)


def _signed(values: Sequence[float]) -> str:
    if not values:
        return "-"
    middle = f"{statistics.median(values):+.1f}"
    return middle if len(values) == 1 else f"{middle} ({min(values):+.1f} to {max(values):+.1f})"


def _paper(numbers: Sequence[tuple[str, float]], name: str) -> str:
    return next((f"{value:.1f}" for column, value in numbers if column == name), "")
