"""The loop that pretraining and adaptation share: batches in, updates out, logs, checkpoints, a clean stop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from typing import Any, Generic

import click
import torch

from ptedge.signals import finishing

from . import distributed
from .config import RunConfig
from .optim import NotFiniteError, scaled
from .progress import Stopwatch, TrainingProgress
from .run_folder import RunFolder
from .state import state_of
from .task import B, P, Task
from .update import Updater
from .watch.monitor import anchor_numbers
from .watch.supervise import Supervisor

STOPPING = "stopping after this step; files are written. Once more to abort"


@dataclass
class LoopResult:
    """How a loop ended.

    Attributes:
        step: optimiser steps done in all.
        interrupted: a signal stopped it.
        signal: its number, 0 for none.
        skipped: images that could not be read, path -> times met.
        last: values of the last logged step.
        idle: all steps had been done before; no file was touched.
        speed: images a second and what else was measured over the whole run.
        supervision: what guards did, and the signals of the start, the last and the chosen teacher.
    """

    step: int
    interrupted: bool = False
    signal: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    last: dict[str, Any] = field(default_factory=dict)
    idle: bool = False
    speed: dict[str, float] = field(default_factory=dict)
    supervision: dict[str, Any] = field(default_factory=dict)


def run_loop(
    task: Task[B, P],
    folder: RunFolder,
    config: RunConfig,
    optimizer: torch.optim.Optimizer,
    *,
    supervisor: Supervisor | None,
    resumed: Mapping[str, Any] | None,
    first_step: int,
) -> LoopResult:
    """Run a task until ``optim.steps`` or a signal.

    Args:
        task: what is done.
        folder: where files go.
        config: settings; of the optimiser, precision, and how often is logged and saved.
        optimizer: of all that the task trains.
        supervisor: reads monitors, rolls back and chooses what to deploy; without one that is always the last state.
        resumed: last.pt of the run that goes on, or ``None``.
        first_step: steps already done.

    Raises:
        TrainingError: non-finite loss and no guard; the last checkpoint on disk is intact.
    """
    before, steps = resumed or {}, config.optim.steps
    result = LoopResult(first_step, skipped=dict(before.get("skipped", {})), last=dict(before.get("last", {})))
    if first_step >= steps and resumed is not None:
        click.echo(
            f"nothing is left to do: {folder.path} has {first_step} steps, and optim.steps is {steps}. "
            f"Raise optim.steps to go on",
            err=True,
        )
        result.idle = True
        return result
    if supervisor is not None and not supervisor.begin(resumed):
        result.idle = True
        return result
    loop = _Loop(task, folder, config, optimizer, supervisor, result)
    loop.updater.load_state(before.get("scaler", {}))
    with (
        TrainingProgress(task.name, steps, first_step) as progress,
        finishing(STOPPING) as stop,
        closing(task.stream(first_step)) as stream,
    ):
        for step in range(first_step, steps):
            with loop.watch.waiting():
                given = [next(stream) for _ in range(config.optim.accumulate)]
            loop.count_skipped(given, progress)
            done = loop.step(step, given)
            loop.tell(done, progress)
            if done.stop or distributed.any_of(stop.event.is_set()):
                result.interrupted = result.step < steps and not done.stop
                break
            if result.step % config.checkpoint_every == 0 and result.step < steps:
                loop.save()
        loop.save()
        result.signal = distributed.largest(stop.signal) if result.interrupted else 0
    result.speed = loop.watch.summary()
    if supervisor is not None:
        result.supervision = supervisor.summary(result.step)
    return result


@dataclass
class _Done:
    """One step: numbers to be averaged over processes, what the supervisor adds, notes, and whether it ends the run."""

    numbers: dict[str, Any] = field(default_factory=dict)
    watched: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    stop: bool = False


class _Loop(Generic[B, P]):
    """What goes from step to step: the state of a run and what is done with it."""

    def __init__(
        self,
        task: Task[B, P],
        folder: RunFolder,
        config: RunConfig,
        optimizer: torch.optim.Optimizer,
        supervisor: Supervisor | None,
        result: LoopResult,
    ) -> None:
        self.task = task
        self.folder = folder
        self.config = config
        self.optimizer = optimizer
        self.supervisor = supervisor
        self.first_step = result.step
        self.result = result
        self.optim = scaled(config.optim, distributed.size())
        self.updater = Updater(task, optimizer, self.optim, config.precision)
        images = task.images * config.optim.accumulate * distributed.size()
        self.watch = Stopwatch(images, task.student.pixel_mean.device)
        self.seen: set[str] = set()

    def step(self, step: int, given: Sequence[B]) -> _Done:
        """One update, counted from 0, and what follows it."""
        self.result.step = step + 1
        supervisor = self.supervisor
        if supervisor is None:
            values, numbers = self.updater(step, given)
            self.task.after_step()
            return _Done({**values, **numbers})
        self.updater.optim = supervisor.scaled(self.optim)
        done = _Done()
        try:
            values, numbers = self.updater(step, given)
        except NotFiniteError as error:
            trip = supervisor.not_finite(step + 1, str(error))
            if trip is None:
                raise
        else:
            self.task.after_step()
            done.numbers = {**values, **numbers}
            signals, trip = supervisor.after_step(step + 1, values["grad_norm"], numbers.get("pseudo_boxes"))
            if signals:
                done.watched["monitor"] = signals
        if trip is not None:
            done.watched["guard"] = asdict(trip)
            done.notes.append(trip.sentence)
        if supervisor.starving:
            done.notes.append(f"no pseudo box in the last {supervisor.hungry} steps: nothing is learnt from the target")
        done.stop = supervisor.guard.stopped
        return done

    def tell(self, done: _Done, progress: TrainingProgress) -> None:
        """Show a step, and log it when it is time or something happened."""
        result = self.result
        for note in done.notes:
            progress.note(note)
        if result.step % self.config.log_every and result.step not in (1, self.config.optim.steps) and not done.notes:
            progress.step(result.step)
            return
        values = {**distributed.mean_numbers(done.numbers), **done.watched}
        if self.supervisor is not None:
            values.update(anchor_numbers(self.task.student))
        values["lr"] = self.optimizer.param_groups[0]["lr"]
        values.update(self.watch.read(result.step - self.first_step))
        result.last = {"step": result.step, **{k: _round(v) for k, v in values.items()}}
        self.folder.log(result.last)
        progress.log(result.step, values, _watched_text(values))

    def count_skipped(self, given: Sequence[B], progress: TrainingProgress) -> None:
        """Count images that could not be read, and name each one once."""
        for image, reason in (entry for part in given for entry in part.skipped):
            if image not in self.seen:
                progress.note(f"skipped: {reason}")
                self.seen.add(image)
            self.result.skipped[image] = self.result.skipped.get(image, 0) + 1

    def save(self) -> None:
        """Write what to deploy, and last.pt."""
        result, supervisor = self.result, self.supervisor
        result.skipped = _merge(distributed.gather(result.skipped))
        chosen = supervisor.chosen(result.step).step if supervisor is not None else None
        if not distributed.is_main():
            result.skipped = {}  # the first process has them
            return
        state: dict[str, Any] = {"step": result.step, "optimizer": self.optimizer.state_dict()}
        state.update({name: state_of(part) for name, part in self.task.parts.items()}, **self.task.identity)
        state.update(skipped=result.skipped, last=result.last, scaler=self.updater.state())
        if supervisor is not None:
            state["supervisor"] = supervisor.state(result.step)
        self.folder.save(self.task.checkpoint(result.step), state, chosen)


def _watched_text(values: Mapping[str, Any]) -> str:
    """The few monitors that are shown beside the losses."""
    parts = [f"pseudo boxes {values['pseudo_boxes']:.1f}"] if "pseudo_boxes" in values else []
    if signals := values.get("monitor"):
        parts.append(f"objects {signals['objects']:.2f}")
        parts.append(
            f"agrees with source {signals['source_agreement']:.2f}, student {signals['student_agreement']:.2f}"
        )
        parts.append(f"strong view {signals['consistency']:.2f}")
    return ", ".join(parts)


def _merge(counts: list[dict[str, int]]) -> dict[str, int]:
    merged: dict[str, int] = {}
    for one in counts:
        for name, count in one.items():
            merged[name] = merged.get(name, 0) + count
    return merged


def _round(value: Any) -> Any:
    return round(value, 6) if isinstance(value, float) else value
