"""``ptedge demo``: a detector of clear streets meets haze, adapts without labels, is deployed and adapts again."""

from __future__ import annotations

import importlib.util
import shlex
from importlib import resources
from pathlib import Path
from typing import Any

import click

from ptedge.errors import EXTRAS, OutputError, missing_extra
from ptedge.files import atomic_write, make_output_folder, write_json
from ptedge.folders import EARLIER, LOCK_NAME, set_aside, take_folder

from .steps import Steps
from .walk import SETTINGS, SOURCE, TARGET, Plan, Row, Walk

MARKER = "demo.json"  # a folder that holds it was made by a demo and may be made anew
FULL = Plan()
QUICK = Plan(target_frames=60, second_frames=20, val_images=40, pictures=4, with_source=False)
WORKSHOP = ("train", "export")  # extras that the demo needs


@click.command()
@click.option("--quick", is_flag=True, help="One minute instead of three: source-free alone, and no second round.")
@click.option("--from-scratch", is_flag=True, help="Train the source model, too, instead of taking the one enclosed.")
@click.option(
    "--out", type=click.Path(path_type=Path), help="Its folder; an earlier demo steps aside.  [default: runs/demo]"
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of scenes and adaptation.")
def demo(quick: bool, from_scratch: bool, out: Path | None, seed: int) -> dict[str, Any]:
    """The whole loop on generated scenes, in one command: about three minutes on two CPU cores.

    A detector that learned clear street scenes is scored in haze and another camera. It adapts to frames that nobody
    labelled, source-free and with its source data; is exported and verified; runs through other streets, as on a
    device, and collects; and adapts again to what it collected. A table tells what each step is worth, and
    OUT/before_after.jpg shows it.

    \b
    Example:
      ptedge demo --out runs/demo
    """
    require_workshop()
    with take_folder(out, Path("runs/demo"), "ptedge demo") as folder:
        return _show(FULL if not quick else QUICK, folder, seed, quick=quick, from_scratch=from_scratch)


def require_workshop() -> None:
    """See to it before the first step that no later one lacks a package.

    Raises:
        MissingExtraError: with all extras that the demo needs.
    """
    for package, extra in EXTRAS.items():
        if extra in WORKSHOP and importlib.util.find_spec(package) is None:
            raise missing_extra(package, ",".join(WORKSHOP))


def _show(plan: Plan, out: Path, seed: int, *, quick: bool, from_scratch: bool) -> dict[str, Any]:
    """The demo in a folder that is held."""
    start_afresh(out)
    click.echo(
        f"A detector that knows {SOURCE} streets meets {TARGET} and another camera. Everything is written into {out}",
        err=True,
    )
    steps = Steps(out / "logs", lambda line: click.echo(line, err=True))
    rows = Walk(plan, out, seed, steps, from_scratch=from_scratch).rows()
    document = {
        "quick": quick,
        "from_scratch": from_scratch,
        "seed": seed,
        "seconds": steps.seconds,
        "models": {row.name: {"checkpoint": row.checkpoint, "bundle": row.bundle} for row in rows},
    }
    write_json(out / MARKER, document)
    click.echo(f"\n{sum(steps.seconds.values()) / 60:.1f} minutes in all", err=True)
    print_table(rows)
    click.echo(closing(out, rows), err=True)
    return {"out": str(out), **document}


def start_afresh(out: Path) -> None:
    """An empty folder with the demo's settings; an earlier demo there steps aside.

    Raises:
        OutputError: the folder holds something else, or is not writable.
    """
    if out.is_dir() and (names := [p.name for p in out.iterdir() if p.name not in (LOCK_NAME, MARKER)]):
        if not (out / MARKER).is_file():
            raise OutputError(f"{out} is not empty and not from an earlier demo. Choose another --out")
        moved = set_aside(out, [name for name in names if not name.startswith(f"{EARLIER}-")], MARKER)
        if moved is not None:
            click.echo(f"{out} held an earlier demo; it is in {moved} now", err=True)
    make_output_folder(out)
    write_json(out / MARKER, {})
    for name in SETTINGS:
        with atomic_write(out / "settings" / name, "w") as file:
            file.write(resources.files(__package__).joinpath(name).read_text("utf-8"))


def print_table(rows: list[Row]) -> None:
    """AP50 of each model in per cent, and how far it is above the first.

    Args:
        rows: source only first.
    """
    from rich.console import Console
    from rich.table import Table

    start = rows[0].checkpoint
    table = Table(title=f"On {start['images']} labelled scenes in {TARGET} that no model has learned from")
    for heading in ("model", "learned from"):
        table.add_column(heading)
    for heading in ("AP50", "gain"):
        table.add_column(heading, justify="right")
    for row in rows:
        gain = 100 * (row.checkpoint["AP50"] - start["AP50"])
        table.add_row(row.name, row.trained_on, f"{100 * row.checkpoint['AP50']:.1f}", f"{gain:+.1f}" if gain else "")
    Console().print(table)
    for row in rows:
        if row.bundle:
            found = 100 * row.bundle["AP50"]
            click.echo(f"{row.name}, as the bundle that goes to the device, without torch: {found:.1f}")


def closing(out: Path, rows: list[Row]) -> str:
    """What to look at, and what to do next with data of one's own.

    Args:
        out: the demo's folder.
        rows: of the table.
    """
    run = out / ("adapted" if "adapted" in {row.name for row in rows} else "source_free")
    report = shlex.join(["ptedge", "report", *(str(path) for path in (run, out / "bundle", out / "field"))])
    return f"""
Look at
  {out / "before_after.jpg"}    scenes before and after adaptation; more in {out / "pictures"}
  {out / "drive" / "video.mp4"}    as the device sees other streets
  {report}    one page: curves, pictures, sigma, speed

Next, with your own data: LABELS is what you have labelled (a COCO json, or a folder of YOLO, VOC or KITTI), FOOTAGE
a video or a folder of pictures from the new place, without labels

  ptedge data check LABELS
  ptedge train LABELS --out runs/source
  ptedge adapt runs/source/model.pt --target FOOTAGE --source LABELS --out runs/adapted
  ptedge report runs/adapted

  ptedge export runs/adapted/model.pt --out runs/bundle
  ptedge run runs/bundle FOOTAGE --collect runs/field                  # on the device; it needs no torch
  ptedge adapt runs/adapted/model.pt --target runs/field --source-free --out runs/second

Where the labelled images may not leave their place, adapt with --source-free instead of --source LABELS."""


__all__ = ["demo"]
