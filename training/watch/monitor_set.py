"""The same few target frames, asked again and again: what changes between two readings is the model alone."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from ptedge.config import require
from ptedge.detector.model import ProbabilisticFasterRCNN
from ptedge.detector.roi_heads import RawDetections
from ptedge.frames.source import FrameIndex

from ..batches.augment import AugmentConfig
from ..batches.steps import MONITOR_STREAM, StepBatches
from ..batches.views import TargetViews, collate_target
from ..losses.pseudo import cut_at
from .monitor import agreement, detection_signals, refound_share, side_ratios, total_variation

CHUNK = 8  # images a forward pass


@dataclass(frozen=True)
class MonitorConfig:
    """The label-free monitors.

    Attributes:
        frames: target frames that are watched, drawn by seed; at most those there are.
        every: steps between readings, rounded up to logged steps. A reading detects on each frame three times: with the
            defaults and 4 images a step, a tenth of the time of a source-free run on a CPU.
    """

    frames: int = 16
    every: int = 40

    def __post_init__(self) -> None:
        require("monitor.frames", self.frames, 1, 1024)
        require("monitor.every", self.every, 1)

    def steps(self, log_every: int) -> int:
        """Steps between two readings: the next multiple of ``log_every``."""
        return -(-self.every // log_every) * log_every


class MonitorSet:
    """Weak and strong views of fixed target frames, and what the model said of them before adaptation.

    Args:
        frames: the target.
        input_size: (height, width) in pixels.
        augment: of the strong view.
        config: how many frames.
        seed: of the run; draws frames and views.
        device: where the models are.
    """

    def __init__(
        self,
        frames: FrameIndex,
        input_size: tuple[int, int],
        augment: AugmentConfig,
        config: MonitorConfig,
        seed: int,
        device: torch.device,
    ) -> None:
        count = min(config.frames, len(frames))
        batches = StepBatches(
            len(frames),
            TargetViews(frames, input_size, augment),
            collate_target,
            batch_size=count,
            steps=1,
            seed=seed,
            stream=MONITOR_STREAM,
        )
        batch = batches[0]
        self.weak, self.strong = batch.weak.to(device), batch.strong.to(device)
        self.views = batch.views.to(device)
        self.start: list[RawDetections] = []
        self.snapshot: ProbabilisticFasterRCNN | None = None

    def remember(self, model: ProbabilisticFasterRCNN) -> None:
        """Take a model's answers as those to compare with.

        Args:
            model: the source model as it enters the adaptation, AdaBN included; in eval mode, and it stays as it is.
        """
        self.start = self._detect(model, self.weak)
        self.snapshot = model

    def read(self, teacher: ProbabilisticFasterRCNN, student: ProbabilisticFasterRCNN) -> dict[str, Any]:
        """Signals of the present models.

        Returns:
            :func:`~ptedge.training.watch.monitor.detection_signals` of the teacher; ``histogram_distance`` (total
            variation of its class shares from the start's, ``None`` where one finds nothing); ``source_agreement``,
            ``student_agreement`` (teacher against start and student, weak views) and ``consistency`` (the teacher's
            weak against its strong views), see :func:`~ptedge.training.watch.monitor.agreement`; ``source_coverage``,
            see :func:`~ptedge.training.watch.monitor.refound_share`; ``width_ratio`` and ``height_ratio`` to the boxes
            of the start, see :func:`~ptedge.training.watch.monitor.side_ratios`.
        """
        weak = self._detect_weak(teacher)
        strong = self._detect(teacher, self.strong)
        with _eval_mode(student):
            pupil = self._detect_weak(student)
        signals = detection_signals(weak, teacher.num_classes)
        prior = detection_signals(self.start, teacher.num_classes)["classes"]
        known = signals["classes"] is not None and prior is not None
        signals["histogram_distance"] = total_variation(signals["classes"], prior) if known else None
        signals["source_agreement"] = agreement(weak, self.start)
        signals["source_coverage"] = refound_share(weak, self.start)
        signals["width_ratio"], signals["height_ratio"] = side_ratios(weak, self.start)
        signals["student_agreement"] = agreement(weak, pupil)
        moved = [moved_detections(d, view) for d, view in zip(weak, self.views, strict=True)]
        signals["consistency"] = agreement(moved, strong)
        return {name: round(value, 6) if isinstance(value, float) else value for name, value in signals.items()}

    def _detect_weak(self, model: ProbabilisticFasterRCNN) -> list[RawDetections]:
        """Answers on the weak views; before the first step all models are the snapshot, whose answers are known."""
        if self.snapshot is not None and _same_weights(model, self.snapshot):
            return self.start
        return self._detect(model, self.weak)

    @torch.no_grad()
    def _detect(self, model: ProbabilisticFasterRCNN, images: Tensor) -> list[RawDetections]:
        detections: list[RawDetections] = []
        for chunk in torch.split(images, CHUNK):
            detections += model.detect(chunk.float().contiguous(memory_format=torch.channels_last))
        return detections


def _same_weights(first: torch.nn.Module, second: torch.nn.Module) -> bool:
    """Whether two models of one build hold the same numbers; BatchNorm's counters change nothing in eval mode."""
    a, b = first.state_dict(), second.state_dict()
    names = [name for name in a if a[name].is_floating_point()]
    return bool(names) and all(torch.equal(a[name], b[name]) for name in names)


def moved_detections(detections: RawDetections, view: Tensor) -> RawDetections:
    """Detections in the pixels of another view; boxes of which less than half is left are dropped.

    Args:
        detections: of one image.
        view: [7] (scale, dx, dy) and the picture in it, see :class:`~ptedge.training.batches.batch.TargetBatch`.
    """
    full = detections.boxes * view[0] + torch.cat([view[1:3], view[1:3]])
    boxes = cut_at(full, view[3:])
    size = (boxes[:, 2:] - boxes[:, :2]).clamp(min=0.0).prod(dim=1)
    keep = size > 0.5 * (full[:, 2:] - full[:, :2]).prod(dim=1)
    return replace(
        detections, boxes=boxes[keep], scores=detections.scores[keep], labels=detections.labels[keep]
    )  # the rest is not asked for in this view


@contextlib.contextmanager
def _eval_mode(model: ProbabilisticFasterRCNN) -> Iterator[None]:
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)
