"""Stage 2: a detector learns a new place from unlabelled frames, with labelled source images or without."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
import torch
from torch import Tensor

from ptedge.artifacts.checkpoint import Checkpoint, load_checkpoint
from ptedge.artifacts.lineage import Lineage
from ptedge.data.dataset import Dataset
from ptedge.files import sha256_file
from ptedge.frames.source import FrameIndex, index_frames

from . import distributed
from .batches.batch import AdaptBatch, SourceBatch, TargetBatch
from .batches.loader import load
from .batches.steps import ADABN_STREAM, SOURCE_STREAM, TARGET_STREAM, StepBatches
from .batches.views import SourceViews, TargetViews, collate_source, collate_target
from .config import AdaptConfig, check_mode
from .data import describe_data, open_stream, open_trainable
from .device import image_tensor
from .loop import LoopResult
from .mutual import MutualLearning
from .run import begin_run, carry_out
from .run_folder import RunFolder
from .state import state_of
from .teacher import adapt_batch_norm
from .watch.monitor_set import MonitorSet
from .watch.supervise import Supervisor

ADABN_BATCH = 8


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
    """

    start: Checkpoint
    path: str
    parent: str
    target: str
    frames: FrameIndex
    source: Path | None
    dataset: Dataset | None

    @property
    def kind(self) -> str:
        """Of the checkpoints that come of it."""
        return "adapted" if self.source is not None else "source_free"

    def identity(self, config: AdaptConfig) -> dict[str, Any]:
        """What must be the same for a run to go on."""
        return {
            "command": "adapt",
            "kind": self.kind,
            "parent": self.parent,
            "classes": list(self.start.class_names),
            "optimizer_name": config.optim.optimizer,
            "align.method": config.align.method,
            "teacher.labels": config.teacher.labels,
        }


class Adaptation(MutualLearning):
    """Mutual learning as a :class:`~ptedge.training.task.Task`: with its data, its watch and its checkpoints.

    Args:
        inputs: what it starts from.
        config: settings.
        device: that computes.
    """

    def __init__(self, inputs: Inputs, config: AdaptConfig, device: torch.device) -> None:
        # whatever users will see, nothing here learns from the sigma of a cluster or is watched by it
        own = replace(inputs.start, config=replace(inputs.start.config, sigma_rule="own"))
        model = own.build().to(device=device, memory_format=torch.channels_last)  # type: ignore[call-overload]
        super().__init__(model, config, device)
        self.name = "adapt" if inputs.source is not None else "adapt source-free"
        self.identity: Mapping[str, Any] = inputs.identity(config)
        self.num_domains = 1 if inputs.dataset is None else 2
        self.inputs = inputs
        self.monitors: MonitorSet | None = None  # frames are prepared and the start is asked at the first reading

    def start(self, folder: RunFolder, *, resumed: bool) -> None:
        """Give all models BatchNorm statistics of the target where that is asked for, or what the run began with."""
        if resumed:
            folder.restore_start(self.snapshot)
        elif self.config.teacher.adabn:
            seen = adapt_batch_norm(self.student, self._weak_views())
            for model in (self.teacher, self.labeller, self.snapshot):
                model.load_state_dict(self.student.state_dict())
            click.echo(f"BatchNorm statistics re-estimated on {seen} target frames", err=True)

    def _weak_views(self) -> Iterator[Tensor]:
        """Batches of frames for AdaBN; what could not be read is said at the end."""
        frames = self.inputs.frames
        count = min(self.config.teacher.adabn_images, len(frames))
        if count > 1 and count % ADABN_BATCH == 1:
            count -= 1  # the statistics of a single image would weigh as much as those of a batch
        batches = StepBatches(
            len(frames),
            TargetViews(frames, self.student.config.input_size, None),
            collate_target,
            batch_size=ADABN_BATCH,
            steps=-(-count // ADABN_BATCH),
            seed=self.config.seed,
            stream=ADABN_STREAM,
            images=count,
        )
        skipped: dict[str, str] = {}
        for batch in load(batches, 0):
            skipped.update(batch.skipped)
            yield image_tensor(batch.weak, self.device)
        for reason in skipped.values():
            click.echo(f"skipped: {reason}", err=True)

    def describe(self) -> list[str]:
        """A line about each domain."""
        inputs = self.inputs
        lines = [f"target {inputs.target}: {len(inputs.frames)} frames, unlabelled"]
        return lines if inputs.dataset is None else [*lines, f"source {describe_data(inputs.dataset)}"]

    def stream(self, first_step: int) -> Generator[AdaptBatch, None, None]:
        """Target frames, and labelled images with them."""
        config, frames, dataset = self.config, self.inputs.frames, self.inputs.dataset
        size, share = self.student.config.input_size, {"first_step": first_step, "streams": self.num_domains}
        views = TargetViews(frames, size, config.augment)
        target = open_stream(views, collate_target, len(frames), config, stream=TARGET_STREAM, **share)
        if dataset is None:
            return _together(target, None)
        labelled = SourceViews(dataset, size, config.augment)
        source = open_stream(labelled, collate_source, len(dataset), config, stream=SOURCE_STREAM, **share)
        return _together(target, source)

    def checkpoint(self, step: int) -> Checkpoint:
        """The teacher."""
        inputs = self.inputs
        start = inputs.start
        names = (inputs.target,) if inputs.source is None else (inputs.target, str(inputs.source))
        parents = (*start.lineage.parents, inputs.parent)
        lineage = Lineage(kind=inputs.kind, role="teacher", parents=parents, step=step, data=names)
        config = replace(start.config, sigma_rule=self.config.model.sigma_rule)
        return Checkpoint(config, start.class_names, state_of(self.teacher), lineage)

    def supervisor(self, folder: RunFolder, optimizer: torch.optim.Optimizer) -> Supervisor:
        """Monitors, guards and the choice of the teacher to deploy."""
        config = self.config
        every = config.monitor.steps(config.log_every)
        return Supervisor(
            folder,
            {name: part for name, part in self.parts.items() if name != "labeller"},
            optimizer,
            self.read_monitors,
            self.checkpoint,
            guard=config.guard,
            choice=config.choice,
            every=every,
            candidate_every=config.choice.steps(every, config.optim.steps),
        )

    def read_monitors(self) -> dict[str, Any]:
        """Signals of the present teacher and student, the same in every process."""
        if self.monitors is None:
            config, size = self.config, self.student.config.input_size
            self.monitors = MonitorSet(
                self.inputs.frames, size, config.augment, config.monitor, config.seed, self.device
            )
            self.monitors.remember(self.snapshot)
        return distributed.mean_numbers(self.monitors.read(self.teacher, self.student))

    def summary(self) -> dict[str, Any]:
        """What was adapted to what."""
        inputs = self.inputs
        return {
            "command": "adapt",
            "kind": inputs.kind,
            "checkpoint": inputs.path,
            "target_frames": len(inputs.frames),
            "source_images": len(inputs.dataset) if inputs.dataset is not None else 0,
            "classes": list(inputs.start.class_names),
        }


def _together(
    target: Generator[TargetBatch, None, None], source: Generator[SourceBatch, None, None] | None
) -> Generator[AdaptBatch, None, None]:
    try:
        for batch in target:
            yield AdaptBatch(batch, next(source) if source is not None else None)
    finally:
        target.close()
        if source is not None:
            source.close()


def adapt(
    checkpoint: Path,
    target: str,
    out: Path,
    config: AdaptConfig,
    *,
    source: Path | None,
    resume: bool = False,
    val: Path | None = None,
) -> LoopResult:
    """Adapt a detector to unlabelled frames.

    Args:
        checkpoint: ``model.pt`` to start from.
        target: FRAMES.
        out: RUN folder.
        config: settings; on resume those of the run.
        source: labelled DATA, or ``None`` for source-free.
        resume: continue ``out``.
        val: labelled DATA to report on at the end; it influences nothing.

    Raises:
        PtedgeError: see the error tree.
    """
    started = time.perf_counter()
    check_mode(config, source_free=source is None)
    start = load_checkpoint(checkpoint)
    frames = index_frames(target)
    dataset = open_trainable(source, class_names=start.class_names) if source is not None else None
    inputs = Inputs(start, str(checkpoint), sha256_file(checkpoint), target, frames, source, dataset)
    identity = inputs.identity(config)
    with begin_run(out, config, identity, start.class_names, resume=resume, val=val, started=started) as run:
        return carry_out(Adaptation(inputs, config, run.device), run, config)
