"""``ptedge plot``: the plots of one run anew, or of several laid over each other, or of a study."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click


@click.command(short_help="Draw the curves of one run, or of several together.")
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN...")
@click.option("--out", type=click.Path(path_type=Path), help="Folder for the PNG files; for one run its own plots/.")
def plot(runs: tuple[Path, ...], out: Path | None) -> dict[str, Any]:
    """Draw what RUN/metrics.jsonl says: losses, pseudo boxes, entropy, agreement, anchors, learning rate.

    Several runs are laid over each other, one colour each. The folder of a study (results.jsonl) may be given alone: it
    gives AP50 of every variant, and AP50 over every axis that its rows declare. The files written are listed on
    standard output.

    \b
    Examples:
      ptedge plot runs/adapted
      ptedge plot runs/adapted runs/source_free --out compared
    """
    from ptedge.errors import ArtifactError, missing_extra
    from ptedge.figures import can_draw
    from ptedge.files import make_output_folder

    if not can_draw():
        raise missing_extra("matplotlib", "train")
    from ..study.plot import plot_study
    from ..study.result import read_results
    from .plots import plot_runs

    if out is None:
        if len(runs) > 1:
            raise click.UsageError("give --out DIR for the plots of several runs")
        out = runs[0] / "plots"
    results = runs[0] / "results.jsonl"
    if len(runs) == 1 and results.is_file():
        files = plot_study(read_results(results), make_output_folder(out))
    else:
        for run in runs:
            check_run(run)
        files = plot_runs(runs, make_output_folder(out))
    if not files:
        raise ArtifactError(f"{', '.join(map(str, runs))}: nothing to draw yet")
    for file in files:
        click.echo(file)
    return {"files": [str(file) for file in files]}


def check_run(run: Path) -> None:
    """Say early that a folder is no run, before an output folder is made.

    Raises:
        InputError: it has no metrics.jsonl.
    """
    from ptedge.errors import InputError

    if not (run / "metrics.jsonl").is_file() and not run.is_file():
        raise InputError(
            f"{run} has no metrics.jsonl. Give the folder of a run of ptedge train or adapt, or of a study"
        )
