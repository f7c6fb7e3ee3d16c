"""The table of a study's speeds: every row with what it costs and what it finds, fastest first."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..plan import Study
from ..result import Result
from ..sections import markdown, median_and_range
from .run import Speed


@dataclass(frozen=True)
class SpeedRow:
    """A line of the table, and a point of the picture where it has an AP.

    Attributes:
        name: row of the study, or what is timed beside the rows.
        speed: of its graph: for a row that adapts that of the row it starts from.
        results: its finished runs; none for what was not trained.
        best: on the Pareto line: no row that is as fast has a higher median AP50.
    """

    name: str
    speed: Speed
    results: tuple[Result, ...] = ()
    best: bool = False

    @property
    def ap50(self) -> float:
        """Median over seeds, per cent; 0 without results."""
        return 100 * statistics.median(one.last.ap50 for one in self.results) if self.results else 0.0


def speed_rows(study: Study, results: Sequence[Result], speeds: Sequence[Speed]) -> list[SpeedRow]:
    """All that was timed, fastest first, with the AP of those that were trained."""
    known = {one.name: one for one in speeds}
    rows = {row.name: row for row in study.row}
    found = [SpeedRow(one.name, one) for one in speeds if one.kind != "row"]
    for name in dict.fromkeys(result.variant for result in results):
        root = rows[name]
        while root.adapts:
            root = rows[root.start or study.start]
        if root.name in known:
            own = tuple(result for result in results if result.variant == name)
            found.append(SpeedRow(name, known[root.name], own))
    found.sort(key=lambda row: (row.speed.ms, -row.ap50))
    highest, marked = 0.0, []
    for row in found:
        best = bool(row.results) and row.ap50 > highest
        highest = max(highest, row.ap50)
        marked.append(replace(row, best=best))
    return marked


def speed_page(study: Study, rows: Sequence[SpeedRow]) -> str:
    """The page speed.md.

    Args:
        study: for its title, the number of threads, and the row that ratios are taken to: ``baseline``.
        rows: of :func:`speed_rows`.
    """
    base = next((row.speed.ms for row in rows if row.name == study.baseline), None)
    head = ["row", "input", "proposals", "ms", "ratio", "processor ms", "MB", "GMAC", "AP50", "AP75"]
    body = []
    for row in rows:
        one, scores = row.speed, [result.last for result in row.results]
        body.append(
            [
                f"**{row.name}**" if row.best else row.name,
                one.input or "-",
                str(one.proposals or "-"),
                f"{one.ms:.1f}",
                f"{one.ms / base:.2f}" if base else "-",
                f"{one.processor_ms:.1f}",
                f"{one.megabytes:.1f}",
                f"{one.gmacs:.2f}" if one.gmacs else "-",
                median_and_range([100 * score.ap50 for score in scores]) if scores else "not trained",
                median_and_range([100 * score.ap75 for score in scores]),
            ]
        )
    text = (
        f"One image on this machine's CPU, ONNX Runtime, {study.timing.threads} thread(s): medians of "
        f"{study.timing.rounds} rounds in turn within one run. Compare the ratios (to *{study.baseline or 'no row'}*), "
        "not milliseconds of different runs. Bold: no row as fast has a higher AP50. AP of the last checkpoint, per "
        "cent, median (lowest to highest) over seeds; rows that were not trained have none, and graphs of others are "
        "with random weights unless they were given as files. MB: the ONNX file. GMAC: multiplications of backbone and "
        "heads with all proposals."
    )
    return f"# {study.title}: speed and size\n\n{text}\n\n{markdown(head, body)}\n"
