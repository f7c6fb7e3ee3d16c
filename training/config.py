"""Settings of ``ptedge train`` and ``ptedge adapt``: one frozen dataclass a command, with tables."""

from __future__ import annotations

from dataclasses import dataclass, field

from ptedge.config import require, require_one_of
from ptedge.detector.config import SIGMA_RULES, ModelConfig
from ptedge.errors import ConfigError
from ptedge.scores.convention import CONVENTIONS, VOC

from .batches.augment import AugmentConfig
from .batches.few import LabelsConfig
from .losses.align import AlignConfig
from .losses.assign import Sampling
from .losses.distill import DistillConfig, check_distill
from .losses.merge import MergeRule
from .losses.pseudo import PseudoRule
from .losses.target import TargetRule
from .watch.choose import ChoiceConfig
from .watch.limits import GuardConfig
from .watch.monitor_set import MonitorConfig

PRECISIONS = ("fp32", "bf16", "fp16")
PAPER_BATCH = 16  # images of each domain a step, for which the paper gives its learning rate


@dataclass(frozen=True)
class OptimConfig:
    """The optimiser and its schedule.

    Attributes:
        optimizer: ``adamw`` (needs fewer steps) or ``sgd`` (the paper).
        steps: optimiser steps; ``adapt`` takes 0 too, which leaves AdaBN alone.
        batch: images a step (of each domain, in ``adapt``), or a part of one, in each process.
        accumulate: parts of ``batch`` images a step, one after another; gradients are averaged. The step is that of a
            batch so many times as large, but BatchNorm by batch sees one part at a time.
        lr: learning rate.
        lr_scaling: ``none`` (lr as given) or ``linear``: lr and anchor_lr are given for 16 images a step, the paper's
            batch, and multiplied by images a step / 16; accumulated parts and parallel processes count.
        momentum: of SGD; the first beta of AdamW.
        weight_decay: on all weights but anchors.
        warmup: steps over which the learning rate rises linearly.
        schedule: ``constant`` (the paper) or ``cosine`` (falls to a hundredth at the last step).
        clip: highest gradient norm.
        anchor_lr: learning rate of the log anchor shapes; 0 keeps them fixed.
        roi_rate: learning rate of the ROI head as a multiple of ``lr``: its layers begin at random beside a backbone
            that does not, and a light head needs more of it.

    Reference:
        method.md sections 6 and 7. The paper: lr 0.016 at batch 16, 30,000 steps of which 4,000 are pretraining; the
        preset ``paper`` has its rate at batch 4. These defaults are what docs/results.md was measured with.
    """

    optimizer: str = "adamw"
    steps: int = 400
    batch: int = 4
    accumulate: int = 1
    lr: float = 3e-4
    lr_scaling: str = "none"
    momentum: float = 0.9
    weight_decay: float = 0.01
    warmup: int = 50
    schedule: str = "cosine"
    clip: float = 10.0
    anchor_lr: float = 0.0
    roi_rate: float = 1.0

    def __post_init__(self) -> None:
        require("steps", self.steps, 0)
        require("batch", self.batch, 1)
        require("accumulate", self.accumulate, 1)
        require("lr", self.lr, 0, open_low=True)
        require("momentum", self.momentum, 0, 0.9999)
        require("weight_decay", self.weight_decay, 0)
        require("warmup", self.warmup, 0)
        require("clip", self.clip, 0, open_low=True)
        require("anchor_lr", self.anchor_lr, 0)
        require("roi_rate", self.roi_rate, 0, 1000, open_low=True)
        require_one_of("optimizer", self.optimizer, ("sgd", "adamw"))
        require_one_of("schedule", self.schedule, ("constant", "cosine"))
        require_one_of("lr_scaling", self.lr_scaling, ("none", "linear"))


@dataclass(frozen=True)
class TrainConfig:
    """Settings of ``ptedge train``.

    Attributes:
        seed: of everything random.
        view: ``weak`` (flip only; better in a few hundred steps) or ``strong`` (the paper).
        box_beta: factor s2^beta on the likelihood of boxes, see :func:`~ptedge.training.losses.equations.beta_weight`.
        batch_norm: ``batch`` (normalise by each batch, keep running averages for inference) or ``frozen`` (ImageNet's).
        workers: processes that prepare images, for each stream; 0 uses the main one, -1 shares out the cores.
        precision: ``fp32``, ``bf16`` or ``fp16``: of convolutions and matrix products; boxes, losses, variances and
            weights stay in float32.
        checkpointing: work out the backbone's inner features twice instead of keeping them: less memory, more time.
        log_every: steps between lines of metrics.jsonl.
        curves: write TensorBoard events (RUN/events) and, at the end, plots (RUN/plots).
        checkpoint_every: steps between writes of last.pt.
        convention: what AP50 and AP75 of ``--val`` mean, as ``ptedge eval --convention`` has it.
        estimate_images: images of ``--val`` in each of 50 corrupted sets, from which it is learned at the end how to
            estimate AP and the scale of sigma without labels, for example 24; 0 leaves that out. Only where ``--val``
            is of the source: what a place is judged by should not be learned from.
        reference_frames: images on which it is measured, at the end, what pictures and detections are like here, of
            ``--val``, or of those trained on; drift is told against that (docs/drift.md). 0 leaves that out.
        model: the detector.
        optim: the optimiser.
        augment: the strong view.
        sampling: anchors and proposals an image that learn.
        distill: a wide ROI head that teaches the model's light one.
    """

    seed: int = 0
    view: str = "weak"
    box_beta: float = 0.0
    batch_norm: str = "batch"
    workers: int = -1
    precision: str = "fp32"
    checkpointing: bool = False
    log_every: int = 20
    curves: bool = True
    checkpoint_every: int = 200
    convention: str = VOC.name
    estimate_images: int = 0
    reference_frames: int = 300
    model: ModelConfig = field(default_factory=ModelConfig)
    optim: OptimConfig = field(default_factory=OptimConfig)
    augment: AugmentConfig = field(default_factory=AugmentConfig)
    sampling: Sampling = field(default_factory=lambda: Sampling(roi_count=64))
    distill: DistillConfig = field(default_factory=DistillConfig)

    def __post_init__(self) -> None:
        check_distill(self.distill, self.model)
        require("optim.steps", self.optim.steps, 1)
        require("estimate_images", self.estimate_images, 0)
        require("reference_frames", self.reference_frames, 0)
        require_one_of("view", self.view, ("strong", "weak"))
        require("box_beta", self.box_beta, 0, 1)
        require_one_of("batch_norm", self.batch_norm, ("batch", "frozen"))
        require_one_of("precision", self.precision, PRECISIONS)
        require_one_of("convention", self.convention, tuple(CONVENTIONS))
        _check_loop(self.seed, self.workers, self.log_every, self.checkpoint_every)


@dataclass(frozen=True)
class TeacherConfig:
    """The mean teacher.

    Attributes:
        ema: share of the teacher kept each step. The paper's 0.9996 is for 26,000 steps.
        labels: whose pseudo boxes the student learns: the ``teacher``'s, or always those of the ``start`` model (after
            AdaBN): fixed pseudo labels, which cannot feed back.
        statistics: of the teacher's BatchNorm: they follow the ``student``'s, which are of strong views, or those of
            the ``weak`` views that it labels.
        adabn: re-estimate BatchNorm statistics on target frames before the first step.
        adabn_images: at most this many frames for it.
    """

    ema: float = 0.98
    labels: str = "teacher"
    statistics: str = "student"
    adabn: bool = False
    adabn_images: int = 256

    def __post_init__(self) -> None:
        require("ema", self.ema, 0, 1)
        require_one_of("labels", self.labels, ("teacher", "start"))
        require_one_of("statistics", self.statistics, ("student", "weak"))
        require("adabn_images", self.adabn_images, 2)


@dataclass(frozen=True)
class AdaptedModel:
    """What an adaptation sets anew in the model that it starts from; all else stays.

    Attributes:
        sigma_rule: whose variances make the sigma of a detection: ``cluster`` (all candidates that overlap it, and how
            far they lie apart) or ``own`` (its own alone). Training is the same under both.
    """

    sigma_rule: str = "cluster"

    def __post_init__(self) -> None:
        require_one_of("sigma_rule", self.sigma_rule, SIGMA_RULES)


@dataclass(frozen=True)
class AdaptConfig:
    """Settings of ``ptedge adapt``.

    Attributes:
        seed: of everything random.
        workers: processes that prepare images, for each stream; 0 uses the main one, -1 shares out the cores.
        precision: ``fp32``, ``bf16`` or ``fp16``: of convolutions and matrix products; boxes, losses, variances and
            weights stay in float32.
        checkpointing: work out the backbone's inner features twice instead of keeping them: less memory, more time.
        log_every: steps between lines of metrics.jsonl.
        curves: write TensorBoard events (RUN/events) and, at the end, plots (RUN/plots).
        checkpoint_every: steps between writes of last.pt.
        convention: what AP50 and AP75 of ``--val`` mean, as ``ptedge eval --convention`` has it.
        estimate_frames: target frames from which AP and the scale of sigma are estimated at the end, without labels,
            where CHECKPOINT has learned how; 0 leaves that out.
        reference_frames: target frames on which it is measured, at the end, what pictures and detections are like here;
            drift is told against that (docs/drift.md). 0 leaves that out.
        estimate_scale: multiply sigma by the estimated scale, in model.pt. Off, as it made the cluster's sigma worse.
        batch_norm: how the student's BatchNorm works: ``batch`` or ``frozen``; the teacher is in eval mode with
            statistics that follow the student's, as its weights do.
        lambda_target: weight of the target losses against the source losses; 0 leaves pseudo boxes out altogether.
        model: what changes in the model beside its weights.
        optim: the optimiser.
        teacher: the mean teacher.
        teacher_boxes: how boxes of another detector join the teacher's.
        pseudo: pseudo boxes.
        target: what is learnt from them.
        labels: a handful of labelled target frames beside the others.
        align: domain alignment by gradient reversal.
        monitor: what is watched without labels.
        guard: limits on it.
        choice: which teacher becomes model.pt.
        augment: the strong view.
        sampling: anchors and proposals an image that learn.
    """

    seed: int = 0
    workers: int = -1
    precision: str = "fp32"
    checkpointing: bool = False
    log_every: int = 20
    curves: bool = True
    checkpoint_every: int = 200
    convention: str = VOC.name
    estimate_frames: int = 100
    estimate_scale: bool = False
    reference_frames: int = 300
    batch_norm: str = "batch"
    lambda_target: float = 1.0
    model: AdaptedModel = field(default_factory=AdaptedModel)
    optim: OptimConfig = field(default_factory=lambda: OptimConfig(steps=100, lr=1e-4, warmup=10, anchor_lr=1e-3))
    teacher: TeacherConfig = field(default_factory=TeacherConfig)
    teacher_boxes: MergeRule = field(default_factory=MergeRule)
    pseudo: PseudoRule = field(default_factory=PseudoRule)
    target: TargetRule = field(default_factory=TargetRule)
    labels: LabelsConfig = field(default_factory=LabelsConfig)
    align: AlignConfig = field(default_factory=AlignConfig)
    monitor: MonitorConfig = field(default_factory=MonitorConfig)
    guard: GuardConfig = field(default_factory=GuardConfig)
    choice: ChoiceConfig = field(default_factory=ChoiceConfig)
    augment: AugmentConfig = field(default_factory=AugmentConfig)
    sampling: Sampling = field(default_factory=lambda: Sampling(roi_count=64))

    def __post_init__(self) -> None:
        require_one_of("batch_norm", self.batch_norm, ("batch", "frozen"))
        require("lambda_target", self.lambda_target, 0)
        require("estimate_frames", self.estimate_frames, 0)
        require("reference_frames", self.reference_frames, 0)
        require_one_of("precision", self.precision, PRECISIONS)
        require_one_of("convention", self.convention, tuple(CONVENTIONS))
        _check_loop(self.seed, self.workers, self.log_every, self.checkpoint_every)


RunConfig = TrainConfig | AdaptConfig


def check_mode(config: AdaptConfig, *, source_free: bool, labelled: bool = False) -> None:
    """Refuse settings that need source data where there is none.

    Args:
        config: settings.
        source_free: no labelled source images are given.
        labelled: some frames of the target are labelled.

    Raises:
        ConfigError: alignment, or nothing to learn.
    """
    if not source_free:
        return
    if config.align.method != "none":
        raise ConfigError(
            f"align.method={config.align.method} aligns source and target features and needs both. "
            f"Give --source DATA instead of --source-free, or set align.method=none"
        )
    if config.lambda_target == 0 and config.optim.steps and not (labelled and config.labels.weight):
        raise ConfigError("source-free with lambda_target=0 leaves nothing to learn. Raise it, or give --labels")


def _check_loop(seed: int, workers: int, log_every: int, checkpoint_every: int) -> None:
    require("seed", seed, 0, 2**63 - 1)
    require("workers", workers, -1, 64)
    require("log_every", log_every, 1)
    require("checkpoint_every", checkpoint_every, 1)
