"""Stage 1: supervised training on labelled source images (also the oracle, given target labels)."""

from __future__ import annotations

import time
from collections.abc import Collection, Generator, Mapping
from pathlib import Path
from typing import Any

import click
import torch
from torch import Tensor, nn

from ptedge.artifacts.checkpoint import Checkpoint
from ptedge.artifacts.lineage import Lineage
from ptedge.config import to_dict
from ptedge.data.dataset import Dataset
from ptedge.detector.model import Outputs, ProbabilisticFasterRCNN
from ptedge.detector.roi_heads import ROIHead, ROIOutput

from . import distributed
from .batches.batch import SourceBatch
from .batches.steps import SOURCE_SAMPLE, SOURCE_STREAM, image_generators
from .batches.views import SourceViews, collate_source
from .config import TrainConfig
from .data import describe_data, open_stream, open_trainable
from .device import to_device
from .estimate.finish import learn_estimate
from .estimate.place import keep_reference_of
from .loop import LoopResult
from .losses.assign import Samples
from .losses.distill import FULL, distill_losses
from .losses.equations import Normaliser
from .losses.source import ImageLabels, sample_source, source_losses, source_roi_losses
from .recipes.recipe import Situation, settle
from .run import begin_run, carry_out
from .run_folder import RunFolder
from .state import state_of
from .weights.imagenet import load_imagenet


class Pretraining:
    """Supervised training as a :class:`~ptedge.training.task.Task`.

    Args:
        source: DATA, for the lineage.
        dataset: opened from it.
        config: settings.
        device: that computes.
    """

    def __init__(self, source: Path, dataset: Dataset, config: TrainConfig, device: torch.device) -> None:
        self.name = "train"
        self.identity: Mapping[str, Any] = identity_of(dataset, config)
        self.images = config.optim.batch
        self.source = source
        self.dataset = dataset
        self.config = config
        self.device = device
        model = ProbabilisticFasterRCNN(config.model, len(dataset.class_names))
        model.backbone.frozen_statistics = config.batch_norm == "frozen"
        model.backbone.checkpointing = config.checkpointing
        self.student: ProbabilisticFasterRCNN = model.to(device=device, memory_format=torch.channels_last).train()  # type: ignore[call-overload]
        self.full_head = self._make_full_head() if config.distill.weight else None
        self.others: list[nn.Module] = [] if self.full_head is None else [self.full_head]

    def _make_full_head(self) -> ROIHead:
        """The wide head that teaches; drawn after the model, whose first weights are those of a run without it."""
        model, distill = self.config.model, self.config.distill
        head = ROIHead(
            self.student.backbone.channels,
            self.student.num_classes,
            model.probabilistic,
            model.variance_floor,
            model.variance_ceiling,
            hidden=distill.hidden,
            reduced=distill.channels,
        )
        return head.to(device=self.device, memory_format=torch.channels_last)  # type: ignore[call-overload,no-any-return]

    @property
    def parts(self) -> dict[str, nn.Module]:
        """The student, and the wide head where there is one."""
        return {"student": self.student, **({"full_head": self.full_head} if self.full_head is not None else {})}

    def start(self, folder: RunFolder, *, resumed: bool) -> None:
        """Load the backbone's weights into a new model."""
        if not resumed:
            model = self.config.model
            loaded = load_imagenet(self.student.backbone, model.backbone, model.weights)
            click.echo(f"backbone {model.backbone}: {loaded}", err=True)

    def describe(self) -> list[str]:
        """One line about the data."""
        return [describe_data(self.dataset)]

    def stream(self, first_step: int) -> Generator[SourceBatch, None, None]:
        """Labelled images."""
        augment = self.config.augment if self.config.view == "strong" else None
        views = SourceViews(self.dataset, self.config.model.input_size, augment)
        count = len(self.dataset)
        return open_stream(views, collate_source, count, self.config, stream=SOURCE_STREAM, first_step=first_step)

    def prepare(self, given: SourceBatch) -> SourceBatch:
        """Nothing to work out."""
        return given

    def losses(self, step: int, part: SourceBatch, normalise: Normaliser) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """The four supervised losses of a part of a step, and those of a wide head; no further numbers."""
        images, labels = to_device(part, self.device)
        draws = image_generators(self.config.seed, SOURCE_SAMPLE, step, part)
        outputs = self.student(images)
        samples = sample_source(outputs, labels, self.config.sampling, draws)
        roi = self.student.roi(outputs.features, samples.proposals)
        losses = source_losses(
            outputs.rpn, roi, samples, labels, self.config.model.probabilistic, normalise, self.config.box_beta
        )
        if self.full_head is not None:
            losses |= self._taught(self.full_head, outputs, roi, samples, labels, normalise)
        return losses, {}

    def _taught(
        self,
        full_head: ROIHead,
        outputs: Outputs,
        light: ROIOutput,
        samples: Samples,
        labels: list[ImageLabels],
        normalise: Normaliser,
    ) -> dict[str, Tensor]:
        """What the wide head learns from labels, and the light one from it."""
        config, probabilistic = self.config, self.config.model.probabilistic
        full = full_head(outputs.features, samples.proposals)
        own = source_roi_losses(
            full, samples, labels, probabilistic, lambda name, count: normalise(FULL + name, count), config.box_beta
        )
        taught = distill_losses(light, full, probabilistic, normalise)
        weighted = {name: config.distill.weight * term for name, term in taught.items()}
        return {**{FULL + name: term for name, term in own.items()}, **weighted}

    def after_step(self) -> None:
        """Nothing follows."""

    def checkpoint(self, step: int) -> Checkpoint:
        """The student."""
        lineage = Lineage(kind="source", role="student", step=step, data=(str(self.source),))
        return Checkpoint(self.config.model, self.dataset.class_names, state_of(self.student), lineage)

    def supervisor(self, folder: RunFolder, optimizer: torch.optim.Optimizer) -> None:
        """Labels need no watching."""

    def summary(self) -> dict[str, Any]:
        """What was trained on."""
        return {
            "command": "train",
            "kind": "source",
            "images": len(self.dataset),
            "boxes": self.dataset.num_boxes,
            "classes": list(self.dataset.class_names),
        }


def identity_of(dataset: Dataset, config: TrainConfig) -> dict[str, Any]:
    """What must be the same for a run to go on."""
    return {
        "command": "train",
        "classes": list(dataset.class_names),
        "optimizer_name": config.optim.optimizer,
        # where the first weights came from no longer matters, and how sigma is told not before the checkpoint is used
        "model": {key: value for key, value in to_dict(config.model).items() if key not in ("weights", "sigma_rule")},
        "distill": bool(config.distill.weight),
    }


def pretrain(
    source: Path,
    out: Path,
    config: TrainConfig,
    *,
    given: Collection[str] | None = None,
    resume: bool = False,
    val: Path | None = None,
) -> LoopResult:
    """Train a detector on labelled images.

    Args:
        source: DATA.
        out: RUN folder.
        config: settings; on resume those of the run.
        given: keys that the user has set, ``table.key``; others are chosen for the data and the machine. ``None``: all.
        resume: continue ``out``.
        val: other labelled DATA of the source, to report on at the end and to learn estimates without labels from; no
            weight depends on it.

    Raises:
        PtedgeError: see the error tree.
    """
    started = time.perf_counter()
    dataset = open_trainable(source)
    situation = Situation("train", len(dataset), torch.cuda.is_available(), distributed.size())
    settled = settle(config, given, situation, dataset)
    config = settled.config
    identity = identity_of(dataset, config)
    with begin_run(out, config, identity, dataset.class_names, resume=resume, val=val, started=started) as run:
        result = carry_out(Pretraining(source, dataset, config, run.device), run, settled)
        if not result.interrupted and distributed.is_main():
            learned = _look_at_source(run.folder.model, dataset, run.val, config)
            run.folder.write_summary({**run.folder.read_summary(), **learned})
        return result


def _look_at_source(model: Path, dataset: Dataset, val: Path | None, config: TrainConfig) -> dict[str, Any]:
    """What the finished model learns about judging itself without labels, and what images are like here."""
    learned: dict[str, Any] = {}
    if val is not None and config.estimate_images:
        learned |= learn_estimate(model, val, config.estimate_images, config.seed)
    if (count := config.reference_frames) > 0:
        learned |= keep_reference_of(model, val or dataset, count, "val" if val is not None else "train")
    return learned
