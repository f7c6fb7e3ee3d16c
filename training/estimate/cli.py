"""``ptedge estimate``: what a model is worth where nobody labelled."""

from __future__ import annotations

import json
from pathlib import Path

import click


@click.command(short_help="Estimate AP and the scale of sigma without labels.")
@click.argument("model", type=click.Path(path_type=Path))
@click.option("--source", type=click.Path(path_type=Path), help="Labelled DATA of the source: learn from it anew.")
@click.option("--target", help="Unlabelled FRAMES to estimate MODEL on.")
@click.option(
    "--out", type=click.Path(path_type=Path), help="Checkpoint to write, with what was learned and estimated."
)
@click.option("--images", type=click.IntRange(2), default=24, show_default=True, help="In each of 50 corrupted sets.")
@click.option("--frames", type=click.IntRange(1), default=100, show_default=True, help="At most so many of --target.")
@click.option("--scale", is_flag=True, help="Multiply sigma by the estimated scale, in --out.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def estimate(
    model: Path,
    source: Path | None,
    target: str | None,
    out: Path | None,
    images: int,
    frames: int,
    scale: bool,
    seed: int,
    as_json: bool,
) -> None:
    """Estimate AP50, AP75 and the scale of sigma of MODEL, a checkpoint, on frames without labels.

    What is needed for that is learned from labelled images of the source, which MODEL must not have been trained on:
    by ptedge train with --val, or here with --source. ptedge adapt makes the estimate by itself at its end. The
    checkpoint in --out has both. Sigma stays as it is without --scale.

    \b
    Examples:
      ptedge estimate runs/source/model.pt --source source/val.json --out runs/source/estimating.pt
      ptedge estimate runs/adapted/model.pt --target target/frames
    """
    from dataclasses import replace

    from ptedge.artifacts.checkpoint import load_checkpoint, save_checkpoint
    from ptedge.config import to_dict
    from ptedge.data import open_dataset, require_images
    from ptedge.files import sha256_file
    from ptedge.folders import set_file_aside
    from ptedge.frames.source import index_frames

    from .finish import learn_fit, with_estimate

    if source is None and target is None:
        raise click.UsageError("give --source DATA to learn from, --target FRAMES to estimate on, or both")
    checkpoint = load_checkpoint(model)
    found = index_frames(target) if target is not None else None
    if source is not None:
        dataset = open_dataset(source, class_names=checkpoint.class_names, use="score")
        require_images(dataset)
        checkpoint = replace(checkpoint, label_free=learn_fit(checkpoint, dataset, images, seed))
    if found is not None:
        checkpoint = with_estimate(checkpoint, found, frames, seed, scale_by=sha256_file(model) if scale else None)
    if out is not None:
        set_file_aside(out)
        save_checkpoint(out, checkpoint)
        click.echo(f"wrote {out}", err=True)
    if as_json:
        parts = {"label_free": checkpoint.label_free, "estimate": checkpoint.estimate if found is not None else None}
        click.echo(json.dumps({name: to_dict(part) for name, part in parts.items() if part is not None}, indent=2))
