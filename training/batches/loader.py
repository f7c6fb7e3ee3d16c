"""Worker processes that prepare batches: page-locked for a GPU, quiet on Ctrl-C, gone with the run."""

from __future__ import annotations

import atexit
from collections.abc import Generator
from functools import partial
from typing import Any, Generic

import cv2
import torch
from torch.utils.data import DataLoader
from torch.utils.data import Dataset as TorchDataset

from ptedge.errors import PtedgeError, TrainingError
from ptedge.machine.cpu import usable_cores
from ptedge.signals import leave_to_parent

from .steps import B, StepBatches

AUTO = -1
MOST_WORKERS = 8  # a stream; more seldom helps


def worker_count(workers: int, streams: int, processes: int) -> int:
    """Processes that prepare the images of one stream.

    Args:
        workers: as set; ``AUTO`` shares out the cores this process may use, one of them left to training.
        streams: of this run: source, target, or both.
        processes: training processes on this machine.
    """
    if workers != AUTO:
        return workers
    usable = usable_cores()
    return min(MOST_WORKERS, max(1, (usable // processes - 1) // streams))


def load(source: StepBatches[B], workers: int) -> Generator[B, None, None]:
    """Batches in order, prepared by worker processes (0: in this process).

    The processes start with the first batch and end when the generator is closed.

    Raises:
        TrainingError: no image can be read, or a worker died.
    """
    loader: DataLoader[B | str] = DataLoader(
        _Sentences(source),
        batch_size=None,
        shuffle=False,
        num_workers=workers,
        prefetch_factor=2 if workers else None,
        worker_init_fn=_leave_signals,
        pin_memory=torch.cuda.is_available(),
    )
    threads = cv2.getNumThreads()
    if workers:
        # workers inherit it: OpenCV's own threads would fight over their cores. Set in a worker itself, it would wait
        # without end for threads that the fork has left behind
        cv2.setNumThreads(1)
    batches = iter(loader)
    cv2.setNumThreads(threads)
    end = partial(_end_workers, batches)
    if workers:
        atexit.register(end)  # for a caller that does not close the generator
    try:
        for batch in batches:
            if isinstance(batch, str):
                raise TrainingError(batch)
            yield batch
    except RuntimeError as error:
        if "DataLoader worker" not in str(error):
            raise
        raise TrainingError(
            f"a process that prepares images died: {str(error).splitlines()[0]} "
            f"If memory ran out, lower optim.batch or set workers=0"
        ) from None
    finally:
        if workers:
            atexit.unregister(end)
            end()


class _Sentences(TorchDataset["B | str"], Generic[B]):
    """Batches, or the sentence of what went wrong: an exception that leaves a worker drags its traceback along."""

    def __init__(self, batches: StepBatches[B]) -> None:
        self.batches = batches

    def __len__(self) -> int:
        return len(self.batches)

    def __getitem__(self, item: int) -> B | str:
        try:
            return self.batches[item]
        except PtedgeError as error:
            return str(error)


def _leave_signals(worker: int) -> None:
    """Ctrl-C, a lost terminal and a service manager's SIGTERM reach every process of the group."""
    leave_to_parent(also_term=True)


def _end_workers(batches: Any) -> None:
    """End the workers now: while the main process exits it waits for them, and they ignore its SIGTERM."""
    batches._shutdown_workers()  # asks them to stop and waits some seconds
    for worker in batches._workers:
        if worker.is_alive():  # stuck, for example in a network file system
            worker.kill()
