"""Domain alignment by gradient reversal: what Probabilistic Teacher is compared with. Same loop, no pseudo boxes.

Classifiers of the domain look at feature maps and hidden layers that the student gives while it learns from labelled
source images. They are optimised with it, belong to the run (last.pt) and never to a model: model.pt is the teacher,
the average of students.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ptedge.config import require, require_one_of
from ptedge.detector.model import Outputs, ProbabilisticFasterRCNN
from ptedge.detector.roi_heads import ROIOutput
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
from .source import ImageLabels

METHODS = ("none", "sw", "ccr")
SOURCE, TARGET = 0, 1  # domains, as classifiers tell them
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
        stages = len(model.backbone.stages)
        if config.local_stage >= stages:
            raise ConfigError(
                f"align.local_stage is {config.local_stage}, but the backbone {model.config.backbone} has {stages} "
                f"stages. Take one before the last"
            )
        local, final = model.backbone.channels_after(config.local_stage), model.backbone.channels
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

    @property
    def sees_instances(self) -> bool:
        """Whether the method aligns instances too, and so needs the ROI head's answers on target images."""
        return self.config.method == "ccr"

    def source_losses(
        self, outputs: Outputs, roi: ROIOutput, labels: list[ImageLabels], normalise: Normaliser = own_count
    ) -> dict[str, Tensor]:
        """Terms of a source batch.

        Args:
            outputs: of the pass that gave the supervised losses.
            roi: of the same pass.
            labels: of the images.
            normalise: counts to what sums are divided by.

        Returns:
            Weighted scalars by name.
        """
        losses = self._strong_weak(outputs.early, outputs.features, SOURCE)
        if self.sees_instances:
            present = classes_present([one.labels for one in labels], self.classes.out_channels)
            losses["align_image_class"] = image_class_loss(self.image_logits(outputs.features), present)
            logits = self._instances(roi)
            term = instance_loss(logits, SOURCE, normalise("align_source_instance", len(logits)))
            losses["align_source_instance"] = self.config.instance_weight * term
        return losses

    def target_losses(self, early: Tensor, features: Tensor) -> dict[str, Tensor]:
        """Terms of whole target images.

        Args:
            early: [B, c, h, w] feature map after ``local_stage`` stages.
            features: [B, C, H/16, W/16] the last one.

        Returns:
            Weighted scalars by name.
        """
        return self._strong_weak(early, features, TARGET)

    def target_instance_losses(
        self, features: Tensor, roi: ROIOutput, counts: list[int], normalise: Normaliser = own_count
    ) -> dict[str, Tensor]:
        """The term of target instances, see :attr:`sees_instances`.

        Args:
            features: [B, C, H/16, W/16] last feature map.
            roi: what the ROI head says of the instances, image by image.
            counts: instances of each image.
            normalise: counts to what sums are divided by.

        Returns:
            A weighted scalar by name.
        """
        device = features.device
        image = torch.repeat_interleave(torch.arange(len(counts), device=device), torch.tensor(counts, device=device))
        weight = consistency_weight(self.image_logits(features), roi.logits, image)
        divisor = normalise("align_target_instance", len(weight))
        term = instance_loss(self._instances(roi), TARGET, divisor, weight)
        return {"align_target_instance": self.config.instance_weight * term}

    def _strong_weak(self, early: Tensor, features: Tensor, domain: int) -> dict[str, Tensor]:
        name, c = ("source", "target")[domain], self.config
        logits = self.globally(reverse_gradient(features)).flatten()
        return {
            f"align_{name}_local": c.weight * local_loss(self.local(reverse_gradient(early)), domain),
            f"align_{name}_global": c.weight * global_loss(logits, domain, c.gamma),
        }

    def _instances(self, roi: ROIOutput) -> Tensor:
        logits: Tensor = self.instances(reverse_gradient(F.relu(roi.hidden)))
        return logits.flatten()
