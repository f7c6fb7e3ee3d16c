"""``ptedge.train`` and ``ptedge.adapt``: what the commands of these names do, for them and for Python."""

from __future__ import annotations

import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ptedge.errors import ConfigError, named_extras
from ptedge.verbosity import quiet as silence

if TYPE_CHECKING:
    from .config import AdaptConfig, TrainConfig
    from .loop import LoopResult

PathName = str | PathLike[str]
Settings = Mapping[str, Any] | Sequence[str]


class RunInterruptedError(KeyboardInterrupt):
    """A signal ended a run early, after all files were written; ``resume=True`` goes on.

    Attributes:
        signal: its number.
    """

    def __init__(self, number: int, step: int) -> None:
        super().__init__(f"{signal.Signals(number).name} ended the run after step {step}; its files are whole")
        self.signal = number


@dataclass(frozen=True)
class TrainingResult:
    """A finished run.

    Attributes:
        out: its RUN folder.
        model: the checkpoint to deploy.
        steps: optimiser steps done.
        summary: as in summary.json; ``summary["val"]`` has the scores where there was ``val``.
    """

    out: Path
    model: Path
    steps: int
    summary: Mapping[str, Any] = field(repr=False)

    def to_json(self) -> dict[str, Any]:
        """As ``--json`` prints it."""
        return {"out": str(self.out), "model": str(self.model), "steps": self.steps, "summary": dict(self.summary)}


def train(
    source: PathName,
    *,
    out: PathName,
    val: PathName | None = None,
    config: PathName | None = None,
    preset: str | None = None,
    settings: Settings = (),
    resume: bool = False,
    quiet: bool = False,
) -> TrainingResult:
    """Pretrain a detector on labelled images, as ``ptedge train`` does.

    Args:
        source: COCO json, Pascal VOC, YOLO or KITTI folder, or a TOML description.
        out: RUN folder to write.
        val: labelled DATA to report on at the end; it changes nothing.
        config: TOML file with settings.
        preset: settings by name, ``paper``, ``edge`` or for a GPU; ``config`` and ``settings`` win.
        settings: changes, ``{"optim.steps": 600}`` or as ``--set`` takes them, ``["optim.steps=600"]``.
        resume: continue the run in ``out``.
        quiet: tell nothing on stderr.

    Raises:
        RunInterruptedError: a signal ended the run; its files are whole.
        PtedgeError: see the error tree.
    """
    with named_extras(), silence(quiet):
        from .config import TrainConfig
        from .distributed import joined
        from .pretrain import pretrain

        with joined():
            run, data = Path(out), _path(val)
            asked = _Asked("train", "train", run, _path(config), preset, settings, resume)
            chosen, given = asked.load(TrainConfig)
            return _finished(run, pretrain(Path(source), run, chosen, given=given, resume=resume, val=data))


def adapt(
    checkpoint: PathName,
    target: PathName,
    *,
    out: PathName,
    source: PathName | None = None,
    source_free: bool = False,
    labels: PathName | None = None,
    teacher_boxes: PathName | None = None,
    val: PathName | None = None,
    config: PathName | None = None,
    preset: str | None = None,
    settings: Settings = (),
    resume: bool = False,
    quiet: bool = False,
) -> TrainingResult:
    """Adapt a detector to unlabelled frames, as ``ptedge adapt`` does. Give ``source`` or ``source_free=True``.

    Args:
        checkpoint: ``model.pt`` of train or adapt.
        target: unlabelled FRAMES: folder, glob, list file, video or field folder.
        out: RUN folder to write.
        source: labelled DATA the checkpoint was trained on.
        source_free: adapt from the target frames alone.
        labels: DATA of a few (10 to 50) labelled target frames.
        teacher_boxes: COCO json of what another detector found in the frames.
        val: labelled DATA to report on at the end; it changes nothing.
        config: TOML file with settings.
        preset: settings by name, ``paper`` or for a GPU; ``config`` and ``settings`` win.
        settings: changes, ``{"optim.steps": 600}`` or as ``--set`` takes them, ``["optim.steps=600"]``.
        resume: continue the run in ``out``.
        quiet: tell nothing on stderr.

    Raises:
        RunInterruptedError: a signal ended the run; its files are whole.
        ConfigError: both of ``source`` and ``source_free``, or none.
        PtedgeError: see the error tree.
    """
    if (source is None) == (not source_free):
        raise ConfigError("give either source=DATA or source_free=True")
    with named_extras(), silence(quiet):
        from .adapt import adapt as run_adapt
        from .config import AdaptConfig
        from .distributed import joined

        with joined():
            run = Path(out)
            kind = "source_free" if source_free else "adapt"
            chosen, given = _Asked("adapt", kind, run, _path(config), preset, settings, resume).load(AdaptConfig)
            places = {"source": source, "labels": labels, "teacher_boxes": teacher_boxes, "val": val}
            data = {name: _path(place) for name, place in places.items()}
            start = Path(checkpoint)
            return _finished(run, run_adapt(start, str(target), run, chosen, **data, given=given, resume=resume))


T = TypeVar("T", "TrainConfig", "AdaptConfig")


@dataclass(frozen=True)
class _Asked:
    """Where a run's settings come from; later ones win: preset, what a run began with, file, changes."""

    command: str
    kind: str
    out: Path
    config: Path | None
    preset: str | None
    settings: Settings
    resume: bool

    def load(self, cls: type[T]) -> tuple[T, frozenset[str]]:
        """The settings, and the keys that were set.

        Args:
            cls: of the command.
        """
        from ptedge.config import dotted_keys, from_dict, merged_tables, read_toml, settings_given
        from ptedge.detector.config import EARLIER

        from .recipes.presets import describe_preset, preset_values
        from .state import read_state

        below: dict[str, Any] = {}
        if self.preset is not None:
            below = preset_values(self.preset, self.kind)
            click.echo(describe_preset(self.preset, below), err=True)
        saved = self.out / "config.toml"
        goes_on = self.resume and saved.exists()
        where = self._where(saved if goes_on else None)
        try:
            if goes_on:
                # a run goes on as what it was begun as, also where its settings do not say what
                known = {key: value for key, value in EARLIER.items() if hasattr(cls().model, key)}
                below = merged_tables(merged_tables(below, {"model": known}), read_toml(saved))
            values = settings_given(self.config, self.settings, below)
            return from_dict(cls, values, where), dotted_keys(values)
        except ConfigError:
            if goes_on and self.config is None and (self.out / "last.pt").exists():
                read_state(self.out / "last.pt", {"command": self.command})  # another command's settings: say that
            raise

    def _where(self, saved: Path | None) -> str:
        files = [str(file) for file in (saved, self.config) if file is not None]
        return " and ".join([*files, *(["--set"] if self.settings or not files else [])])


def _finished(out: Path, result: LoopResult) -> TrainingResult:
    from .distributed import wait_for_all
    from .run_folder import read_summary

    watched, model = result.supervision, out / "model.pt"
    if watched.get("stopped_by_guard"):
        click.echo(f"a guard stopped the run after {len(watched['guards'])} trips, see summary.json", err=True)
    if watched and watched["chosen"]["step"] != watched["last"]["step"]:
        chosen = watched["chosen"]
        which = f"the model of step {chosen['step']}" if chosen["step"] else "the model that the run began with"
        click.echo(f"model.pt is {which}: by its signals the last one ({out / 'last_model.pt'}) is worse", err=True)
    done = "interrupted" if result.interrupted else "done"
    click.echo(f"{done} after {result.step} steps: {model}", err=True)
    if result.interrupted:
        click.echo(f"continue with the same command and --resume, or use {model} as it is", err=True)
        wait_for_all()  # a launcher ends all processes when the first one ends
        raise RunInterruptedError(result.signal, result.step)
    return TrainingResult(out, model, result.step, read_summary(out))


def _path(name: PathName | None) -> Path | None:
    return None if name is None else Path(name)
