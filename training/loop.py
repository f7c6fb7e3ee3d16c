"""The loop that pretraining and adaptation share: batches in, updates out, logs, checkpoints, a clean stop."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from typing import Any

import click
import cv2
import torch

from ptedge.artifacts.checkpoint import Checkpoint
from ptedge.detector.model import ProbabilisticFasterRCNN

from . import distributed
from .batches.steps import Batch, Stream
from .config import OptimConfig
from .optim import NotFiniteError, step_images
from .progress import Stopwatch, TrainingProgress, stop_request
from .run_folder import RunFolder, state_of
from .update import StepFunction, Updater
from .watch.monitor import anchor_numbers
from .watch.supervise import Supervisor


@dataclass
class LoopResult:
    """How a loop ended.

    Attributes:
        step: optimiser steps done in all.
        interrupted: a signal stopped it.
        skipped: images that could not be read, path -> times met.
        last: values of the last logged step.
        idle: all steps had been done before; no file was touched.
        speed: images a second and what else was measured over the whole run.
        supervision: what guards did, and the signals of the start, the last and the chosen teacher.
    """

    step: int
    interrupted: bool = False
    skipped: dict[str, int] = field(default_factory=dict)
    last: dict[str, Any] = field(default_factory=dict)
    idle: bool = False
    speed: dict[str, float] = field(default_factory=dict)
    supervision: dict[str, Any] = field(default_factory=dict)


def run_loop(
    name: str,
    folder: RunFolder,
    student: ProbabilisticFasterRCNN,
    optimizer: torch.optim.Optimizer,
    optim: OptimConfig,
    streams: list[Stream],
    losses_of: StepFunction,
    *,
    resumed: Mapping[str, Any] | None,
    first_step: int,
    log_every: int,
    checkpoint_every: int,
    after_step: Callable[[], None],
    make_checkpoint: Callable[[int], Checkpoint],
    extra_state: Callable[[], dict[str, Any]],
    supervisor: Supervisor | None = None,
    others: Sequence[torch.nn.Module] = (),
    precision: str = "fp32",
) -> LoopResult:
    """Run until ``optim.steps`` or a signal.

    Args:
        name: shown on the bar.
        folder: where files go.
        student: the model that is optimised.
        optimizer: of :func:`~ptedge.training.optim.build_optimizer`.
        optim: its settings, learning rates as they are used.
        streams: batches from ``first_step`` on, one generator a domain; closed at the end.
        losses_of: (step, batches, normaliser) -> weighted losses and numbers to log.
        resumed: last.pt of the run that goes on, or ``None``.
        first_step: steps already done.
        log_every: steps between lines of metrics.jsonl.
        checkpoint_every: steps between checkpoints.
        after_step: called after each update (EMA).
        make_checkpoint: step -> what to deploy.
        extra_state: what last.pt needs beside student and optimiser.
        supervisor: reads monitors, rolls back and chooses what to deploy; without one that is always the last state.
        others: modules that are trained beside the student.
        precision: ``fp32``, ``bf16`` or ``fp16``.

    Raises:
        TrainingError: non-finite loss and no guard; the last checkpoint on disk is intact.
    """
    before = resumed or {}
    result = LoopResult(first_step, skipped=dict(before.get("skipped", {})), last=dict(before.get("last", {})))
    if first_step >= optim.steps and resumed is not None:
        click.echo(
            f"nothing is left to do: {folder.path} has {first_step} steps, and optim.steps is {optim.steps}. "
            f"Raise optim.steps to go on",
            err=True,
        )
        result.idle = True
        return result
    if supervisor is not None and not supervisor.begin(resumed):
        result.idle = True
        return result
    updater = Updater(losses_of, student, others, optimizer, optim, precision)
    updater.load_state(before.get("scaler", {}))
    watch = Stopwatch(step_images(optim, distributed.size()) * len(streams), student.pixel_mean.device)
    seen: set[str] = set()

    def save() -> None:
        result.skipped = _merge(distributed.gather(result.skipped))
        chosen = supervisor.chosen(result.step).step if supervisor is not None else None
        if not distributed.is_main():
            result.skipped = {}  # the first process has them
            return
        state = {"step": result.step, "student": state_of(student), "optimizer": optimizer.state_dict()}
        told = {"skipped": result.skipped, "last": result.last, "scaler": updater.state()}
        if supervisor is not None:
            told["supervisor"] = supervisor.state(result.step)
        folder.save(make_checkpoint(result.step), {**state, **told, **extra_state()}, chosen)

    with (
        TrainingProgress(name, optim.steps, first_step) as progress,
        stop_request() as should_stop,
        ExitStack() as open_streams,
    ):
        for stream in streams:
            open_streams.callback(stream.close)
        for step in range(first_step, optim.steps):
            with watch.waiting():
                parts = [[next(stream) for stream in streams] for _ in range(optim.accumulate)]
            _count_skipped(parts, result, seen, progress)
            done = _step(step, parts, updater, optim, after_step, supervisor)
            result.step = step + 1
            for note in done.notes:
                progress.note(note)
            if result.step % log_every == 0 or result.step in (1, optim.steps) or done.notes:
                values = {**distributed.mean_numbers(done.numbers), **done.watched}
                if supervisor is not None:
                    values.update(anchor_numbers(student))
                values["lr"] = optimizer.param_groups[0]["lr"]
                values.update(watch.read(result.step - first_step))
                result.last = {"step": result.step, **{k: _round(v) for k, v in values.items()}}
                folder.log(result.last)
                progress.log(result.step, values, _watched_text(values))
            else:
                progress.step(result.step)
            if done.stop or distributed.any_of(should_stop()):
                result.interrupted = result.step < optim.steps and not done.stop
                break
            if result.step % checkpoint_every == 0 and result.step < optim.steps:
                save()
        save()
    result.speed = watch.summary()
    if supervisor is not None:
        result.supervision = supervisor.summary(result.step)
    return result


def _count_skipped(parts: list[list[Batch]], result: LoopResult, seen: set[str], progress: TrainingProgress) -> None:
    for image, reason in (entry for part in parts for batch in part for entry in batch.skipped):
        if image not in seen:
            progress.note(f"skipped: {reason}")
            seen.add(image)
        result.skipped[image] = result.skipped.get(image, 0) + 1


@dataclass
class _Done:
    """One step: numbers to be averaged over processes, what the supervisor adds, notes, and whether it ends the run."""

    numbers: dict[str, Any] = field(default_factory=dict)
    watched: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    stop: bool = False


def _step(
    step: int,
    parts: list[list[Batch]],
    updater: Updater,
    optim: OptimConfig,
    after_step: Callable[[], None],
    supervisor: Supervisor | None,
) -> _Done:
    if supervisor is None:
        values, numbers = updater(step, parts)
        after_step()
        return _Done({**values, **numbers})
    updater.optim = supervisor.scaled(optim)
    done = _Done()
    try:
        values, numbers = updater(step, parts)
    except NotFiniteError as error:
        trip = supervisor.not_finite(step + 1, str(error))
        if trip is None:
            raise
    else:
        after_step()
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


def prepare_torch(seed: int) -> torch.device:
    """Seed torch, pick the device, and let it be fast.

    On a CPU, small gradients become denormal numbers, which convolutions handle many times slower than zeros
    (measured: a step takes a quarter of the time with them flushed), so they are flushed to zero. On a GPU, input sizes
    are fixed, so the fastest convolution is looked for once; float32 products use TF32 (ten bits of mantissa) where the
    GPU has it.
    """
    # OpenCV's threads do not survive the fork that starts workers, and a worker that then sets their number hangs.
    # Images are read here before workers start, so there must be no such threads
    cv2.setNumThreads(1)
    torch.set_flush_denormal(True)
    torch.manual_seed(seed)
    if not torch.cuda.is_available():
        return torch.device("cpu")
    device = torch.device("cuda", distributed.local_rank())
    torch.cuda.set_device(device)
    torch.backends.cudnn.benchmark = True
    torch.set_float32_matmul_precision("high")
    return device


def _round(value: Any) -> Any:
    return round(value, 6) if isinstance(value, float) else value
