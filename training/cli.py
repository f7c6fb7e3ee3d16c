"""``ptedge train`` and ``ptedge adapt``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from .config import AdaptConfig, TrainConfig
    from .loop import LoopResult

F = TypeVar("F", bound=Callable[..., Any])
PRESETS = ("8gb", "12gb", "24gb", "agx")  # of presets.py, which --help need not load


def _run_options(function: F) -> F:
    for option in reversed(
        [
            click.option("--out", required=True, type=click.Path(path_type=Path), help="RUN folder to write."),
            click.option("--config", "config_file", type=click.Path(path_type=Path), help="TOML with settings."),
            click.option("--preset", type=click.Choice(PRESETS), help="Settings for a GPU; --config and --set win."),
            click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Change one setting."),
            click.option("--val", type=click.Path(path_type=Path), help="Labelled DATA to report on; changes nothing."),
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
) -> None:
    """Pretrain a detector on labelled images.

    SOURCE is a COCO json, a Pascal VOC, YOLO or KITTI folder, or a TOML description. RUN gets model.pt, last.pt,
    config.toml, metrics.jsonl, summary.json, TensorBoard events/ and plots/.

    \b
    Example:
      ptedge train source/train.json --out runs/source --set model.input_size=[240,416] --set optim.steps=600
    """
    from .config import TrainConfig
    from .distributed import joined
    from .pretrain import pretrain

    with joined():
        config = _load("train", TrainConfig, out, config_file, overrides, resume, preset)
        _finish(out, pretrain(source, out, config, resume=resume, val=val))


@click.command(short_help="Adapt a detector to unlabelled target frames.")
@click.argument("checkpoint", type=click.Path(path_type=Path))
@click.option("--target", required=True, help="Unlabelled FRAMES: folder, glob, list file, video or field folder.")
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
) -> None:
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
    from .adapt import adapt as run_adapt
    from .config import SOURCE_FREE_DEFAULTS, AdaptConfig
    from .distributed import joined

    if (source is None) == (not source_free):
        raise click.UsageError("give either --source DATA or --source-free")
    defaults = SOURCE_FREE_DEFAULTS if source_free else None
    with joined():
        config = _load("adapt", AdaptConfig, out, config_file, overrides, resume, preset, defaults)
        given = {"source": source, "labels": labels, "teacher_boxes": teacher_boxes}
        _finish(out, run_adapt(checkpoint, target, out, config, **given, resume=resume, val=val))


T = TypeVar("T", "TrainConfig", "AdaptConfig")


def _load(
    command: str,
    cls: type[T],
    out: Path,
    config_file: Path | None,
    overrides: tuple[str, ...],
    resume: bool,
    preset: str | None,
    defaults: dict[str, Any] | None = None,
) -> T:
    from ptedge.config import load_config
    from ptedge.detector.config import EARLIER
    from ptedge.errors import ConfigError

    from .presets import describe_preset, preset_values
    from .state import read_state

    saved = out / "config.toml"
    if resume and config_file is None and saved.exists():
        config_file = saved
        # a run goes on as what it was begun as, also where its settings do not say what
        known = {key: value for key, value in EARLIER.items() if hasattr(cls().model, key)}
        defaults = {**(defaults or {}), "model": known}
    if preset is not None:
        defaults = preset_values(preset, defaults or {}, load_config(cls, None, (), defaults).optim)
        click.echo(describe_preset(preset, defaults), err=True)
    try:
        return load_config(cls, config_file, overrides, defaults)
    except ConfigError:
        if resume and config_file == saved and (out / "last.pt").exists():
            read_state(out / "last.pt", {"command": command})  # another command's settings: say that
        raise


def _finish(out: Path, result: LoopResult) -> None:
    from .distributed import wait_for_all

    watched = result.supervision
    if watched.get("stopped_by_guard"):
        click.echo(f"a guard stopped the run after {len(watched['guards'])} trips, see summary.json", err=True)
    if watched and watched["chosen"]["step"] != watched["last"]["step"]:
        chosen = watched["chosen"]
        which = f"the model of step {chosen['step']}" if chosen["step"] else "the model that the run began with"
        click.echo(f"model.pt is {which}: by its signals the last one ({out / 'last_model.pt'}) is worse", err=True)
    done = "interrupted" if result.interrupted else "done"
    click.echo(f"{done} after {result.step} steps: {out / 'model.pt'}", err=True)
    if result.interrupted:
        click.echo(f"continue with the same command and --resume, or use {out / 'model.pt'} as it is", err=True)
        wait_for_all()  # a launcher ends all processes when the first one ends
        sys.exit(128 + result.signal)  # as a shell reports a program that a signal ended
