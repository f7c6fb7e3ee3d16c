"""``ptedge train`` and ``ptedge adapt``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])
GPU_PRESETS = ("8gb", "12gb", "24gb", "agx")  # of presets.py, which --help need not load
PRESETS = ("paper", "edge", *GPU_PRESETS)


def _run_options(function: F) -> F:
    for option in reversed(
        [
            click.option("--out", required=True, type=click.Path(path_type=Path), help="RUN folder to write."),
            click.option("--config", "config_file", type=click.Path(path_type=Path), help="TOML with settings."),
            click.option("--preset", type=click.Choice(PRESETS), help="Settings by name; --config and --set win."),
            click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Change one setting."),
            click.option(
                "--val", type=click.Path(path_type=Path), help="Labelled DATA to report on; no weight depends on it."
            ),
            click.option("--resume", is_flag=True, help="Continue the run in --out."),
        ]
    ):
        function = option(function)
    return function


@click.command(short_help="Pretrain a detector on labelled source images.")
@click.argument("source", type=click.Path(path_type=Path))
@_run_options
def train(
    source: Path,
    out: Path,
    config_file: Path | None,
    preset: str | None,
    overrides: tuple[str, ...],
    val: Path | None,
    resume: bool,
) -> dict[str, Any]:
    """Pretrain a detector on labelled images.

    SOURCE is a COCO json, a Pascal VOC, YOLO or KITTI folder, or a TOML description. RUN gets model.pt, last.pt,
    config.toml, metrics.jsonl, summary.json, TensorBoard events/ and plots/. What is
    not set is chosen for the data and the machine, and said.

    \b
    Example:
      ptedge train source/train.json --out runs/source --set model.input_size=[240,416]
    """
    from .api import RunInterruptedError
    from .api import train as run

    try:
        done = run(source, out=out, val=val, config=config_file, preset=preset, settings=overrides, resume=resume)
    except RunInterruptedError as ended:
        sys.exit(128 + ended.signal)  # as a shell reports a program that a signal ended
    return done.to_json()


@click.command(short_help="Adapt a detector to unlabelled target frames.")
@click.argument("checkpoint", type=click.Path(path_type=Path))
@click.option("--target", required=True, help="Unlabelled FRAMES: folder, glob, list, video, field folder, store.")
@click.option("--source", type=click.Path(path_type=Path), help="Labelled DATA the checkpoint was trained on.")
@click.option("--source-free", is_flag=True, help="Adapt from the target frames alone.")
@click.option("--labels", type=click.Path(path_type=Path), help="DATA of a few (10 to 50) labelled target frames.")
@click.option(
    "--teacher-boxes", type=click.Path(path_type=Path), help="COCO json of what another detector found in the frames."
)
@_run_options
def adapt(
    checkpoint: Path,
    target: str,
    source: Path | None,
    source_free: bool,
    labels: Path | None,
    teacher_boxes: Path | None,
    out: Path,
    config_file: Path | None,
    preset: str | None,
    overrides: tuple[str, ...],
    val: Path | None,
    resume: bool,
) -> dict[str, Any]:
    """Adapt a detector to unlabelled frames by Probabilistic Teacher.

    CHECKPOINT is a model.pt of ptedge train or adapt. Give --source, or --source-free; with either, --labels adds a
    handful of labelled target frames, and --teacher-boxes what another detector, run elsewhere, found. RUN gets
    model.pt (the teacher to deploy, chosen without labels), last_model.pt (the last one), checkpoints/ (earlier ones),
    last.pt (to resume), config.toml, metrics.jsonl, summary.json, TensorBoard events/ and plots/.

    \b
    Examples:
      ptedge adapt runs/source/model.pt --target frames/ --source source/train.json --out runs/adapted
      ptedge adapt runs/source/model.pt --target drive.mp4 --source-free --out runs/adapted
      ptedge adapt runs/source/model.pt --target frames/ --source-free --labels ten.json --out runs/adapted
      ptedge adapt runs/source/model.pt --target frames/ --source-free --teacher-boxes big.json --out runs/adapted
    """
    from .api import RunInterruptedError
    from .api import adapt as run

    if (source is None) == (not source_free):
        raise click.UsageError("give either --source DATA or --source-free")
    domains: dict[str, Any] = {"source": source, "source_free": source_free, "val": val}
    domains |= {"labels": labels, "teacher_boxes": teacher_boxes}
    settings: dict[str, Any] = {"config": config_file, "preset": preset, "settings": overrides}
    try:
        done = run(checkpoint, target, out=out, resume=resume, **domains, **settings)
    except RunInterruptedError as ended:
        sys.exit(128 + ended.signal)  # as a shell reports a program that a signal ended
    return done.to_json()
