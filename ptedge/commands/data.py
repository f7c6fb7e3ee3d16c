"""``ptedge data``: check, count or convert a labelled data set."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ptedge.commands.public_data import NAMES, check_layout, fetch_help, fog, layout_of

if TYPE_CHECKING:
    from ptedge.data import Dataset
    from ptedge.data.writing import Format, ImageWay

_SHOWN = 20  # problems listed on the terminal; --json has all


def _size(_ctx: click.Context, _param: click.Parameter, value: str | None) -> tuple[int, int] | None:
    if value is None:
        return None
    height, _, width = value.lower().partition("x")
    if height.isdecimal() and width.isdecimal() and int(height) and int(width):
        return int(height), int(width)
    raise click.BadParameter(f"{value!r} is no size; write height x width in pixels, for example 384x640")


@click.group()
def data() -> None:
    """Check, count or convert labelled data: COCO, VOC, YOLO, KITTI, BDD100k, or a TOML description.

    \b
    Example:
      ptedge data check data/source/train.json
    """


data.add_command(fetch_help)
data.add_command(fog)

_DATA = click.argument("path", metavar="DATA", type=click.Path(path_type=Path))
_SPLIT = click.option("--split", help="Part to read (train, val, ...) where the data have several.")
_JSON = click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")


@data.command()
@_DATA
@_SPLIT
@click.option("--layout", type=click.Choice(NAMES), help="Compare the folder with this public data set's own layout.")
@_JSON
def check(path: Path, split: str | None, layout: str | None, as_json: bool) -> None:
    """Open every image of DATA; report missing, corrupt and wrongly sized files, and boxes left out.

    Exit status 1 if there is any such file, a box that cannot be used, or a label file that nothing was read from.
    Boxes of classes that a description leaves out on purpose, and notes, are listed, but are no fault. A folder of
    Cityscapes or BDD100k, which no reader opens without a description, or any with --layout, is compared with what the
    official archives hold.

    \b
    Example:
      ptedge data check data/source/train.json
    """
    from ptedge.data.report import find_problems, unusable_boxes
    from ptedge.progress import Progress

    public = layout_of(path, layout)
    if public is not None:
        check_layout(path, public, as_json)
        return
    dataset = _open(path, split)
    total = len(dataset)

    with Progress("opening", total) as progress:
        problems = find_problems(dataset, progress)
    unusable, unread = unusable_boxes(dataset), sum(dataset.passed_over.values())
    sound = not problems and not unusable and not unread
    if as_json:
        document = {
            "data": str(path),
            "format": dataset.format,
            "split": dataset.split,
            "images": total,
            "boxes": dataset.num_boxes,
            "problems": [{"file": p.file, "kind": p.kind, "text": p.text} for p in problems],
            "dropped": dataset.dropped,
            "passed_over": dataset.passed_over,
            "notes": dataset.notes,
            "ok": sound,
        }
        click.echo(json.dumps(document, indent=2, ensure_ascii=False))
    else:
        for problem in problems[:_SHOWN]:
            click.echo(f"{problem.kind:8} {problem.text}")
        if len(problems) > _SHOWN:
            click.echo(f"... and {len(problems) - _SHOWN} more")
        for line in _counts(dataset):
            click.echo(line)
        verdict = "all sound" if sound else f"{len(problems)} bad images, {unusable} unusable boxes"
        verdict += f", {unread} passed over" if unread else ""
        part = f", split {dataset.split}" if dataset.split is not None else ""
        click.echo(f"{path} ({dataset.format}{part}): {total} images, {dataset.num_boxes} boxes; {verdict}")
    if not sound:
        sys.exit(1)


@data.command()
@_DATA
@_SPLIT
@click.option("--size", metavar="HxW", callback=_size, help="Network input, for a suggestion of anchor sizes.")
@_JSON
def stats(path: Path, split: str | None, size: tuple[int, int] | None, as_json: bool) -> None:
    """Count images and boxes of DATA, and tell how large the boxes are.

    \b
    Example:
      ptedge data stats data/source/train.json --size 384x640
    """
    from ptedge.data.report import statistics

    document = statistics(_open(path, split), size)
    if as_json:
        click.echo(json.dumps(document, indent=2, ensure_ascii=False))
    else:
        click.echo(_table(document))


@data.command()
@_DATA
@_SPLIT
@click.option("--to", type=click.Choice(["coco", "voc", "yolo", "kitti"]), help="Format to write, into a folder.")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Folder; without --to a COCO json.")
@click.option(
    "--images",
    type=click.Choice(["copy", "link", "none"]),
    default="copy",
    show_default=True,
    help="With --to: what becomes of the images.",
)
@click.option("--description", default="", help="Without --to: text for the file's info.")
@click.option("--licence", default="unknown", show_default=True, help="Without --to: licence of the images.")
@click.option("--draw", type=click.IntRange(1), metavar="N", help="Only N images, drawn at random by --seed.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Draws --draw.")
def convert(
    path: Path,
    split: str | None,
    to: Format | None,
    out: Path,
    images: ImageWay,
    description: str,
    licence: str,
    draw: int | None,
    seed: int,
) -> dict[str, Any]:
    """Write DATA as COCO, VOC, YOLO or KITTI, or its annotations alone as a COCO json.

    With --to, OUT is a new folder that holds the images, too. What a format cannot hold is counted. Without it OUT is a
    COCO json, and the images stay where they are.

    \b
    Example:
      ptedge data convert data/kitti --to yolo --out data/kitti_yolo
      ptedge data convert data/kitti --out data/kitti/train.json --licence "CC BY-NC-SA 3.0"
      ptedge data convert data/road.json --draw 10 --seed 0 --out ten.json
    """
    from ptedge.data.report import with_sizes
    from ptedge.data.writing import convert_dataset, images_folder

    dataset = _open(path, split)
    dataset = with_sizes(dataset if draw is None else dataset.drawn(draw, seed))
    lost: dict[str, int] = {}
    if to is None:
        text = description or f"{path.name}, converted from {dataset.format}"
        text += "" if draw is None else f", {draw} images drawn with seed {seed}"
        _write_json(dataset, out, text, licence)
    else:
        lost = convert_dataset(dataset, to, out, images)
    click.echo(f"wrote {out}: {len(dataset)} images, {dataset.num_boxes} boxes", err=True)
    for line in (*_counts(dataset), *(f"changed  {count}: {reason}" for reason, count in lost.items())):
        click.echo(line, err=True)
    if images == "none" and to not in (None, "coco"):
        click.echo(f"put the images into {images_folder(to, out)}, named as their label files", err=True)
    return {
        "out": str(out),
        "format": to or "coco",
        "images": len(dataset),
        "boxes": dataset.num_boxes,
        "dropped": dataset.dropped,
        "passed_over": dataset.passed_over,
        "notes": dataset.notes,
        "changed": lost,
    }


def _write_json(dataset: Dataset, out: Path, description: str, licence: str) -> None:
    from ptedge.data.coco import write_coco
    from ptedge.folders import set_file_aside

    set_file_aside(out)
    write_coco(dataset, out, description=description, licence=licence)


def _counts(dataset: Dataset) -> list[str]:
    """One line for each thing that was left out, passed over or deserves a look."""
    return [
        *(f"dropped  {count} boxes: {reason}" for reason, count in dataset.dropped.items()),
        *(f"passed   {count}: {reason}" for reason, count in dataset.passed_over.items()),
        *(f"note     {count}: {reason}" for reason, count in dataset.notes.items()),
    ]


def _open(path: Path, split: str | None) -> Dataset:
    from ptedge.data import open_dataset

    return open_dataset(path, split=split)


def _table(document: dict[str, Any]) -> str:
    lines = [
        f"{document['data']} ({document['format']})",
        f"images          {document['images']}, of which without objects {document['empty_images']}",
        f"boxes           {document['boxes']}, ignored {document['ignored']}",
    ]
    lines += [f"  {name:14}{count}" for name, count in document["per_class"].items()]
    for key in ("dropped", "passed_over", "notes"):
        lines += [f"{key.replace('_', ' '):16}{count}: {reason}" for reason, count in document[key].items()]
    for key, title in (("size", "sqrt(area), px"), ("aspect", "height / width")):
        if document[key]:
            values = "  ".join(f"{float(q):.0%} {value:g}" for q, value in document[key].items())
            lines.append(f"{title:16}{values}")
    if document.get("anchor_sizes"):
        height, width = document["input_size"]
        lines.append(f"anchor sizes    {document['anchor_sizes']} for an input of {height} x {width}")
    return "\n".join(lines)
