"""Stage 2: a detector learns a new place from unlabelled frames, with labelled source images or without."""

from __future__ import annotations

import time
from collections.abc import Collection, Generator, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import torch
from torch import Tensor

from ptedge.artifacts.checkpoint import Checkpoint
from ptedge.artifacts.lineage import Lineage
from ptedge.calibration import MOST_OFFSET, CalibrationOrigin, SideCalibration
from ptedge.detector.roi_heads import RawDetections

from . import distributed
from .batches.batch import AdaptBatch, SourceBatch, TargetBatch
from .batches.few import few_views, fingerprint
from .batches.loader import load
from .batches.steps import ADABN_STREAM, LABELS_STREAM, SOURCE_STREAM, TARGET_STREAM, StepBatches
from .batches.views import SourceViews, TargetViews, collate_source, collate_target
from .config import AdaptConfig, check_mode
from .data import Inputs, describe_data, open_inputs, open_stream
from .device import image_tensor
from .estimate.finish import estimate_target
from .estimate.place import keep_reference
from .loop import LoopResult
from .losses.merge import ForeignBoxes, MergeRule, measured_sigma
from .losses.offset import of_detected
from .mutual import MutualLearning
from .recipes.recipe import Situation, settle
from .run import begin_run, carry_out
from .run_folder import RunFolder
from .state import state_of
from .teacher import adapt_batch_norm
from .watch.label_offset import LabelOffset
from .watch.monitor_set import MonitorSet
from .watch.record import keep_records
from .watch.supervise import Supervisor

ADABN_BATCH = 8
MEASURED_FRAMES = 64  # asked for the sigma of another detector's boxes
FEWEST_PAIRS = 10  # from which that is told


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
        self.name = {"adapted": "adapt", "few_labels": "adapt few labels"}.get(inputs.kind, "adapt source-free")
        self.identity: Mapping[str, Any] = inputs.identity(config)
        self.inputs = inputs
        self.foreign = inputs.foreign.found if inputs.foreign is not None else ()
        few, labels = inputs.few, config.labels
        self.teaching = few if labels.weight else None
        moves = labels.move_pseudo and bool(config.lambda_target)
        if few is not None and (self.teaching is not None or labels.calibrate or moves):  # guards ask for it, too
            self.offset = LabelOffset(
                few,
                inputs.frames,
                self.student.config.input_size,
                every=labels.offset_every,
                seed=config.seed,
                device=device,
            )
        self.images = config.optim.batch * (1 if inputs.dataset is None else 2)
        self.images += labels.batch if self.teaching is not None else 0
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
        if self.offset is not None and not resumed:
            self.offset.begin(self.snapshot)
            sides = ", ".join(f"{value:+.3f}" for value in self.offset.at_start.tolist())
            found = int(self.offset.pairs)
            click.echo(f"offset of x1, y1, x2, y2 on {found} labelled boxes: {sides} of their size", err=True)
        if self.foreign and self.config.teacher_boxes.sigma == 0:
            self.foreign_sigma = self._measure_foreign()

    def _measure_foreign(self) -> float:
        """Sigma of another detector's boxes, from how far they are from those of the model that the run begins with."""
        own: list[RawDetections] = []
        foreign: list[ForeignBoxes] = []
        for batch in self._weak_batches(min(MEASURED_FRAMES, len(self.inputs.frames))):
            own += self.snapshot.detect(image_tensor(batch.weak, self.device))
            foreign += [boxes.to(self.device) for boxes in batch.foreign]
        sigma, pairs = measured_sigma(own, foreign, self.config.teacher_boxes.iou)
        told = f"{pairs} boxes of {len(own)} frames that both detectors found"
        if pairs < FEWEST_PAIRS:
            click.echo(f"sides of the other detector: sigma {MergeRule.sigma}, as {told} do not tell it", err=True)
            return MergeRule.sigma
        click.echo(f"sides of the other detector: sigma {sigma:.3f} of their length, from {told}", err=True)
        return sigma

    def _weak_views(self) -> Iterator[Tensor]:
        """Batches of frames for AdaBN."""
        count = min(self.config.teacher.adabn_images, len(self.inputs.frames))
        if count > 1 and count % ADABN_BATCH == 1:
            count -= 1  # the statistics of a single image would weigh as much as those of a batch
        for batch in self._weak_batches(count):
            yield image_tensor(batch.weak, self.device)

    def _weak_batches(self, count: int) -> Iterator[TargetBatch]:
        """Batches of so many frames, not augmented; what could not be read is said at the end."""
        frames = self.inputs.frames
        batches = StepBatches(
            len(frames),
            TargetViews(frames, self.student.config.input_size, None, self.foreign),
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
            yield batch
        for reason in skipped.values():
            click.echo(f"skipped: {reason}", err=True)

    def describe(self) -> list[str]:
        """A line about each domain."""
        inputs = self.inputs
        lines = [f"target {inputs.target}: {len(inputs.frames)} frames, unlabelled"]
        if inputs.foreign is not None:
            lines.append(inputs.foreign.describe())
        if inputs.few is not None:
            twice = f"; {inputs.twice} of them were among the target's frames and count there no more"
            lines.append(f"labelled frames {describe_data(inputs.few)}{twice if inputs.twice else ''}")
        return lines if inputs.dataset is None else [*lines, f"source {describe_data(inputs.dataset)}"]

    def stream(self, first_step: int) -> Generator[AdaptBatch, None, None]:
        """Target frames, and labelled images with them."""
        config, size = self.config, self.student.config.input_size
        frames, dataset, few = self.inputs.frames, self.inputs.dataset, self.teaching
        share = {"first_step": first_step, "streams": 1 + (dataset is not None) + (few is not None)}
        views = TargetViews(frames, size, config.augment, self.foreign)
        target = open_stream(views, collate_target, len(frames), config, stream=TARGET_STREAM, **share)
        source = labelled = None
        if dataset is not None:
            of_source = SourceViews(dataset, size, config.augment)
            source = open_stream(of_source, collate_source, len(dataset), config, stream=SOURCE_STREAM, **share)
        if few is not None:
            share["batch"] = config.labels.batch
            of_few = few_views(few, size, config.augment, config.labels.view)
            labelled = open_stream(of_few, collate_source, len(few), config, stream=LABELS_STREAM, **share)
        return _together(target, source, labelled)

    def checkpoint(self, step: int) -> Checkpoint:
        """The teacher."""
        inputs = self.inputs
        start = inputs.start
        names = (inputs.target, *(str(data.root) for data in (inputs.dataset, inputs.few) if data is not None))
        names += (str(inputs.foreign.path),) if inputs.foreign is not None else ()
        parents = (*start.lineage.parents, inputs.parent)
        lineage = Lineage(kind=inputs.kind, role="teacher", parents=parents, step=step, data=names)
        config = replace(start.config, sigma_rule=self.config.model.sigma_rule)
        state, calibration = state_of(self.teacher), self._calibration()
        return Checkpoint(config, start.class_names, state, lineage, calibration, start.label_free)

    def _calibration(self) -> SideCalibration | None:
        """Of the present teacher, where labelled frames tell it; sigma stays as it is."""
        if self.offset is None or self.inputs.few is None or not self.config.labels.calibrate:
            return None
        offset = of_detected(self.offset.of(self.teacher, self.snapshot)).clamp(-MOST_OFFSET, MOST_OFFSET)
        x1, y1, x2, y2 = (round(value, 6) for value in offset.tolist())
        few, pairs = self.inputs.few, int(self.offset.pairs)
        origin = CalibrationOrigin("labels", pairs, len(few), fingerprint(few), self.inputs.parent)
        return SideCalibration((x1, y1, x2, y2), origin=origin) if pairs else None

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
        signals = self.monitors.read(self.teacher, self.student)
        if self.offset is not None:
            signals |= self.offset.signals()
        return distributed.mean_numbers(signals)

    def summary(self) -> dict[str, Any]:
        """What was adapted to what."""
        inputs = self.inputs
        return {
            "command": "adapt",
            "kind": inputs.kind,
            "checkpoint": inputs.path,
            "target_frames": len(inputs.frames),
            "source_images": len(inputs.dataset) if inputs.dataset is not None else 0,
            "labelled_frames": len(inputs.few) if inputs.few is not None else 0,
            "labelled_boxes": inputs.few.num_boxes if inputs.few is not None else 0,
            "foreign_boxes": inputs.foreign.num_boxes if inputs.foreign is not None else 0,
            "classes": list(inputs.start.class_names),
        }


def _together(
    target: Generator[TargetBatch, None, None],
    source: Generator[SourceBatch, None, None] | None,
    labelled: Generator[SourceBatch, None, None] | None,
) -> Generator[AdaptBatch, None, None]:
    try:
        for batch in target:
            yield AdaptBatch(
                batch,
                next(source) if source is not None else None,
                next(labelled) if labelled is not None else None,
            )
    finally:
        for stream in (target, source, labelled):
            if stream is not None:
                stream.close()


def adapt(
    checkpoint: Path,
    target: str,
    out: Path,
    config: AdaptConfig,
    *,
    source: Path | None,
    labels: Path | None = None,
    teacher_boxes: Path | None = None,
    given: Collection[str] | None = None,
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
        labels: DATA of some labelled frames of the target, or ``None`` for none.
        teacher_boxes: COCO json of what another detector found in the frames, or ``None``.
        given: keys that the user has set, ``table.key``; others are chosen for the data and the machine. ``None``: all.
        resume: continue ``out``.
        val: labelled DATA to report on at the end; it influences nothing.

    Raises:
        PtedgeError: see the error tree.
    """
    started = time.perf_counter()
    check_mode(config, source_free=source is None, labelled=labels is not None)
    inputs = open_inputs(
        checkpoint, target, config.teacher_boxes, source=source, labels=labels, teacher_boxes=teacher_boxes
    )
    kind = "adapt" if source is not None else "source_free"
    situation = Situation(kind, len(inputs.frames), torch.cuda.is_available(), distributed.size())
    settled = settle(config, given, situation)
    config = settled.config
    identity, class_names = inputs.identity(config), inputs.start.class_names
    with begin_run(out, config, identity, class_names, resume=resume, val=val, started=started) as run:
        result = carry_out(Adaptation(inputs, config, run.device), run, settled)
        if not result.interrupted and distributed.is_main():
            if result.supervision:
                keep_records(run.folder, result.supervision, result.step)
            found = _look_at_target(run.folder.model, inputs, config)
            run.folder.write_summary({**run.folder.read_summary(), **found})
        return result


def _look_at_target(model: Path, inputs: Inputs, config: AdaptConfig) -> dict[str, Any]:
    """What the finished model is thought to be worth on its target, and what frames are like there."""
    found: dict[str, Any] = {}
    if (count := config.estimate_frames) > 0:
        found |= estimate_target(model, inputs.frames, count, config.seed, scale=config.estimate_scale)
    if (count := config.reference_frames) > 0:
        found |= keep_reference(model, inputs.frames, count, "target")
    return found
