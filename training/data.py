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
        InputError: no images, image files that are missing or of another size than labelled, or no boxes at all.
        ClassMismatchError: other classes than ``class_names``.
    """
    dataset = open_dataset(path, class_names=class_names, use="train")
    require_images(dataset)
    if dataset.num_boxes == 0:
        raise InputError(
            f"{path} has {len(dataset)} images but no box to learn from{_remarks(dataset)}. Give labelled data"
        )
    return dataset


def describe_data(dataset: Dataset) -> str:
    """One line about a data set, with the part that was read and the counts of what was left out."""
    empty = sum(1 for s in dataset.samples if not len(s.boxes))
    part = f", split {dataset.split}" if dataset.split is not None else ""
    text = f"{dataset.root}{part}: {len(dataset)} images ({empty} without objects), {dataset.num_boxes} boxes of "
    return text + ", ".join(dataset.class_names) + _remarks(dataset)


def _remarks(dataset: Dataset) -> str:
    return f"; {dataset.remarks}" if dataset.remarks else ""


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
