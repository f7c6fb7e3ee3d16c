"""Worker processes: how many, and that they leave signals to the main one."""

from __future__ import annotations

import signal

import pytest
import torch

from ptedge.training.batches.batch import SourceBatch
from ptedge.training.batches.loader import AUTO, MOST_WORKERS, load, worker_count
from ptedge.training.batches.steps import StepBatches


def _ignores_interrupts(index: int, generator: torch.Generator) -> list[bool]:
    return [signal.getsignal(number) is signal.SIG_IGN for number in (signal.SIGINT, signal.SIGTERM)]


def _signals_batch(entries: list[list[bool]]) -> SourceBatch:
    return SourceBatch(torch.tensor(entries), [])


def test_loader__workers_leave_interrupts_to_the_main_process() -> None:
    # Ctrl-C reaches every process of the terminal: a worker that dies of it takes the orderly stop away
    batches = StepBatches(1, _ignores_interrupts, _signals_batch, batch_size=1, steps=1, seed=0, stream=0)
    assert next(load(batches, 1)).images.tolist() == [[True, True]]


def test_worker_count__shares_out_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: set(range(16)), raising=False)
    assert worker_count(3, 2, 1) == 3 and worker_count(0, 1, 1) == 0
    assert worker_count(AUTO, 1, 1) == MOST_WORKERS
    assert worker_count(AUTO, 2, 1) == 7 and worker_count(AUTO, 2, 4) == 1
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0}, raising=False)
    assert worker_count(AUTO, 1, 1) == 1
