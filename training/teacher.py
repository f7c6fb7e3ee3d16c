"""The mean teacher: a copy of the student that follows it slowly, and batch statistics of a new domain."""

from __future__ import annotations

import copy
from collections.abc import Iterable

import torch
from torch import Tensor

from ptedge.detector.backbone import batch_norms
from ptedge.detector.model import ProbabilisticFasterRCNN


def make_teacher(student: ProbabilisticFasterRCNN) -> ProbabilisticFasterRCNN:
    """A copy in eval mode, without gradients."""
    teacher = copy.deepcopy(student).eval()
    return teacher.requires_grad_(False)


@torch.no_grad()
def update_teacher(
    teacher: ProbabilisticFasterRCNN, student: ProbabilisticFasterRCNN, keep: float, *, own_statistics: bool = False
) -> None:
    """Exponential moving average over weights, anchors and buffers: teacher <- keep teacher + (1 - keep) student.

    Args:
        teacher: changed in place.
        student: read.
        keep: in [0, 1].
        own_statistics: leave the teacher's BatchNorm statistics as they are.

    Reference:
        method.md section 7. Integer buffers (BatchNorm's batch counter) are copied.
    """
    old_state, new_state = teacher.state_dict(), student.state_dict()
    names = [name for name in old_state if not (own_statistics and ".running_" in name)]
    pairs = [(old_state[name], new_state[name]) for name in names]
    averaged = [(old, new) for old, new in pairs if old.is_floating_point()]
    torch._foreach_lerp_([old for old, _ in averaged], [new for _, new in averaged], 1.0 - keep)
    for old, new in pairs:
        if not old.is_floating_point():
            old.copy_(new)


@torch.no_grad()
def adapt_batch_norm(model: ProbabilisticFasterRCNN, batches: Iterable[Tensor]) -> int:
    """Replace the BatchNorm statistics by those of the given images; weights stay (AdaBN).

    Each layer is normalised by its batch's own statistics during the pass, so later layers see what they will see
    afterwards; the running statistics become the plain average over all batches.

    Args:
        model: changed in place; returned to the mode it was in.
        batches: [B, 3, H, W] RGB 0..255 tensors of several images each.

    Returns:
        How many images were seen; 0 leaves the model as it was.

    Reference:
        Li et al., "Revisiting Batch Normalization for Practical Domain Adaptation"; method.md section 7.
    """
    layers = batch_norms(model.backbone)
    if not layers:
        return 0
    before = [(layer.momentum, layer.training) for layer in layers]
    count = 0
    for images in batches:
        if count == 0:
            for layer in layers:
                layer.reset_running_stats()
                layer.momentum = None  # cumulative average
                layer.train()
        model.features(images)
        count += len(images)
    for layer, (momentum, training) in zip(layers, before, strict=True):
        layer.momentum = momentum
        layer.train(training)
    return count
