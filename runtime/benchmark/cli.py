"""The command ``ptedge benchmark``."""

from __future__ import annotations

import json
from pathlib import Path

import click

from ..click_options import JSON, THREADS, TRUST, grouped
from .options import CHOICES, BenchOptions

OPTIONS = grouped(
    "options",
    BenchOptions,
    click.option(
        "--seconds", type=click.FloatRange(0.1), default=10.0, show_default=True, help="To measure for, each."
    ),
    click.option(
        "--warm-up", type=click.FloatRange(0), default=2.0, show_default=True, help="Seconds before, not counted."
    ),
    click.option(
        "--rounds",
        type=click.IntRange(1, 50),
        default=10,
        show_default=True,
        help="Turns that the seconds are split into.",
    ),
    click.option(
        "--frames",
        help="Image, folder or video to take up to 32 frames from.  [default: one 1280x720 frame of noise]",
    ),
    click.option(
        "--backend",
        "backends",
        type=click.Choice(CHOICES),
        multiple=True,
        default=("auto",),
        help="What runs the model; give it again to compare; all takes those that work here.  [default: auto]",
    ),
    THREADS,
    TRUST,
    click.option("--slots", type=click.IntRange(1, 64), default=1, show_default=True, help="Calls under way at once."),
)


@click.command()
@click.argument("bundles", metavar="BUNDLE...", nargs=-1, type=click.Path(path_type=Path))
@OPTIONS
@click.option("--out", type=click.Path(path_type=Path), help="Write the report to this JSON file as well.")
@click.option(
    "--compare",
    "reports",
    nargs=2,
    metavar="OLD NEW",
    type=click.Path(path_type=Path),
    help="Compare two reports instead of measuring.",
)
@JSON
def benchmark(
    bundles: tuple[Path, ...],
    options: BenchOptions,
    out: Path | None,
    reports: tuple[Path, Path] | None,
    as_json: bool,
) -> None:
    """Measure how fast each BUNDLE runs here: every stage apart, on frames that are ready in memory.

    Several bundles (of other sizes or batches) and several backends take turns in the same minutes.

    \b
    Example:
      ptedge benchmark car.bundle --seconds 20 --threads 4 --out before.json
      ptedge benchmark small.bundle large.bundle --backend all
      ptedge benchmark --compare before.json after.json
    """
    if reports is not None:
        from .compare import compare
        from .document import read_report
        from .table import comparison_text

        if bundles:
            raise click.UsageError("--compare takes two reports and no BUNDLE")
        document = compare(read_report(reports[0]), read_report(reports[1]))
        text = comparison_text(document)
    else:
        from ptedge.files import write_json

        from .run import run_benchmark
        from .table import report_text

        if not bundles:
            raise click.UsageError("give a BUNDLE, or two reports to --compare")
        document = run_benchmark(bundles, options, lambda line: click.echo(line, err=True))
        text = report_text(document)
        if out is not None:
            write_json(out, document)
    click.echo(json.dumps(document, ensure_ascii=False) if as_json else text)
