"""A run from its folder to its summary, the same for pretraining and adaptation."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import torch

from ptedge.folders import hold_folder
from ptedge.machine.heap import keeping_freed_memory

from . import distributed
from .config import RunConfig
from .device import prepared_torch
from .loop import LoopResult, run_loop
from .optim import add_parameters, build_optimizer, describe_step, scaled
from .recipes.recipe import C, Settled
from .run_folder import RunFolder
from .state import read_state, restore
from .task import B, P, Task
from .validate import check_val, report


@dataclass(frozen=True)
class Run:
    """A run whose models are not built yet.

    Attributes:
        folder: where its files go.
        resumed: last.pt of the run that goes on; ``None`` for a new one.
        device: that computes; torch is seeded.
        val: labelled DATA to report on at the end.
        started: ``time.perf_counter()`` at the start of the command.
    """

    folder: RunFolder
    resumed: dict[str, Any] | None
    device: torch.device
    val: Path | None
    started: float


@contextmanager
def begin_run(
    out: Path,
    config: RunConfig,
    identity: Mapping[str, Any],
    class_names: tuple[str, ...],
    *,
    resume: bool,
    val: Path | None,
    started: float,
) -> Iterator[Run]:
    """Hold and open the folder, read what the run goes on from, and seed torch: what is built next follows from that.

    Args:
        out: RUN folder.
        config: settings.
        identity: of the task, see :class:`~ptedge.training.task.Task`.
        class_names: of the model.
        resume: continue ``out``.
        val: labelled DATA to report on at the end; it influences nothing.
        started: ``time.perf_counter()`` at the start of the command.

    Yields:
        The run; the folder is held until the end of the block.

    Raises:
        PtedgeError: bad ``val``; the folder cannot be used, or another process works in it; the run in it is another.
    """
    check_val(val, class_names)
    with hold_folder(out, f"ptedge {identity['command']}") if distributed.is_main() else nullcontext():
        folder = RunFolder(out, resume=resume, curves=config.curves)
        resumed = read_state(folder.last, identity) if folder.resume else None
        with keeping_freed_memory(), prepared_torch(config.seed) as device:
            yield Run(folder, resumed, device, val, started)


def carry_out(task: Task[B, P], run: Run, settled: Settled[C]) -> LoopResult:
    """Do all steps of a task, and report.

    Args:
        task: its models are on the run's device.
        run: of :func:`begin_run`.
        settled: settings, and which of them were chosen for the data and the machine.

    Raises:
        PtedgeError: see the error tree.
    """
    folder, processes, config = run.folder, distributed.size(), settled.config
    optim = scaled(config.optim, processes)
    optimizer = build_optimizer(task.student, optim)
    for module in task.others:
        add_parameters(optimizer, module, optim)
    first_step = 0 if run.resumed is None else restore(folder.last, run.resumed, optimizer, task.parts)
    task.start(folder, resumed=run.resumed is not None)
    if first_step < config.optim.steps or run.resumed is None:
        folder.write_config(config)
        folder.start_metrics(first_step)
    for line in (*settled.lines, *task.describe(), describe_step(config.optim, processes)):
        click.echo(line, err=True)
    supervisor = task.supervisor(folder, optimizer)
    result = run_loop(
        task, folder, config, optimizer, supervisor=supervisor, resumed=run.resumed, first_step=first_step
    )
    summary = {**task.summary(), "recipe": settled.chosen, "seconds": round(time.perf_counter() - run.started, 1)}
    report(folder, result, summary, run.val, config.convention)
    return result
