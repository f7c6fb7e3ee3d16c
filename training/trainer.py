"""The loop that pretraining and adaptation share: batches in, updates out, logs, checkpoints, a clean stop."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import click
import torch
from torch import Tensor

from ptedge.checkpoint import Checkpoint
from ptedge.detector.model import ProbabilisticFasterRCNN

from .config import OptimConfig
from .data import Batch, Stream
from .optim import optimise
from .progress import Stopwatch, TrainingProgress, stop_request
from .run_folder import RunFolder, state_of


@dataclass
class LoopResult:
    """How a loop ended.

    Attributes:
        step: optimiser steps done in all.
        interrupted: a signal stopped it.
        skipped: images that could not be read, path -> times met.
        last: values of the last logged step.
        idle: all steps had been done before; no file was touched.
    """

    step: int
    interrupted: bool = False
    skipped: dict[str, int] = field(default_factory=dict)
    last: dict[str, Any] = field(default_factory=dict)
    idle: bool = False


StepFunction = Callable[[int, list[Batch]], tuple[dict[str, Tensor], dict[str, float]]]


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
    monitor: Callable[[list[Batch]], dict[str, Any]] | None = None,
) -> LoopResult:
    """Run until ``optim.steps`` or a signal.

    Args:
        name: shown on the bar.
        folder: where files go.
        student: the model that is optimised.
        optimizer: of :func:`~ptedge.training.optim.build_optimizer`.
        optim: its settings.
        streams: batches from ``first_step`` on, one generator a domain; closed at the end.
        losses_of: (step, batches) -> weighted losses and numbers to log.
        resumed: last.pt of the run that goes on, or ``None``.
        first_step: steps already done.
        log_every: steps between lines of metrics.jsonl.
        checkpoint_every: steps between checkpoints.
        after_step: called after each update (EMA).
        make_checkpoint: step -> what to deploy.
        extra_state: what last.pt needs beside student and optimiser.
        monitor: called at logged steps, its values are logged too.

    Raises:
        TrainingError: non-finite loss; the last checkpoint on disk is intact.
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
    watch = Stopwatch()
    seen: set[str] = set()

    def save() -> None:
        state = {"step": result.step, "student": state_of(student), "optimizer": optimizer.state_dict()}
        told = {"skipped": result.skipped, "last": result.last}
        folder.save(make_checkpoint(result.step), {**state, **told, **extra_state()})

    with (
        TrainingProgress(name, optim.steps, first_step) as progress,
        stop_request() as should_stop,
        ExitStack() as open_streams,
    ):
        for stream in streams:
            open_streams.callback(stream.close)
        for step in range(first_step, optim.steps):
            with watch.waiting():
                batches = [next(stream) for stream in streams]
            for batch in batches:
                for image, reason in batch.skipped:
                    if image not in seen:
                        progress.note(f"skipped: {reason}")
                        seen.add(image)
                    result.skipped[image] = result.skipped.get(image, 0) + 1
            losses, numbers = losses_of(step, batches)
            values: dict[str, Any] = optimise(student, optimizer, losses, step, optim)
            after_step()
            result.step = step + 1
            if result.step % log_every == 0 or result.step in (1, optim.steps):
                values.update(numbers)
                if monitor is not None:
                    values.update(monitor(batches))
                values["lr"] = optimizer.param_groups[0]["lr"]
                values.update(watch.read(min(log_every, result.step - first_step)))
                result.last = {"step": result.step, **{k: _round(v) for k, v in values.items()}}
                folder.log(result.last)
                extra = f"pseudo boxes {numbers['pseudo_boxes']:.1f}" if "pseudo_boxes" in numbers else ""
                progress.log(result.step, values, extra)
            else:
                progress.step(result.step)
            if should_stop():
                result.interrupted = result.step < optim.steps
                break
            if result.step % checkpoint_every == 0 and result.step < optim.steps:
                save()
        save()
    return result


def prepare_torch(seed: int) -> torch.device:
    """Seed torch and pick the device.

    Small gradients become denormal numbers, which convolutions on a CPU handle many times slower than zeros (measured:
    a step takes a quarter of the time with them flushed), so they are flushed to zero.
    """
    torch.set_flush_denormal(True)
    torch.manual_seed(seed)
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def _round(value: Any) -> Any:
    return round(value, 6) if isinstance(value, float) else value
