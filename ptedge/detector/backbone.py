"""Backbones cut at stride 16: library models without their tail, in stages, with frozen BatchNorm statistics."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

Stages = list[nn.Sequential]
BatchNorm = nn.modules.batchnorm._BatchNorm


class Backbone(nn.Module):
    """A library model, cut at stride 16.

    BatchNorm layers stay in eval mode whatever :meth:`train` is told, unless ``frozen_statistics`` is set to False.
    :func:`ptedge.training.teacher.adapt_batch_norm` re-estimates their statistics.

    With ``checkpointing`` on, a pass that will be differentiated keeps only what goes from stage to stage and works out
    the rest once more when the gradient needs it: less memory, more time, the same gradient.

    Args:
        body: the library model without its tail; its own names stay, so its weight files load.
        stages: the parts of ``body`` in order of use.
        channels: of the output.
        frozen: the first n stages get no gradient.
    """

    def __init__(self, body: nn.Module, stages: Stages, channels: int, frozen: int) -> None:
        super().__init__()
        self.body = body
        self.channels = channels
        self.frozen_statistics = True
        self.checkpointing = False
        self.stages = stages  # a plain list: the parameters belong to body
        for stage in stages[:frozen]:
            stage.requires_grad_(False)

    def forward(self, images: Tensor) -> Tensor:
        """Feature map [B, channels, H/16, W/16] of normalised images [B, 3, H, W]."""
        return self.early_and_last(images, len(self.stages))[1]

    def early_and_last(self, images: Tensor, early_stage: int) -> tuple[Tensor, Tensor]:
        """Two feature maps of one pass.

        Only these two outlive the pass: the maps of frozen stages are large, and no gradient needs them.

        Args:
            images: [B, 3, H, W] normalised.
            early_stage: how many stages lie before the early map, from 1 on.

        Returns:
            The map after ``early_stage`` stages [B, c, h, w], and the last one [B, channels, H/16, W/16].
        """
        early = x = images
        for number, stage in enumerate(self.stages, 1):
            if self.checkpointing and torch.is_grad_enabled() and any(p.requires_grad for p in stage.parameters()):
                # no layer here draws random numbers, so there is no state of a generator to keep
                x = checkpoint(stage, x, use_reentrant=False, preserve_rng_state=False, context_fn=self._contexts)
            else:
                x = stage(x)
            if number == early_stage:
                early = x
        return early, x

    @torch.no_grad()
    def channels_after(self, stage: int) -> int:
        """Channels after the first ``stage`` stages; a picture of 32 pixels finds out and touches no statistics."""
        training = self.training
        x = torch.zeros(1, 3, 32, 32, device=next(self.parameters()).device)
        self.eval()
        for part in self.stages[:stage]:
            x = part(x)
        self.train(training)
        return int(x.shape[1])

    def _contexts(self) -> tuple[contextlib.AbstractContextManager[None], contextlib.AbstractContextManager[None]]:
        """Around a stage's pass, and around its repetition, which must not count as another batch."""
        return contextlib.nullcontext(), untracked_statistics(self)

    def train(self, mode: bool = True) -> Backbone:
        """As ``nn.Module.train``, but BatchNorm stays in eval mode while its statistics are frozen."""
        super().train(mode)
        if self.frozen_statistics:
            for layer in batch_norms(self):
                layer.eval()
        return self


@contextlib.contextmanager
def untracked_statistics(module: nn.Module, *, count_batches: bool = False) -> Iterator[None]:
    """Inside, BatchNorm layers normalise as before, but their running statistics stay as they are.

    Args:
        module: whose layers.
        count_batches: let the layers' counters of batches go on: what is learnt from counts, whatever its statistics.
    """
    layers = batch_norms(module)
    before = [(layer.momentum, layer.num_batches_tracked) for layer in layers]
    for layer in layers:
        # not track_running_stats = False: the pass would keep fewer tensors, and a repetition must keep the same
        layer.momentum, layer.num_batches_tracked = 0.0, layer.num_batches_tracked if count_batches else None
    try:
        yield
    finally:
        for layer, (momentum, counter) in zip(layers, before, strict=True):
            layer.momentum, layer.num_batches_tracked = momentum, counter


@contextlib.contextmanager
def following_statistics(module: nn.Module, keep: float) -> Iterator[None]:
    """Inside, BatchNorm layers in eval mode normalise by their running statistics, which follow each batch slowly.

    Args:
        module: whose layers; in eval mode.
        keep: share of the statistics kept at each batch, in [0, 1].
    """

    def follow(layer: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        assert isinstance(layer, BatchNorm) and layer.running_mean is not None and layer.running_var is not None
        variance, mean = torch.var_mean(inputs[0].detach(), dim=(0, 2, 3))
        layer.running_mean.lerp_(mean, 1.0 - keep)
        layer.running_var.lerp_(variance, 1.0 - keep)

    handles = [layer.register_forward_pre_hook(follow) for layer in batch_norms(module)]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _vgg16() -> tuple[nn.Module, Stages, int]:
    from torchvision.models import vgg16

    body = nn.Module()
    features = vgg16().features[:30]  # up to conv5_3 and its ReLU, without pool5
    body.features = features
    cuts = [0, 5, 10, 17, 24, 30]  # after each pool
    return body, [features[a:b] for a, b in itertools.pairwise(cuts)], 512


def _resnet50() -> tuple[nn.Module, Stages, int]:
    from torchvision.models import resnet50

    body = resnet50()
    del body.layer4, body.fc
    stem = nn.Sequential(body.conv1, body.bn1, body.relu, body.maxpool)
    return body, [stem, nn.Sequential(body.layer1), nn.Sequential(body.layer2), nn.Sequential(body.layer3)], 1024


def _mobilenet_v3_large() -> tuple[nn.Module, Stages, int]:
    from torchvision.models import mobilenet_v3_large

    body = nn.Module()
    features = mobilenet_v3_large().features[:13]
    body.features = features
    cuts = [0, 2, 4, 7, 13]  # before each stride
    return body, [features[a:b] for a, b in itertools.pairwise(cuts)], 112


def _efficientnet_lite0() -> tuple[nn.Module, Stages, int]:
    import timm

    body: Any = timm.create_model("tf_efficientnet_lite0")
    del body.conv_head, body.bn2, body.global_pool, body.classifier
    body.blocks = body.blocks[:5]
    stem = nn.Sequential(body.conv_stem, body.bn1)
    return body, [nn.Sequential(stem, body.blocks[0]), *(nn.Sequential(block) for block in body.blocks[1:])], 112


BUILDERS: dict[str, Callable[[], tuple[nn.Module, Stages, int]]] = {
    "vgg16": _vgg16,
    "resnet50": _resnet50,
    "mobilenet_v3_large": _mobilenet_v3_large,
    "efficientnet_lite0": _efficientnet_lite0,
}


def build_backbone(name: str, frozen_stages: int) -> Backbone:
    """A backbone with random weights; :func:`ptedge.training.weights.imagenet.load_imagenet` fills it.

    Args:
        name: a key of ``BUILDERS``.
        frozen_stages: the first n stages get no gradient.
    """
    body, stages, channels = BUILDERS[name]()
    return Backbone(body, stages, channels, frozen_stages)


def batch_norms(module: nn.Module) -> Sequence[BatchNorm]:
    """The BatchNorm layers of a module, in order."""
    return [m for m in module.modules() if isinstance(m, BatchNorm)]
