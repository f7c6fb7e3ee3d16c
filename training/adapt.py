"""Stage 2: mutual learning. The teacher labels target frames with uncertainty, the student learns from that."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import torch
from torch import Tensor

from ptedge.artifacts.checkpoint import Checkpoint, Lineage, load_checkpoint
from ptedge.data.dataset import Dataset
from ptedge.detector.backbone import untracked_statistics
from ptedge.detector.model import ProbabilisticFasterRCNN
from ptedge.files import sha256_file
from ptedge.frames.source import FrameIndex, index_frames

from . import distributed
from .batches.loader import worker_count
from .batches.steps import Batch, Share, StepBatches, Stream, image_generators
from .batches.views import SourceViews, TargetViews, collate_source, collate_target
from .config import AdaptConfig, check_mode
from .loop import LoopResult, prepare_torch, run_loop
from .losses.align import DomainClassifiers
from .losses.equations import Normaliser, own_count
from .losses.pseudo import make_pseudo_boxes
from .losses.source import sample_source, source_losses
from .losses.target import sample_target, target_losses
from .optim import add_parameters, build_optimizer, describe_step, scaled
from .pretrain import SOURCE_STREAM, describe, image_tensor, open_trainable, to_device
from .run_folder import RunFolder, state_of
from .teacher import adapt_batch_norm, make_teacher, update_teacher
from .validate import check_val, report
from .watch.monitor import pseudo_numbers
from .watch.monitor_set import MonitorSet
from .watch.supervise import Supervisor

TARGET_STREAM, ADABN_STREAM = 1, 2
SOURCE_SAMPLE, TARGET_SAMPLE = 10, 11
ADABN_BATCH = 8


class MutualLearning:
    """Teacher, student and frozen source snapshot, and what one step does with them.

    Args:
        model: the model to adapt; becomes the student.
        config: settings.
        device: where the models are.
    """

    def __init__(self, model: ProbabilisticFasterRCNN, config: AdaptConfig, device: torch.device) -> None:
        self.config = config
        self.device = device
        # the source model as it enters the adaptation, AdaBN included: to compare with and to fall back on
        self.snapshot = copy.deepcopy(model).eval().requires_grad_(False)
        self.teacher = make_teacher(model)
        # whose pseudo boxes count; a copy that stays as it is makes fixed pseudo labels
        self.labeller = self.teacher if config.teacher.labels == "teacher" else make_teacher(model)
        self.early_stage = config.align.local_stage if config.align.method != "none" else None
        self.domains = DomainClassifiers(model, config.align).to(device) if config.align.method != "none" else None
        model.backbone.frozen_statistics = config.batch_norm == "frozen"
        self.student = model.train()

    @property
    def parts(self) -> dict[str, torch.nn.Module]:
        """All that changes or cannot be had again from the start checkpoint, by its name in last.pt."""
        parts: dict[str, torch.nn.Module] = {"student": self.student, "teacher": self.teacher}
        if self.labeller is not self.teacher:
            parts["labeller"] = self.labeller
        if self.domains is not None:
            parts["domains"] = self.domains
        return parts

    def losses(
        self, step: int, batches: list[Batch], normalise: Normaliser = own_count
    ) -> tuple[dict[str, Tensor], dict[str, float | Tensor]]:
        """Weighted losses of one step, and numbers for the log.

        Args:
            step: counted from 0.
            batches: target, then source unless source-free.
            normalise: counts to what sums are divided by.

        Reference:
            Paper, section 3: L = L_S + lambda_T L_T; source-free L = L_T. Domain alignment adds its terms
            (:mod:`~ptedge.training.losses.align`) and usually has lambda_T = 0, which leaves pseudo boxes out.
        """
        target, *source = batches
        losses: dict[str, Tensor] = {}
        if source:
            images, targets = to_device(source[0], self.device)
            draws = image_generators(self.config.seed, SOURCE_SAMPLE, step, source[0])
            # statistics stay: the teacher, who follows, works on target frames only
            with untracked_statistics(self.student.backbone, count_batches=True):
                outputs = self.student(images, self.early_stage)
            samples = sample_source(outputs, targets, self.config.sampling, draws)
            roi = self.student.roi(outputs.features, samples.proposals)
            probabilistic = self.student.config.probabilistic
            losses.update(source_losses(outputs.rpn, roi, samples, targets, probabilistic, normalise))
            if self.domains is not None:
                losses.update(self.domains.source_losses(outputs, roi, targets, normalise))
                strong = image_tensor(target.images, self.device)
                early, features = self.student.feature_maps(strong, self.early_stage)
                if self.domains.sees_instances:
                    found = self.student.proposals(self.student.rpn(features), training=True)
                    found = [boxes[: self.config.sampling.roi_count] for boxes in found]
                    roi = self.student.roi(features, found)
                losses.update(self.domains.target_losses(early, features))
                if self.domains.sees_instances:
                    counts = [len(boxes) for boxes in found]
                    losses.update(self.domains.target_instance_losses(features, roi, counts, normalise))
        if self.config.lambda_target == 0:
            return losses, {}
        assert target.weak is not None and target.views is not None
        if target.detections is None:
            target.detections = self.labeller.detect(image_tensor(target.weak, self.device))
        detections = target.detections
        probabilistic = self.student.config.probabilistic
        pseudo = [make_pseudo_boxes(d, self.config.pseudo, probabilistic) for d in detections]
        size = self.student.config.input_size
        views = target.views.to(self.device)
        moved = [boxes.moved(view).clipped(size) for boxes, view in zip(pseudo, views, strict=True)]
        draws = image_generators(self.config.seed, TARGET_SAMPLE, step, target)
        outputs = self.student(image_tensor(target.images, self.device))
        samples = sample_target(outputs, moved, self.config.target, self.config.sampling, draws)
        roi = self.student.roi(outputs.features, samples.proposals)
        terms = target_losses(outputs.rpn, roi, samples, moved, self.config.target, probabilistic, normalise)
        losses.update({name: self.config.lambda_target * term for name, term in terms.items()})
        return losses, pseudo_numbers(detections, pseudo)

    def after_step(self) -> None:
        """The teacher follows."""
        update_teacher(self.teacher, self.student, self.config.teacher.ema)


class Readings:
    """The monitors of one run; frames are prepared and the start is asked at the first reading.

    Args:
        learning: the models.
        frames: the target.
        config: settings.
    """

    def __init__(self, learning: MutualLearning, frames: FrameIndex, config: AdaptConfig) -> None:
        self.learning = learning
        self.frames = frames
        self.config = config
        self.set: MonitorSet | None = None

    def __call__(self) -> dict[str, Any]:
        """Signals of the present teacher and student, the same in every process."""
        learning, config = self.learning, self.config
        if self.set is None:
            size = learning.student.config.input_size
            self.set = MonitorSet(self.frames, size, config.augment, config.monitor, config.seed, learning.device)
            self.set.remember(learning.snapshot)
        return distributed.mean_numbers(self.set.read(learning.teacher, learning.student))


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
    check_val(val, start.class_names)
    folder = RunFolder(out, resume=resume, curves=config.curves)
    kind = "adapted" if source is not None else "source_free"
    parent = sha256_file(checkpoint)
    identity = {
        "command": "adapt",
        "kind": kind,
        "parent": parent,
        "classes": list(start.class_names),
        "optimizer_name": config.optim.optimizer,
        "align.method": config.align.method,
        "teacher.labels": config.teacher.labels,
    }
    state = folder.load_state(identity) if folder.resume else None
    device = prepare_torch(config.seed)
    model = start.build().to(device=device, memory_format=torch.channels_last)  # type: ignore[call-overload]
    # the checkpoint may come from training without gradient on anchors; adaptation moves them when anchor_lr is not 0
    learning = MutualLearning(model, config, device)
    learning.student.backbone.checkpointing = config.checkpointing
    processes = distributed.size()
    optim = scaled(config.optim, processes)
    optimizer = build_optimizer(learning.student, optim)
    if learning.domains is not None:
        add_parameters(optimizer, learning.domains, optim)
    first_step = 0
    if state is not None:
        first_step = folder.restore(state, optimizer, **learning.parts)
        folder.restore_start(learning.snapshot)
    elif config.teacher.adabn:
        seen = _adapt_statistics(learning, frames, config)
        click.echo(f"BatchNorm statistics re-estimated on {seen} target frames", err=True)
    if first_step < config.optim.steps or state is None:
        folder.write_config(config)
        folder.start_metrics(first_step)
    click.echo(f"target {target}: {len(frames)} frames, unlabelled", err=True)
    if dataset is not None:
        click.echo(f"source {describe(dataset)}", err=True)
    click.echo(describe_step(config.optim, processes), err=True)
    parents = (*start.lineage.parents, parent)
    names = (target,) if source is None else (target, str(source))

    def make_checkpoint(step: int) -> Checkpoint:
        lineage = Lineage(kind=kind, role="teacher", parents=parents, step=step, data=names)
        return Checkpoint(start.config, start.class_names, state_of(learning.teacher), lineage)

    every = config.monitor.steps(config.log_every)
    supervisor = Supervisor(
        folder,
        {name: part for name, part in learning.parts.items() if name != "labeller"},
        optimizer,
        Readings(learning, frames, config),
        make_checkpoint,
        guard=config.guard,
        choice=config.choice,
        every=every,
        candidate_every=config.choice.steps(every, config.optim.steps),
    )
    result = run_loop(
        "adapt" if source is not None else "adapt source-free",
        folder,
        learning.student,
        optimizer,
        optim,
        _streams(frames, dataset, start.config.input_size, config, first_step),
        learning.losses,
        resumed=state,
        first_step=first_step,
        log_every=config.log_every,
        checkpoint_every=config.checkpoint_every,
        after_step=learning.after_step,
        make_checkpoint=make_checkpoint,
        extra_state=lambda: {**identity, **{n: state_of(m) for n, m in learning.parts.items() if n != "student"}},
        supervisor=supervisor,
        others=[learning.domains] if learning.domains is not None else [],
        precision=config.precision,
    )
    summary: dict[str, Any] = {
        "command": "adapt",
        "kind": kind,
        "target_frames": len(frames),
        "source_images": len(dataset) if dataset is not None else 0,
        "classes": list(start.class_names),
        "seconds": round(time.perf_counter() - started, 1),
    }
    report(folder, result, summary, val)
    return result


def _adapt_statistics(learning: MutualLearning, frames: FrameIndex, config: AdaptConfig) -> int:
    count = min(config.teacher.adabn_images, len(frames))
    if count > 1 and count % ADABN_BATCH == 1:
        count -= 1  # the statistics of a single image would weigh as much as those of a batch
    batches = StepBatches(
        len(frames),
        TargetViews(frames, learning.student.config.input_size, None),
        collate_target,
        batch_size=ADABN_BATCH,
        steps=-(-count // ADABN_BATCH),
        seed=config.seed,
        stream=ADABN_STREAM,
        images=count,
    ).loader(0)
    skipped: dict[str, str] = {}

    def weak_views() -> Iterator[Tensor]:
        for batch in batches:
            skipped.update(batch.skipped)
            yield image_tensor(batch.images, learning.device)

    seen = adapt_batch_norm(learning.student, weak_views())
    for reason in skipped.values():
        click.echo(f"skipped: {reason}", err=True)
    learning.teacher.load_state_dict(learning.student.state_dict())
    learning.labeller.load_state_dict(learning.student.state_dict())
    learning.snapshot.load_state_dict(learning.student.state_dict())
    return seen


def _streams(
    frames: FrameIndex, dataset: Dataset | None, input_size: tuple[int, int], config: AdaptConfig, first_step: int
) -> list[Stream]:
    common: dict[str, Any] = {
        "batch_size": config.optim.batch,
        "steps": config.optim.steps,
        "seed": config.seed,
        "first_step": first_step,
        "share": Share(config.optim.accumulate, distributed.rank(), distributed.size()),
    }
    workers = worker_count(config.workers, 1 if dataset is None else 2, distributed.local_size())
    views = TargetViews(frames, input_size, config.augment)
    target = StepBatches(len(frames), views, collate_target, stream=TARGET_STREAM, **common)
    streams = [target.loader(workers)]
    if dataset is not None:
        source_views = SourceViews(dataset, input_size, config.augment)
        source = StepBatches(len(dataset), source_views, collate_source, stream=SOURCE_STREAM, **common)
        streams.append(source.loader(workers))
    return streams
