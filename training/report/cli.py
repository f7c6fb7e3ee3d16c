"""``ptedge report``: one HTML page about a run."""

from __future__ import annotations

from pathlib import Path

import click


@click.command(short_help="Write one HTML page about a run: before and after, curves, sigma, speed, lineage.")
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("more", nargs=-1, type=click.Path(path_type=Path), metavar="[BUNDLE] [FIELD]")
@click.option("--out", type=click.Path(path_type=Path), help="HTML file to write.  [default: RUN/report.html]")
@click.option("--before", type=click.Path(path_type=Path), help="Checkpoint or bundle that the run began with.")
@click.option("--frames", help="FRAMES to show; else those of FIELD, else those that the run adapted to.")
@click.option("--val", type=click.Path(path_type=Path), help="Labelled DATA to score both models on.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document in place of the page's path.")
def report(
    run: Path,
    more: tuple[Path, ...],
    out: Path | None,
    before: Path | None,
    frames: str | None,
    val: Path | None,
    as_json: bool,
) -> None:
    """Write one self-contained HTML page about RUN: the same frames before and after, curves, anchors, sigma, speed.

    BUNDLE answers in place of the checkpoint, without torch, and brings its lineage and benchmark. FIELD brings frames
    from the device. What is missing is said on the page, with the command that makes it.

    \b
    Examples:
      ptedge report runs/adapted
      ptedge report runs/adapted bundle field --val target/val.json
    """
    import json

    from ptedge.files import atomic_write

    from .ask import ask
    from .gather import gather, sort_folders
    from .page import build_page

    bundle, field_folder = sort_folders(more)
    facts = gather(run, bundle, field_folder, before)
    findings = ask(facts, frames, val)
    page = build_page(facts, findings)
    out = out or run / "report.html"
    with atomic_write(out, "w") as file:
        file.write(page)
    about = {"page": str(out), "bytes": len(page.encode()), "models": findings.titles, "frames": len(findings.views)}
    about |= {
        "scores": findings.scores,
        "missing": [{"why": why, "command": command} for why, command in findings.notes],
    }
    click.echo(json.dumps(about, ensure_ascii=False) if as_json else out)
