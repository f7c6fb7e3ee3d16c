"""What a full ROI head teaches a light one on the same proposals, while both train."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from ptedge.config import require
from ptedge.detector.config import ModelConfig
from ptedge.detector.roi_heads import ROIOutput
from ptedge.errors import ConfigError

from .equations import Normaliser, gaussian_cross_entropy, mean_over, own_count, smooth_l1, soft_cross_entropy

FULL = "full_"  # before the names of the full head's own losses


@dataclass(frozen=True)
class DistillConfig:
    """A wide ROI head that trains beside the model's own and teaches it; ``model.pt`` is without it.

    Attributes:
        weight: of what the wide head teaches, against the labels' 1; 0: no wide head, the model's own learns from
            labels alone. For a light head (``model.roi_channels``, ``model.roi_hidden``).
        channels: of the wide head, as ``model.roi_channels``.
        hidden: of the wide head, as ``model.roi_hidden``.
    """

    weight: float = 0.0
    channels: int = 0
    hidden: int = 1024

    def __post_init__(self) -> None:
        require("weight", self.weight, 0)
        require("channels", self.channels, 0, 4096)
        require("hidden", self.hidden, 8, 4096)


def check_distill(distill: DistillConfig, model: ModelConfig) -> None:
    """Refuse a wide head that is no wider than the one it is to teach.

    Raises:
        ConfigError: with both widths.
    """
    if not distill.weight:
        return
    widest = 2**31  # no reduction: all channels of the backbone
    if (distill.hidden, distill.channels or widest) <= (model.roi_hidden, model.roi_channels or widest):
        raise ConfigError(
            f"distill.weight={distill.weight:g} lets a wide ROI head teach the model's, but distill.hidden="
            f"{distill.hidden} is no wider than model.roi_hidden={model.roi_hidden}. Make the model's head light, for "
            f"example model.roi_channels=64 model.roi_hidden=256, or set distill.weight=0"
        )


def distill_losses(
    light: ROIOutput, full: ROIOutput, probabilistic: bool, normalise: Normaliser = own_count
) -> dict[str, Tensor]:
    """What the light head has yet to learn of the full one, without gradient to that.

    Classes by the cross-entropy to the full head's distribution, boxes by the cross-entropy of the Gaussians, as the
    student learns from the teacher on target frames. A class's box counts by the probability that the full head gives
    the class: what it says of the box of an object that is none is not taught.

    Args:
        light: of R proposals.
        full: of the same proposals.
        probabilistic: the heads have variances; smooth L1 without.
        normalise: the count of proposals to what sums over them are divided by.

    Returns:
        ``distill_cls``, ``distill_box``: scalars, unweighted.

    Reference:
        Chen et al. 2017, "Learning Efficient Object Detection Models with Knowledge Distillation" (both parts of the
        head are taught; there boxes by a bound on the error); Zhang et al. 2019, "Be Your Own Teacher" (branches of
        one network, in one training). method.md section 1.
    """
    p = full.logits.detach().softmax(dim=-1)
    mean, variance = full.deltas.detach(), full.variances.detach()
    if probabilistic:
        term = gaussian_cross_entropy(mean, variance, light.deltas, light.variances)  # [R, K, 4]
    else:
        term = smooth_l1(light.deltas, mean)
    divisor = normalise("distill", len(p))
    return {
        "distill_cls": mean_over(soft_cross_entropy(p, light.logits), divisor, light.logits),
        "distill_box": mean_over(p[:, :-1].unsqueeze(-1) * term, divisor, light.deltas),
    }
