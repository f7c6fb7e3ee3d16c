"""The command ``ptedge field``: look into, export or prune a field folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from .click_options import JSON, byte_size

FORMATS = ("coco", "yolo", "cvat", "labelstudio", "fiftyone")  # of prelabels/choose.py, which --help need not load
FIELD = click.argument("folder", metavar="FIELD", type=click.Path(path_type=Path))


@click.group()
def field() -> None:
    """Look into, export or prune a field folder, as ptedge run --collect writes it.

    \b
    Example:
      ptedge field summary field
    """


@field.command()
@FIELD
@JSON
def summary(folder: Path, as_json: bool) -> None:
    """Count images, why they were kept, and what was detected.

    \b
    Example:
      ptedge field summary field --json
    """
    from .field import open_field, summarize

    counts = summarize(open_field(folder))
    if as_json:
        click.echo(json.dumps(counts, ensure_ascii=False))
        return
    click.echo(f"{counts['images']} images, {counts['bytes'] / 1e6:.1f} MB in {folder}")
    for title in ("why", "detections", "cameras", "models", "counters"):
        if counts[title]:
            click.echo(f"{title:<11}" + ", ".join(f"{name} {count}" for name, count in counts[title].items()))


@field.command()
@FIELD
@click.option(
    "--to", "form", type=click.Choice(FORMATS), help="Format; --out is then a folder, and the images go with it."
)
@click.option("--out", type=click.Path(path_type=Path), required=True, help="COCO json to write; with --to a folder.")
@click.option(
    "--min-score", type=click.FloatRange(0, 1), default=0.3, show_default=True, help="Leave out lower scores."
)
@click.option("--license", "license_name", default="unknown", show_default=True, help="Licence of the images.")
def export(folder: Path, form: str | None, out: Path, min_score: float, license_name: str) -> dict[str, Any]:
    """Write the detections as pre-labels, to correct in an annotation tool.

    \b
    Examples:
      ptedge field export field --out prelabels.json --min-score 0.5
      ptedge field export field --to cvat --out for_cvat
    """
    from ptedge.folders import set_file_aside

    from .field import export_coco, open_field
    from .prelabels.choose import write_prelabels

    opened = open_field(folder)
    if form is not None:
        written = write_prelabels(opened, out, form, min_score, license_name)
        left = ", ".join(f"{count} {why}" for why, count in written.left_out.items() if count)
        click.echo(f"wrote {out} ({form}): {written.images} images, {written.boxes} boxes", err=True)
        if left:
            click.echo(f"boxes left out: {left}", err=True)
        counts = {"images": written.images, "boxes": written.boxes, "left_out": dict(written.left_out)}
        return {"out": str(out), "format": form, **counts}
    set_file_aside(out)  # labels corrected by hand may have been saved there
    count = export_coco(opened, out, min_score, license_name)
    click.echo(f"wrote {out}: {count} images of {folder / 'images'}", err=True)
    return {"out": str(out), "format": "coco", "images": count}


@field.command()
@FIELD
@click.option("--max-bytes", callback=byte_size, metavar="SIZE", help="Size of the images that may stay, as 500MB.")
@click.option("--max-images", type=click.IntRange(0), help="Images that may stay.")
def prune(folder: Path, max_bytes: int | None, max_images: int | None) -> dict[str, Any]:
    """Remove the least informative images until the folder is small enough.

    \b
    Example:
      ptedge field prune field --max-bytes 500MB
    """
    from ptedge.folders import hold_folder

    from .field import open_field
    from .field import prune as prune_field

    if max_bytes is None and max_images is None:
        raise click.UsageError("give --max-bytes or --max-images")
    open_field(folder)  # no lock is put where no field folder is
    with hold_folder(folder, "ptedge field prune"):
        opened = open_field(folder)
        removed = prune_field(opened, max_bytes, max_images)
    click.echo(f"removed {removed} images; {opened.images} stay, {opened.size / 1e6:.1f} MB", err=True)
    return {"removed": removed, "images": opened.images, "bytes": opened.size}
