"""Mutual learning: the teacher labels target frames with uncertainty, the student learns from that."""

from __future__ import annotations

import contextlib
import copy
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from ptedge.detector.backbone import following_statistics, untracked_statistics
from ptedge.detector.model import ProbabilisticFasterRCNN
from ptedge.detector.roi_heads import RawDetections

from .batches.batch import AdaptBatch, SourceBatch, TargetBatch
from .batches.steps import LABELS_SAMPLE, SOURCE_SAMPLE, TARGET_SAMPLE, image_generators
from .config import AdaptConfig
from .device import image_tensor, to_device
from .losses.align import DomainClassifiers
from .losses.equations import Normaliser, own_count
from .losses.merge import NO_FOREIGN, merge_boxes
from .losses.offset import without_offset
from .losses.pseudo import PseudoBoxes, make_pseudo_boxes
from .losses.source import sample_source, source_losses
from .losses.target import sample_target, target_losses
from .teacher import make_teacher, update_teacher
from .watch.label_offset import LabelOffset
from .watch.monitor import pseudo_numbers

LABELLED = "labelled_"  # before the names of the losses of labelled frames


@dataclass(frozen=True)
class PseudoLabelled:
    """A part of a step with what the teacher says of it.

    Attributes:
        batch: as given.
        pseudo: in the pixels of the strong views, one entry an image; none at all when they do not count.
        numbers: about them, for the log.
    """

    batch: AdaptBatch
    pseudo: list[PseudoBoxes] = field(default_factory=list)
    numbers: dict[str, float | Tensor] = field(default_factory=dict)


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
        aligned = config.align.method != "none"
        self.domains = DomainClassifiers(model, config.align).to(device) if aligned else None
        self.early_stage = config.align.local_stage if aligned else None
        model.backbone.frozen_statistics = config.batch_norm == "frozen"
        model.backbone.checkpointing = config.checkpointing
        self.foreign_sigma = config.teacher_boxes.sigma  # of a side of another detector's boxes, over their size
        self.student = model.train()
        self.offset: LabelOffset | None = None  # of the teacher's boxes, where labelled frames tell it
        self.others: list[nn.Module] = [self.domains] if self.domains is not None else []

    @property
    def parts(self) -> dict[str, nn.Module]:
        """All that changes or cannot be had again from the start checkpoint, by its name in last.pt."""
        parts: dict[str, nn.Module] = {"student": self.student, "teacher": self.teacher}
        if self.labeller is not self.teacher:
            parts["labeller"] = self.labeller
        if self.offset is not None:
            parts["offset"] = self.offset
        if self.domains is not None:
            parts["domains"] = self.domains
        return parts

    def prepare(self, given: AdaptBatch) -> PseudoLabelled:
        """Ask the teacher. With ``lambda_target`` 0 nobody would learn from its answer, and it is not asked."""
        if self.config.lambda_target == 0:
            return PseudoLabelled(given)
        weak = image_tensor(given.target.weak, self.device)
        follow = self.config.teacher.statistics == "weak" and self.labeller is self.teacher
        keep = self.config.teacher.ema
        with following_statistics(self.teacher.backbone, keep) if follow else contextlib.nullcontext():
            detections = self.labeller.detect(weak)
        if (offset := self.offset) is not None and self.config.labels.move_pseudo:
            detections = [replace(one, boxes=without_offset(one.boxes, offset.of_views)) for one in detections]
        detections = self._with_foreign(detections, given.target)
        ceiling = self.student.config.variance_ceiling
        probabilistic = self.student.config.probabilistic
        pseudo = [make_pseudo_boxes(one, self.config.pseudo, probabilistic, ceiling) for one in detections]
        views = given.target.views.to(self.device)
        moved = [boxes.moved(view).clipped(view[3:]) for boxes, view in zip(pseudo, views, strict=True)]
        return PseudoLabelled(given, moved, pseudo_numbers(detections, pseudo))

    def _with_foreign(self, own: list[RawDetections], batch: TargetBatch) -> list[RawDetections]:
        """Detections with those of another detector, where there are any."""
        rule, size = self.config.teacher_boxes, self.student.config.input_size
        return [
            merge_boxes(one, other.to(self.device), rule, self.foreign_sigma, size) if len(other) else one
            for one, other in zip(own, batch.foreign or [NO_FOREIGN] * len(own), strict=True)
        ]

    def losses(
        self, step: int, part: PseudoLabelled, normalise: Normaliser = own_count
    ) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Weighted losses of a part of a step, and numbers for the log.

        Args:
            step: counted from 0.
            part: of :meth:`prepare`.
            normalise: counts to what sums are divided by.

        Reference:
            Paper, section 3: L = L_S + lambda_T L_T; source-free L = L_T. Domain alignment adds its terms
            (:mod:`~ptedge.training.losses.align`) and usually has lambda_T = 0, which leaves pseudo boxes out. Labelled
            frames of the target add the terms of L_S once more, on them.
        """
        losses: dict[str, Tensor] = {}
        if part.batch.source is not None:
            losses.update(self._source_losses(step, part.batch.source, normalise))
            if self.domains is not None:
                losses.update(self._align_target(self.domains, part.batch.target, normalise))
        if self.config.lambda_target != 0:
            terms = self._target_losses(step, part.batch.target, part.pseudo, normalise)
            weight = self.config.lambda_target
            boxes = weight if part.batch.labelled is None else weight * self.config.labels.pseudo_box_weight
            losses.update({name: (boxes if name.endswith("_box") else weight) * term for name, term in terms.items()})
        if part.batch.labelled is not None:
            losses.update(self._labelled_losses(step, part.batch.labelled, normalise))
        return losses, part.numbers

    def _source_losses(self, step: int, batch: SourceBatch, normalise: Normaliser) -> dict[str, Tensor]:
        images, labels = to_device(batch, self.device)
        draws = image_generators(self.config.seed, SOURCE_SAMPLE, step, batch)
        # statistics stay: the teacher, who follows, works on target frames only
        with untracked_statistics(self.student.backbone, count_batches=True):
            outputs = self.student(images, self.early_stage)
        samples = sample_source(outputs, labels, self.config.sampling, draws)
        roi = self.student.roi(outputs.features, samples.proposals)
        losses = source_losses(
            outputs.rpn, roi, samples, labels, self.student.config.probabilistic, normalise, self.config.target.box_beta
        )
        if self.domains is not None:
            losses.update(self.domains.source_losses(outputs, roi, labels, normalise))
        return losses

    def _labelled_losses(self, step: int, batch: SourceBatch, normalise: Normaliser) -> dict[str, Tensor]:
        """``labelled_rpn_cls`` and so on. As with source images, statistics stay those of the unlabelled frames."""
        config = self.config
        images, labels = to_device(batch, self.device)
        draws = image_generators(config.seed, LABELS_SAMPLE, step, batch)
        with untracked_statistics(self.student.backbone, count_batches=True):
            outputs = self.student(images)
        samples = sample_source(outputs, labels, config.sampling, draws)
        roi = self.student.roi(outputs.features, samples.proposals)
        terms = source_losses(
            outputs.rpn,
            roi,
            samples,
            labels,
            self.student.config.probabilistic,
            lambda name, count: normalise(LABELLED + name, count),
            config.target.box_beta,
        )
        weight = config.labels.weight
        return {
            LABELLED + name: (weight * config.labels.box_weight if name.endswith("_box") else weight) * term
            for name, term in terms.items()
        }

    def _target_losses(
        self, step: int, batch: TargetBatch, pseudo: list[PseudoBoxes], normalise: Normaliser
    ) -> dict[str, Tensor]:
        config = self.config
        draws = image_generators(config.seed, TARGET_SAMPLE, step, batch)
        outputs = self.student(image_tensor(batch.strong, self.device))
        samples = sample_target(outputs, pseudo, config.target, config.sampling, draws)
        roi = self.student.roi(outputs.features, samples.proposals)
        probabilistic = self.student.config.probabilistic
        return target_losses(outputs.rpn, roi, samples, pseudo, config.target, probabilistic, normalise)

    def _align_target(self, domains: DomainClassifiers, batch: TargetBatch, normalise: Normaliser) -> dict[str, Tensor]:
        images = image_tensor(batch.strong, self.device)
        if not domains.sees_instances:  # no need of a first stage
            return domains.target_losses(*self.student.feature_maps(images, self.early_stage))
        outputs = self.student(images, self.early_stage)
        found = [boxes[: self.config.sampling.roi_count] for boxes in outputs.proposals]
        roi = self.student.roi(outputs.features, found)
        losses = domains.target_losses(outputs.early, outputs.features)
        counts = [len(boxes) for boxes in found]
        return losses | domains.target_instance_losses(outputs.features, roi, counts, normalise)

    def after_step(self) -> None:
        """The teacher follows, and where labelled frames tell its offset, that is measured anew when it is time."""
        own = self.config.teacher.statistics == "weak"
        update_teacher(self.teacher, self.student, self.config.teacher.ema, own_statistics=own)
        if self.offset is not None:
            self.offset.after_step(self.labeller, self.snapshot)
