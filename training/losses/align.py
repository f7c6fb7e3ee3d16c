"""Domain alignment by gradient reversal: what Probabilistic Teacher is compared with. Same loop, no pseudo boxes.

Classifiers of the domain sit on features of the student while it learns from labelled source images. They are
optimised with it, belong to the run (last.pt) and never to a model: model.pt is the teacher, the average of students.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ptedge.config import require, require_one_of
from ptedge.detector.model import ProbabilisticFasterRCNN
from ptedge.errors import ConfigError

from .align_equations import (
    classes_present,
    consistency_weight,
    global_loss,
    image_class_loss,
    instance_loss,
    local_loss,
    reverse_gradient,
)
from .equations import Normaliser, own_count
from .source import Targets

METHODS = ("none", "sw", "ccr")
HIDDEN = 128  # channels of the domain classifiers


@dataclass(frozen=True)
class AlignConfig:
    """Alignment of source and target features by gradient reversal; needs ``--source``.

    Attributes:
        method: ``none``; ``sw`` (strong-weak: least squares at every place of an early feature map, focal loss on the
            last one); ``ccr`` (also which classes are in the picture, and instances weighted by how much picture and
            instance disagree).
        weight: of the strong-weak terms. Saito et al.: 1, and 0.1 from synthetic to real.
        gamma: of the focal loss.
        local_stage: how many stages of the backbone lie before the early feature map.
        instance_weight: of instance alignment, in ``ccr``.

    Reference:
        Saito et al. 2019 (SW) without its context vectors; Xu et al. 2020 (ICR-CCR) on top of SW.
    """

    method: str = "none"
    weight: float = 0.1
    gamma: float = 5.0
    local_stage: int = 3
    instance_weight: float = 0.1

    def __post_init__(self) -> None:
        require_one_of("method", self.method, METHODS)
        require("weight", self.weight, 0)
        require("gamma", self.gamma, 0)
        require("local_stage", self.local_stage, 1, 4)
        require("instance_weight", self.instance_weight, 0)


@dataclass
class Seen:
    """What passed through a model inside :func:`watch`.

    Attributes:
        local: [B, c, h, w] after the early stage.
        final: [B, C, H/16, W/16] feature map.
        hidden: [R, n] second hidden layer of the ROI head, before its ReLU.
        logits: [R, K+1] class logits, background last.
    """

    local: Tensor = field(default_factory=lambda: torch.empty(0))
    final: Tensor = field(default_factory=lambda: torch.empty(0))
    hidden: Tensor = field(default_factory=lambda: torch.empty(0))
    logits: Tensor = field(default_factory=lambda: torch.empty(0))


@contextlib.contextmanager
def watch(model: ProbabilisticFasterRCNN, config: AlignConfig) -> Iterator[Seen]:
    """Inside, keep the features that a forward pass makes on its way; nothing without a method.

    Args:
        model: the student.
        config: which stage is the early one.
    """
    seen = Seen()
    if config.method == "none":
        yield seen
        return

    def keep(name: str) -> Any:
        return lambda module, inputs, output: setattr(seen, name, output)

    places = {
        "local": model.backbone._stages[config.local_stage - 1],
        "final": model.backbone,
        "hidden": model.roi_head.fc2,
        "logits": model.roi_head.logits,
    }
    handles = [module.register_forward_hook(keep(name)) for name, module in places.items()]
    try:
        yield seen
    finally:
        for handle in handles:
            handle.remove()


class DomainClassifiers(nn.Module):
    """The classifiers of one method. Gradients that leave them towards the detector are reversed.

    Without BatchNorm and dropout, unlike their models': batches are small, and a resumed run must be the same run.

    Args:
        model: whose features they see; their layers get its channel counts.
        config: method and weights.

    Raises:
        ConfigError: the backbone has no such early stage.
    """

    def __init__(self, model: ProbabilisticFasterRCNN, config: AlignConfig) -> None:
        super().__init__()
        self.config = config
        stages = len(model.backbone._stages)
        if config.local_stage >= stages:
            raise ConfigError(
                f"align.local_stage is {config.local_stage}, but the backbone {model.config.backbone} has {stages} "
                f"stages. Take one before the last"
            )
        local, final = _channels(model, config.local_stage), model.backbone.channels
        self.local = nn.Sequential(
            nn.Conv2d(local, HIDDEN, 1), nn.ReLU(), nn.Conv2d(HIDDEN, HIDDEN, 1), nn.ReLU(), nn.Conv2d(HIDDEN, 1, 1)
        )
        self.globally = nn.Sequential(
            nn.Conv2d(final, HIDDEN, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(HIDDEN, HIDDEN, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(HIDDEN, 1),
        )
        if config.method == "ccr":
            self.classes = nn.Conv2d(final, model.num_classes, 1)
            nn.init.normal_(self.classes.weight, std=0.01)  # begins undecided, whatever the scale of the features
            nn.init.zeros_(self.classes.bias)  # type: ignore[arg-type]
            hidden = model.roi_head.fc2.out_features
            self.instances = nn.Sequential(
                nn.Linear(hidden, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 1)
            )

    def image_logits(self, final: Tensor) -> Tensor:
        """[B, K] logits of the classes in the picture; their gradient is not reversed."""
        return self.classes(final).mean(dim=(2, 3))  # type: ignore[no-any-return]

    def _strong_weak(self, seen: Seen, domain: int) -> dict[str, Tensor]:
        name, c = ("source", "target")[domain], self.config
        logits = self.globally(reverse_gradient(seen.final)).flatten()
        return {
            f"align_{name}_local": c.weight * local_loss(self.local(reverse_gradient(seen.local)), domain),
            f"align_{name}_global": c.weight * global_loss(logits, domain, c.gamma),
        }

    def _instances(self, seen: Seen) -> Tensor:
        logits: Tensor = self.instances(reverse_gradient(F.relu(seen.hidden)))
        return logits.flatten()

    def source_losses(self, seen: Seen, targets: list[Targets], normalise: Normaliser = own_count) -> dict[str, Tensor]:
        """Terms of a source batch.

        Args:
            seen: of the pass that gave the supervised losses.
            targets: its labels.
            normalise: counts to what sums are divided by.

        Returns:
            Weighted scalars by name.
        """
        losses = self._strong_weak(seen, 0)
        if self.config.method == "ccr":
            present = classes_present([target.labels for target in targets], self.classes.out_channels)
            losses["align_image_class"] = image_class_loss(self.image_logits(seen.final), present)
            logits = self._instances(seen)
            term = instance_loss(logits, 0, normalise("align_source_instance", len(logits)))
            losses["align_source_instance"] = self.config.instance_weight * term
        return losses

    def target_losses(
        self, model: ProbabilisticFasterRCNN, images: Tensor, proposals: int, normalise: Normaliser = own_count
    ) -> dict[str, Tensor]:
        """Terms of a target batch, which passes through the student here.

        Args:
            model: the student, in training mode.
            images: [B, 3, H, W] strong views, RGB 0..255.
            proposals: at most this many instances an image, best objectness first.
            normalise: counts to what sums are divided by.

        Returns:
            Weighted scalars by name.
        """
        with watch(model, self.config) as seen:
            features = model.features(images)
            if self.config.method == "ccr":
                found = [boxes[:proposals] for boxes in model.proposals(model.rpn(features), training=True)]
                model.roi(features, found)
        losses = self._strong_weak(seen, 1)
        if self.config.method == "ccr":
            counts = torch.tensor([len(boxes) for boxes in found], device=images.device)
            image = torch.repeat_interleave(torch.arange(len(found), device=images.device), counts)
            weight = consistency_weight(self.image_logits(seen.final), seen.logits, image)
            term = instance_loss(self._instances(seen), 1, normalise("align_target_instance", len(weight)), weight)
            losses["align_target_instance"] = self.config.instance_weight * term
        return losses


@torch.no_grad()
def _channels(model: ProbabilisticFasterRCNN, stage: int) -> int:
    """Channels after the first ``stage`` stages; a picture of 32 pixels finds out without touching any statistics."""
    training = model.training
    x = torch.zeros(1, 3, 32, 32, device=model.pixel_mean.device)
    model.eval()
    for part in model.backbone._stages[:stage]:
        x = part(x)
    model.train(training)
    return int(x.shape[1])
