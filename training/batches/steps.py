"""Batches by step: what an image of the endless sequence is and how it is augmented depends on the seed and its place.

So workers, resuming, gradient accumulation and the number of processes change nothing: a step of 16 images is the same
16 images however they are shared out. A corrupt image is named, counted and replaced by the next one; a data set in
which none can be read ends the run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import Dataset as TorchDataset

from ptedge.errors import InputError, TrainingError

from .batch import Batch, SourceBatch, TargetBatch

# numbers of what is drawn from one seed, each independent of the others
SOURCE_STREAM, TARGET_STREAM, ADABN_STREAM, MONITOR_STREAM, LABELS_STREAM = 0, 1, 2, 3, 4  # images and their views
OFFSET_STREAM = 5
SOURCE_SAMPLE, TARGET_SAMPLE, LABELS_SAMPLE = 10, 11, 12  # anchors and proposals that learn

B = TypeVar("B", bound=Batch)


class Views(Protocol):
    """What makes one image's entry."""

    def __call__(self, index: int, generator: torch.Generator, /) -> Any:
        """The entry; InputError when the image cannot be read."""

    def name(self, index: int) -> str:
        """Path of the image, for reports."""


@dataclass(frozen=True)
class Share:
    """How the images of a step are shared out.

    Attributes:
        accumulate: parts a process and step, of which the gradients are averaged.
        rank: number of this process, from 0.
        processes: how many there are.
    """

    accumulate: int = 1
    rank: int = 0
    processes: int = 1

    @property
    def parts(self) -> int:
        """Parts a step, of all processes together."""
        return self.accumulate * self.processes

    def part(self, step: int, number: int) -> int:
        """Which part of the endless sequence is this process's ``number``-th of a step."""
        return step * self.parts + self.rank * self.accumulate + number


WHOLE = Share()  # one process, one batch a step


def step_generator(seed: int, stream: int, number: int) -> torch.Generator:
    """The generator of one step, or image, of one stream; independent of all others."""
    state = np.random.SeedSequence([seed, stream, number]).generate_state(1, np.uint64)[0]
    return torch.Generator().manual_seed(int(state) & 0x7FFF_FFFF_FFFF_FFFF)


def image_generators(seed: int, stream: int, step: int, batch: SourceBatch | TargetBatch) -> list[torch.Generator]:
    """One generator an image, by its position; for a batch made by hand as if it were the whole step."""
    size = len(batch)
    positions = batch.positions or range(step * size, (step + 1) * size)
    return [step_generator(seed, stream, position) for position in positions]


def draw_index(position: int, count: int, seed: int, stream: int) -> int:
    """Which of ``count`` images stands at a position of the endless shuffled sequence, a new order each epoch."""
    epoch, offset = divmod(position, count)
    return int(_order(count, seed, stream, epoch)[offset])


@lru_cache(maxsize=4)
def _order(count: int, seed: int, stream: int, epoch: int) -> NDArray[np.int64]:
    return np.random.default_rng(np.random.SeedSequence([seed, stream, epoch, 1])).permutation(count)


class StepBatches(TorchDataset[B], Generic[B]):
    """Batches of one stream in order: step by step, and within a step part by part.

    Args:
        count: images in the data.
        make: builds one image's entry from its index and a generator.
        collate: entries to a batch.
        batch_size: images a batch.
        steps: the last step + 1.
        seed: of the run.
        stream: number of the stream; source and target of one run differ.
        first_step: where to begin (resume).
        share: how many batches make a step, and which of them are this process's.
        images: all steps together take so many; the last batch is then smaller. ``None`` for no such end.
    """

    def __init__(
        self,
        count: int,
        make: Views,
        collate: Callable[[list[Any]], B],
        *,
        batch_size: int,
        steps: int,
        seed: int,
        stream: int,
        first_step: int = 0,
        share: Share = WHOLE,
        images: int | None = None,
    ) -> None:
        self.count = count
        self.make = make
        self.collate = collate
        self.batch_size = batch_size
        self.share = share
        self.seed = seed
        self.stream = stream
        self.first_step = first_step
        self.images = images
        self.length = max(0, steps - first_step) * share.accumulate

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, item: int) -> B:
        step, number = divmod(item, self.share.accumulate)
        first = self.share.part(self.first_step + step, number) * self.batch_size
        end = first + self.batch_size if self.images is None else min(first + self.batch_size, self.images)
        entries: list[Any] = []
        skipped: list[tuple[str, str]] = []
        for position in range(first, end):
            start = draw_index(position, self.count, self.seed, self.stream)
            generator = step_generator(self.seed, self.stream, position)
            for attempt in range(self.count):
                index = (start + attempt) % self.count
                try:
                    entries.append(self.make(index, generator))
                    break
                except InputError as error:
                    skipped.append((self.make.name(index), str(error)))
            else:
                raise TrainingError(f"no image can be read. First problem: {skipped[0][1]}")
        return replace(self.collate(entries), positions=list(range(first, end)), skipped=skipped)
