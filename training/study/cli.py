"""``ptedge study``."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from signal import SIGINT
from typing import TYPE_CHECKING

import click

from ..cli import GPU_PRESETS

if TYPE_CHECKING:
    from .jobs import Job
    from .plan import Study
    from .process import Processes
    from .result import Result


@click.command(short_help="Run a table of variants over seeds.")
@click.argument("config", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), help="Folder of the study; runs/NAME-OF-CONFIG by default.")
@click.option("--data", type=click.Path(path_type=Path), help="Folder of the data, in place of data.root.")
@click.option("--rows", "names", multiple=True, metavar="NAME", help="Only this row (or pattern), and what it needs.")
@click.option("--seed", "seeds", multiple=True, type=click.IntRange(0), help="This seed; repeat. Default: the study's.")
@click.option("--jobs", "at_once", type=click.IntRange(1), default=1, show_default=True, help="Runs at a time.")
@click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Change one setting of every run.")
@click.option("--allow", is_flag=True, help="Go on where images or boxes are not as many as the benchmark has.")
@click.option("--preset", type=click.Choice(GPU_PRESETS), help="Every step in parts that fit a GPU of this memory.")
@click.option("--dry-run", is_flag=True, help="Print what would run, its steps, memory and hours, and run nothing.")
@click.option(
    "--gpu", metavar="NAME", help="GPU that --dry-run reckons with (A100, RTX 3090, ...); the one found here."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document of all results.")
def study(
    config: Path,
    out: Path | None,
    data: Path | None,
    names: tuple[str, ...],
    seeds: tuple[int, ...],
    at_once: int,
    overrides: tuple[str, ...],
    allow: bool,
    preset: str | None,
    dry_run: bool,
    gpu: str | None,
    as_json: bool,
) -> None:
    """Train and adapt every variant of a table with every seed, and compare.

    CONFIG is a TOML of data, seeds and rows (docs/studies.md). OUT gets results.jsonl (one line a run), table.md,
    plots and all runs. Given again, the command continues: finished runs are kept, broken ones resumed, failed ones
    tried again.

    \b
    Example:
      ptedge study samples/studies/carla_to_road.toml --data data/carla_to_road --out runs/study --jobs 2
    """
    from .jobs import list_jobs, parts_of, place
    from .load import load_study
    from .plot import plot_study_safely
    from .prepare import located, make_ready
    from .process import Processes, environment, run_job
    from .run import failure_report, run_study, study_lock

    plan = load_study(config, data, overrides, preset)
    if seeds:
        plan = replace(plan, seeds=seeds)
    out = out if out is not None else Path("runs") / config.stem
    plan = located(plan, out)
    jobs = list_jobs(plan, out, names, check_data=not plan.described)
    if dry_run:
        _show(plan, jobs, out, gpu, as_json)
        return
    with study_lock(out) as lock:
        plan = make_ready(plan, out, parts_of([job.row for job in jobs]), allow=allow)
        jobs = list_jobs(plan, out, names)
        processes = Processes(environment(at_once), () if lock is None else (lock,))
        source_val = place(plan, "source_val") if plan.data.source_val else None
        run = partial(
            run_job, processes=processes, val=place(plan, "val"), source_val=source_val, convention=plan.convention
        )
        echo = partial(click.echo, err=True)
        outcome = run_study(plan, out, jobs, run, at_once=at_once, echo=echo, stop=processes.stop)
        speed_page = ""
        if plan.timing.rounds and outcome.results and not outcome.interrupted:
            speed_page = _timed(plan, out, jobs, outcome.results, processes)
    plot_study_safely(outcome.results, out / "plots")
    click.echo(f"wrote {out / 'table.md'} and {out / 'results.jsonl'}", err=True)
    lines = [result.to_json() for result in outcome.results]
    click.echo(json.dumps(lines, indent=2) if as_json else (out / "table.md").read_text("utf-8") + speed_page)
    if outcome.interrupted:
        click.echo("interrupted; the same command continues", err=True)
        sys.exit(128 + (outcome.signal or SIGINT))
    if outcome.failed:
        raise failure_report(outcome.failed)


def _timed(plan: Study, out: Path, jobs: list[Job], results: list[Result], processes: Processes) -> str:
    """Measure, write speed.md and its picture; gives the text."""
    from ptedge.files import atomic_write

    from ..curves.drawing import draw_safely
    from .timing.plot import plot_speed
    from .timing.run import measure_speed
    from .timing.table import speed_page, speed_rows

    speeds = measure_speed(plan, out, jobs, results, processes, partial(click.echo, err=True))
    rows = speed_rows(plan, results, speeds)
    page = speed_page(plan, rows)
    with atomic_write(out / "speed.md", "w") as file:
        file.write(page)
    draw_safely(lambda folder: plot_speed(rows, plan.title, plan.timing.threads, folder), out / "plots")
    return page


def _show(plan: Study, jobs: list[Job], out: Path, gpu_name: str | None, as_json: bool) -> None:
    from .dry_run import plan_runs, summary_of
    from .gpus import gpu_here, gpu_named

    runs = plan_runs(plan, jobs, gpu_named(gpu_name) if gpu_name is not None else gpu_here())
    if as_json:
        click.echo(json.dumps([one.to_json() for one in runs], indent=2))
    else:
        for one in runs:
            click.echo(one.text())
    click.echo(summary_of(plan, out, runs), err=True)
