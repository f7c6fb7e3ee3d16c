"""The data of a run: labelled images opened and described, and the batches of every step."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from ptedge.artifacts.checkpoint import Checkpoint, load_checkpoint
from ptedge.data import open_dataset
from ptedge.data.dataset import Dataset
from ptedge.data.locate import require_images
from ptedge.errors import InputError
from ptedge.files import sha256_file
from ptedge.frames.source import FrameIndex, index_frames

from . import distributed
from .batches.few import fingerprint, set_labelled_apart
from .batches.foreign import ForeignFrames, open_foreign
from .batches.loader import load, worker_count
from .batches.steps import B, Share, StepBatches, Views
from .config import AdaptConfig, RunConfig
from .losses.merge import MergeRule


@dataclass(frozen=True)
class Inputs:
    """What an adaptation starts from.

    Attributes:
        start: the detector to adapt.
        path: of its file, as it was named.
        parent: sha256 of its file.
        target: FRAMES.
        frames: found there.
        source: labelled DATA; ``None`` for source-free.
        dataset: opened from it.
        few: labelled frames of the target, which are not among ``frames``; ``None`` for none.
        twice: how many of ``few`` were among the frames that the user named.
        foreign: what another detector found in ``frames``; ``None`` for none.
    """

    start: Checkpoint
    path: str
    parent: str
    target: str
    frames: FrameIndex
    source: Path | None
    dataset: Dataset | None
    few: Dataset | None = None
    twice: int = 0
    foreign: ForeignFrames | None = None

    @property
    def kind(self) -> str:
        """Of the checkpoints that come of it."""
        if self.few is not None:
            return "few_labels"
        return "adapted" if self.source is not None else "source_free"

    def identity(self, config: AdaptConfig) -> dict[str, Any]:
        """What must be the same for a run to go on."""
        return {
            "command": "adapt",
            "kind": self.kind,
            "with_source": self.source is not None,
            "labels": fingerprint(self.few) if self.few is not None else "",
            "teacher_boxes": sha256_file(self.foreign.path) if self.foreign is not None else "",
            "parent": self.parent,
            "classes": list(self.start.class_names),
            "optimizer_name": config.optim.optimizer,
            "align.method": config.align.method,
            "teacher.labels": config.teacher.labels,
        }


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


def load_uncalibrated(path: Path) -> Checkpoint:
    """A checkpoint to adapt, without the calibration that it may have.

    Pseudo boxes are the detector's own: a correction measured on the start would be learned by the student, and then
    be applied once more. Adaptation also changes what there is to correct.

    Raises:
        InputError, ArtifactError: see :func:`ptedge.artifacts.checkpoint.load_checkpoint`.
    """
    start = load_checkpoint(path)
    if start.calibration is not None:
        click.echo(
            f"{path} is calibrated; adaptation starts from the detector without, and its result has none. "
            "Calibrate that: ptedge calibrate",
            err=True,
        )
    return replace(start, calibration=None)


def open_inputs(
    checkpoint: Path,
    target: str,
    rule: MergeRule,
    *,
    source: Path | None,
    labels: Path | None,
    teacher_boxes: Path | None,
) -> Inputs:
    """Open all that an adaptation starts from.

    Args:
        checkpoint: ``model.pt`` to start from.
        target: FRAMES.
        rule: how to read ``teacher_boxes``.
        source: labelled DATA, or ``None`` for source-free.
        labels: DATA of some labelled frames of the target, or ``None`` for none.
        teacher_boxes: COCO json of what another detector found in the frames, or ``None``.

    Raises:
        PtedgeError: one of them is not what it should be; the text says which.
    """
    start = load_uncalibrated(checkpoint)
    frames = index_frames(target)
    dataset = open_trainable(source, class_names=start.class_names) if source is not None else None
    few, twice, foreign = None, 0, None
    if labels is not None:
        few = open_trainable(labels, class_names=start.class_names)
        frames, twice = set_labelled_apart(few, frames, dataset)
    if teacher_boxes is not None:
        foreign = open_foreign(teacher_boxes, frames, start.class_names, rule)
    return Inputs(start, str(checkpoint), sha256_file(checkpoint), target, frames, source, dataset, few, twice, foreign)


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
    batch: int = 0,
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
        batch: images a batch, where they are not ``optim.batch``.
    """
    batches = StepBatches(
        count,
        views,
        collate,
        batch_size=batch or config.optim.batch,
        steps=config.optim.steps,
        seed=config.seed,
        stream=stream,
        first_step=first_step,
        share=Share(config.optim.accumulate, distributed.rank(), distributed.size()),
    )
    return load(batches, worker_count(config.workers, streams, distributed.local_size()))
