"""The command ``ptedge benchmark``."""

from __future__ import annotations

import json
from pathlib import Path

import click

from ..click_options import JSON, THREADS


@click.command()
@click.argument("bundles", metavar="BUNDLE...", nargs=-1, type=click.Path(path_type=Path))
@click.option("--seconds", type=click.FloatRange(0.1), default=10.0, show_default=True, help="To measure for, each.")
@click.option(
    "--warm-up", type=click.FloatRange(0), default=2.0, show_default=True, help="Seconds before, not counted."
)
@click.option(
    "--rounds", type=click.IntRange(1, 50), default=10, show_default=True, help="Turns that the seconds are split into."
)
@click.option(
    "--frames", help="Image, folder or video to take up to 32 frames from.  [default: one 1280x720 frame of noise]"
)
@click.option(
    "--backend",
    "backends",
    type=click.Choice(["auto", "all", "tensorrt", "cuda", "ort-tensorrt", "cpu"]),
    multiple=True,
    default=("auto",),
    help="What runs the model; give it again to compare; all takes those that work here.  [default: auto]",
)
@THREADS
@click.option("--slots", type=click.IntRange(1, 64), default=1, show_default=True, help="Calls under way at once.")
@click.option("--out", type=click.Path(path_type=Path), help="Write the report to this JSON file as well.")
@click.option(
    "--compare",
    nargs=2,
    metavar="OLD NEW",
    type=click.Path(path_type=Path),
    help="Compare two reports instead of measuring.",
)
@JSON
def benchmark(
    bundles: tuple[Path, ...],
    seconds: float,
    warm_up: float,
    rounds: int,
    frames: str | None,
    backends: tuple[str, ...],
    threads: int | None,
    slots: int,
    out: Path | None,
    compare: tuple[Path, Path] | None,
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
    if compare is not None:
        from .compare import compare as compare_reports
        from .document import read_report
        from .table import comparison_text

        if bundles:
            raise click.UsageError("--compare takes two reports and no BUNDLE")
        document = compare_reports(read_report(compare[0]), read_report(compare[1]))
        text = comparison_text(document)
    else:
        from ptedge.files import write_json

        from .run import BenchOptions, run_benchmark
        from .table import report_text

        if not bundles:
            raise click.UsageError("give a BUNDLE, or two reports to --compare")
        options = BenchOptions(
            backends=backends,
            seconds=seconds,
            warm_up=warm_up,
            rounds=rounds,
            frames=frames,
            threads=threads,
            slots=slots,
        )
        document = run_benchmark(bundles, options, lambda line: click.echo(line, err=True))
        text = report_text(document)
        if out is not None:
            write_json(out, document)
    click.echo(json.dumps(document, ensure_ascii=False) if as_json else text)
