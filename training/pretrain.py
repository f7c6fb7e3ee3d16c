"""Stage 1: supervised training on labelled source images (also the oracle, given target labels)."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click
import torch
from torch import Tensor

from ptedge.artifacts.checkpoint import Checkpoint, Lineage
from ptedge.config import to_dict
from ptedge.data import open_dataset
from ptedge.data.dataset import Dataset
from ptedge.data.locate import require_images
from ptedge.detector.model import ProbabilisticFasterRCNN
from ptedge.errors import InputError

from . import distributed
from .batches.loader import worker_count
from .batches.steps import Batch, Share, StepBatches, image_generators
from .batches.views import SourceViews, collate_source
from .config import TrainConfig
from .loop import LoopResult, prepare_torch, run_loop
from .losses.equations import Normaliser
from .losses.source import ImageLabels, sample_source, source_losses
from .optim import build_optimizer, describe_step, scaled
from .run_folder import RunFolder, state_of
from .validate import check_val, report
from .weights import load_imagenet

SOURCE_STREAM, SAMPLE_STREAM = 0, 10


def pretrain(
    source: Path, out: Path, config: TrainConfig, *, resume: bool = False, val: Path | None = None
) -> LoopResult:
    """Train a detector on labelled images.

    Args:
        source: DATA.
        out: RUN folder.
        config: settings; on resume those of the run.
        resume: continue ``out``.
        val: DATA to report on at the end; it influences nothing.

    Raises:
        PtedgeError: see the error tree.
    """
    started = time.perf_counter()
    dataset = open_trainable(source)
    check_val(val, dataset.class_names)
    folder = RunFolder(out, resume=resume, curves=config.curves)
    identity = {
        "command": "train",
        "classes": list(dataset.class_names),
        "optimizer_name": config.optim.optimizer,
        # where the first weights came from no longer matters
        "model": {key: value for key, value in to_dict(config.model).items() if key != "weights"},
    }
    state = folder.load_state(identity) if folder.resume else None
    device = prepare_torch(config.seed)
    model = ProbabilisticFasterRCNN(config.model, len(dataset.class_names))
    if state is None:
        loaded = load_imagenet(model.backbone, config.model.backbone, config.model.weights)
        click.echo(f"backbone {config.model.backbone}: {loaded}", err=True)
    model.backbone.frozen_statistics = config.batch_norm == "frozen"
    model.backbone.checkpointing = config.checkpointing
    model.to(device=device, memory_format=torch.channels_last).train()  # type: ignore[call-overload]
    processes = distributed.size()
    optim = scaled(config.optim, processes)
    optimizer = build_optimizer(model, optim)
    first_step = folder.restore(state, optimizer, student=model) if state is not None else 0
    if first_step < config.optim.steps:
        folder.write_config(config)
        folder.start_metrics(first_step)
    click.echo(f"{describe(dataset)}\n{describe_step(config.optim, processes)}", err=True)

    views = SourceViews(dataset, config.model.input_size, config.augment if config.view == "strong" else None)
    stream = StepBatches(
        len(dataset),
        views,
        collate_source,
        batch_size=config.optim.batch,
        steps=config.optim.steps,
        seed=config.seed,
        stream=SOURCE_STREAM,
        first_step=first_step,
        share=Share(config.optim.accumulate, distributed.rank(), processes),
    ).loader(worker_count(config.workers, 1, distributed.local_size()))

    def losses_of(step: int, batches: list[Batch], normalise: Normaliser) -> tuple[dict[str, Tensor], dict[str, float]]:
        images, targets = to_device(batches[0], device)
        draws = image_generators(config.seed, SAMPLE_STREAM, step, batches[0])
        outputs = model(images)
        samples = sample_source(outputs, targets, config.sampling, draws)
        roi = model.roi(outputs.features, samples.proposals)
        return source_losses(outputs.rpn, roi, samples, targets, config.model.probabilistic, normalise), {}

    def make_checkpoint(step: int) -> Checkpoint:
        lineage = Lineage(kind="source", role="student", step=step, data=(str(source),))
        return Checkpoint(config.model, dataset.class_names, state_of(model), lineage)

    result = run_loop(
        "train",
        folder,
        model,
        optimizer,
        optim,
        [stream],
        losses_of,
        resumed=state,
        first_step=first_step,
        log_every=config.log_every,
        checkpoint_every=config.checkpoint_every,
        after_step=lambda: None,
        make_checkpoint=make_checkpoint,
        extra_state=lambda: identity,
        precision=config.precision,
    )
    summary: dict[str, Any] = {
        "command": "train",
        "kind": "source",
        "images": len(dataset),
        "boxes": dataset.num_boxes,
        "classes": list(dataset.class_names),
        "seconds": round(time.perf_counter() - started, 1),
    }
    report(folder, result, summary, val)
    return result


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


def describe(dataset: Dataset) -> str:
    """One line about a data set, dropped boxes included."""
    empty = sum(1 for s in dataset.samples if not len(s.boxes))
    text = f"{dataset.root}: {len(dataset)} images ({empty} without objects), {dataset.num_boxes} boxes of "
    return text + ", ".join(dataset.class_names) + _left_out(dataset)


def _left_out(dataset: Dataset) -> str:
    """Counts of boxes that were dropped while reading, by reason; empty when none was."""
    told = ", ".join(f"{count} {reason}" for reason, count in dataset.dropped.items())
    return f"; left out: {told}" if told else ""


def to_device(batch: Batch, device: torch.device) -> tuple[Tensor, list[ImageLabels]]:
    """Images (float, channels last) and labels of a batch on the model's device."""
    targets = [
        ImageLabels(*(x.to(device, non_blocking=True) for x in (t.boxes, t.labels, t.ignore))) for t in batch.targets
    ]
    return image_tensor(batch.images, device), targets


def image_tensor(images: Tensor, device: torch.device) -> Tensor:
    """uint8 images as float 0..255 on the device, in the memory layout in which convolutions run fastest."""
    # as bytes to the device, there to float: a quarter of the traffic
    return images.to(device, non_blocking=True).to(dtype=torch.float32, memory_format=torch.channels_last)
