"""The data of a run: labelled images opened and described, and the batches of every step."""

from __future__ import annotations

from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

from ptedge.data import open_dataset
from ptedge.data.dataset import Dataset
from ptedge.data.locate import require_images
from ptedge.errors import InputError

from . import distributed
from .batches.loader import load, worker_count
from .batches.steps import B, Share, StepBatches, Views
from .config import RunConfig


def open_trainable(path: Path, class_names: tuple[str, ...] | None = None) -> Dataset:
    """Open labelled data for training; some box must be there.

    Raises:
        InputError: no images, missing image files, or no boxes at all.
        ClassMismatchError: other classes than ``class_names``.
    """
    dataset = open_dataset(path, class_names=class_names)
    require_images(dataset)
    if dataset.num_boxes == 0:
        raise InputError(
            f"{path} has {len(dataset)} images but no box to learn from{_left_out(dataset)}. Give labelled data"
        )
    return dataset


def describe_data(dataset: Dataset) -> str:
    """One line about a data set, dropped boxes included."""
    empty = sum(1 for s in dataset.samples if not len(s.boxes))
    text = f"{dataset.root}: {len(dataset)} images ({empty} without objects), {dataset.num_boxes} boxes of "
    return text + ", ".join(dataset.class_names) + _left_out(dataset)


def _left_out(dataset: Dataset) -> str:
    """Counts of boxes that were dropped while reading, by reason; empty when none was."""
    told = ", ".join(f"{count} {reason}" for reason, count in dataset.dropped.items())
    return f"; left out: {told}" if told else ""


def open_stream(
    views: Views,
    collate: Callable[[list[Any]], B],
    count: int,
    config: RunConfig,
    *,
    stream: int,
    first_step: int,
    streams: int = 1,
) -> Generator[B, None, None]:
    """Batches of one domain in order; workers start with the first one and end when the generator is closed.

    Args:
        views: builds one image's entry.
        collate: entries to a batch.
        count: images in the data.
        config: of the run.
        stream: number of the stream; source and target of one run differ.
        first_step: where to begin.
        streams: how many the run has, between which cores are shared out.
    """
    batches = StepBatches(
        count,
        views,
        collate,
        batch_size=config.optim.batch,
        steps=config.optim.steps,
        seed=config.seed,
        stream=stream,
        first_step=first_step,
        share=Share(config.optim.accumulate, distributed.rank(), distributed.size()),
    )
    return load(batches, worker_count(config.workers, streams, distributed.local_size()))
