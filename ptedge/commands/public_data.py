"""``ptedge data fetch-help`` and ``fog``: public data sets, and fog on them; and the layout that ``check`` compares."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from ptedge.progress import Progress

NAMES = ("bdd100k", "cityscapes", "foggy_cityscapes", "kitti", "sim10k")


@click.command("fetch-help")
@click.argument("name", type=click.Choice(NAMES))
@click.option("--root", default="/data/NAME", help="Folder you will unpack into, for the text.")
def fetch_help(name: str, root: str) -> dict[str, Any]:
    """Tell where a public data set comes from, what its folder must hold, and what to do next. Nothing is fetched.

    \b
    Example:
      ptedge data fetch-help cityscapes --root /data/cityscapes
    """
    from ptedge.data.public import guide_text

    text = guide_text(name, root.replace("NAME", name))
    click.echo(text)
    return {"name": name, "text": text}


@click.command()
@click.argument("root", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--split", "splits", multiple=True, help="Part of Cityscapes; repeat for more. All without.")
@click.option(
    "--beta", "betas", multiple=True, type=click.FloatRange(0, min_open=True), default=(0.02,), show_default=True
)
@click.option("--light", nargs=3, type=click.FloatRange(0, 255), help="Atmospheric light R G B; estimated without.")
@click.option("--depth", type=click.Path(path_type=Path, exists=True, file_okay=False), help="Folder of depths.")
@click.option(
    "--unit", type=click.FloatRange(0, min_open=True), default=0.001, show_default=True, help="Metres a step."
)
@click.option("--out", type=click.Path(path_type=Path), help="Folder to write to; ROOT without. Needed with --depth.")
def fog(
    root: Path,
    splits: tuple[str, ...],
    betas: tuple[float, ...],
    light: tuple[float, float, float] | None,
    depth: Path | None,
    unit: float,
    out: Path | None,
) -> dict[str, Any]:
    """Put fog on Cityscapes (by its disparities), or on a folder of images with depths, as Foggy Cityscapes does.

    ROOT holds leftImg8bit, disparity and camera; leftImg8bit_foggy appears beside them. With --depth, ROOT is a folder
    of images and the other holds a PNG of 16 bits or an .npy array in metres for each. What is there already is left.

    \b
    Example:
      ptedge data fog /data/cityscapes --beta 0.02 --split val
      ptedge data fog frames --depth depths --unit 0.001 --out foggy
    """
    from ptedge.data.public import FogOptions, fog_cityscapes, fog_depths, visibility

    if depth is not None and (out is None or splits):
        raise click.UsageError("--depth needs --out, and has no --split")

    options = FogOptions(betas, light)
    for beta in betas:
        click.echo(f"beta {beta:g}: contrast falls to 5 % at {visibility(beta):.0f} m", err=True)
    with Progress("fog", None) as shown:

        def progress(done: int, total: int) -> None:
            shown.total = total
            shown(done)

        if depth is not None and out is not None:
            counts = fog_depths(root, depth, out, unit, options, progress)
        else:
            counts = fog_cityscapes(root, out or root, splits, options, progress)
    for reason, count in counts.items():
        click.echo(f"{count} {reason}", err=True)
    return {"out": str(out or root), "counts": dict(counts)}


def layout_of(path: Path, named: str | None) -> str | None:
    """The public data set whose layout to compare a folder with: the one named, or the one it looks like."""
    from ptedge.data.public import recognised

    return named or (recognised(path) if path.is_dir() else None)


def check_layout(path: Path, name: str, as_json: bool) -> None:
    """Tell what is missing in the folder of a public data set; exit status 1 where a part is wholly missing."""
    from ptedge.data.public import missing_parts

    missing, other = missing_parts(name, path)
    if as_json:
        document = {"data": str(path), "layout": name, "missing": missing, "notes": other, "ok": not missing}
        click.echo(json.dumps(document, indent=2, ensure_ascii=False))
    else:
        for title, sentences in (("missing", missing), ("note", other)):
            for sentence in sentences:
                click.echo(f"{title:8} {sentence}")
        verdict = f"{len(missing)} parts missing" if missing else "every part is there"
        click.echo(
            f"{path} (layout of {name}): {verdict}; what to do next: ptedge data fetch-help {name} --root {path}"
        )
    if missing:
        sys.exit(1)
