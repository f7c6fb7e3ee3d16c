"""The command ``ptedge field``: look into, export or prune a field folder, send its frames or fetch those of others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from .click_options import JSON, RATE, byte_size

FORMATS = ("coco", "yolo", "cvat", "labelstudio", "fiftyone")  # of prelabels/choose.py, which --help need not load
FIELD = click.argument("folder", metavar="FIELD", type=click.Path(path_type=Path))


@click.group()
def field() -> None:
    """Look into, export, prune, push or pull a field folder, as ptedge run --collect writes it.

    \b
    Example:
      ptedge field summary field
    """


@field.command()
@FIELD
@click.option(
    "--against",
    type=click.Path(path_type=Path),
    metavar="BUNDLE",
    help="Also tell whether frames picked by chance look as those the bundle was made for, day by day.",
)
@JSON
def summary(folder: Path, against: Path | None, as_json: bool) -> None:
    """Count images, why they were kept, and what was detected.

    \b
    Examples:
      ptedge field summary field --json
      ptedge field summary field --against bundle
    """
    from ptedge.artifacts.bundle import open_bundle

    from .collection.summary import collection_counts, collection_lines
    from .drift.collected import describe, drift_of
    from .field import open_field, summarize

    opened = open_field(folder)
    counts = summarize(opened)
    counts["collection"] = collection_counts(opened.about, opened.records())
    drift = drift_of(opened, open_bundle(against).manifest) if against is not None else None
    counts["drift"] = drift
    if as_json:
        click.echo(json.dumps(counts, ensure_ascii=False))
        return
    click.echo(f"{counts['images']} images, {counts['bytes'] / 1e6:.1f} MB in {folder}")
    for title in ("why", "detections", "cameras", "models", "counters"):
        if counts[title]:
            click.echo(f"{title:<11}" + ", ".join(f"{name} {count}" for name, count in counts[title].items()))
    for line in [*collection_lines(counts["collection"]), *(describe(drift) if drift is not None else [])]:
        click.echo(line)


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

    from .collection.reading import reading
    from .field import export_coco, open_field
    from .prelabels.choose import write_prelabels

    opened = open_field(folder)
    if form is not None:
        with reading(folder):
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
    """Remove the least informative images until the folder is small enough; those named in FIELD/keep.txt stay.

    \b
    Example:
      ptedge field prune field --max-bytes 500MB
    """
    from ptedge.folders import hold_folder

    from .collection.prune import prune as prune_field
    from .field import open_field

    if max_bytes is None and max_images is None:
        raise click.UsageError("give --max-bytes or --max-images")
    open_field(folder)  # no lock is put where no field folder is
    with hold_folder(folder, "ptedge field prune"):
        opened = open_field(folder)
        removed = prune_field(opened, max_bytes, max_images)
    click.echo(f"removed {removed} images; {opened.images} stay, {opened.size / 1e6:.1f} MB", err=True)
    return {"removed": removed, "images": opened.images, "bytes": opened.size}


@field.command()
@FIELD
@click.argument("store")
@RATE
@click.option(
    "--shard-size", callback=byte_size, default="32MB", show_default=True, metavar="SIZE", help="Size of a shard."
)
def push(folder: Path, store: str, rate: int | None, shard_size: int) -> dict[str, Any]:
    """Send frames that a store does not have yet: in shards of tar, the index of each last.

    STORE is a folder or s3://bucket/site (docs/stores.md). Interrupted, it is gone on with by the next push: no frame
    is lost, and none goes twice. Nothing else of ptedge sends frames anywhere.

    \b
    Examples:
      ptedge field push field s3://fleet/gate-2 --rate 500KB
      ptedge field push field /mnt/stick/gate-2
    """
    from ptedge.stores.opening import open_store

    from .transfer.push import push as push_field

    pushed = push_field(folder, open_store(store, rate), store, shard_size)
    sent = f"sent {pushed.frames} frames, {pushed.bytes / 1e6:.1f} MB in {pushed.shards} shards"
    told = {
        "were there": pushed.there,
        "have an image that another has": pushed.twice,
        "are gone from the folder": pushed.gone,
    }
    click.echo(", ".join([sent, *(f"{count} {what}" for what, count in told.items() if count)]), err=True)
    if pushed.adopted:
        click.echo(f"{pushed.adopted} shards of an interrupted push are indexed now", err=True)
    return {"store": store, **pushed.to_json()}


@field.command()
@click.argument("store")
@click.argument("out", type=click.Path(path_type=Path))
@click.option(
    "--without", type=click.Path(path_type=Path), multiple=True, help="Leave out what this field folder has, too."
)
@RATE
def pull(store: str, out: Path, without: tuple[Path, ...], rate: int | None) -> dict[str, Any]:
    """Fetch frames of a store into a field folder: those that it does not have yet.

    STORE may be another field folder as well, also while a device collects into it.

    \b
    Examples:
      ptedge field pull s3://fleet/gate-2 gate-2
      ptedge field pull /mnt/device/field monday --without sunday
    """
    from ptedge.errors import StoreError
    from ptedge.stores.opening import open_store

    from .field import is_field
    from .transfer.pull import copy_frames
    from .transfer.pull import pull as pull_field

    if is_field(Path(store)):
        pulled = copy_frames(Path(store), out, without)
    else:
        pulled = pull_field(open_store(store, rate), out, without)
    there = f", {pulled.there} were there" if pulled.there else ""
    click.echo(f"fetched {pulled.frames} frames, {pulled.bytes / 1e6:.1f} MB, into {out}{there}", err=True)
    if pulled.damaged:
        raise StoreError(f"{pulled.damaged} frames in {store} are damaged and were left out; the others are in {out}")
    return {"store": store, "out": str(out), **pulled.to_json()}
