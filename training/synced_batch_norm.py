"""BatchNorm over the images of all processes, on any device: PyTorch's own SyncBatchNorm works on accelerators only.

Mean and variance of a layer are those of the whole step, as one process with all its images would find them; so are the
running averages, and the gradient, which flows through the statistics of all.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, distributed, nn

from ptedge.detector.backbone import batch_norms

from .distributed import size


class _Normalise(torch.autograd.Function):
    """y = (x - mean) / sqrt(var + eps) * weight + bias, with mean and variance over all processes."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        full = x.float()
        count = x.numel() / x.shape[1]
        var, mean = torch.var_mean(full, (0, 2, 3), correction=0)  # [C]
        # sums over processes, in double: a difference of squares follows
        mean, var = mean.double(), var.double()
        sums = torch.cat([count * mean, count * (var + mean**2), mean.new_tensor([count])])
        distributed.all_reduce(sums)
        total = sums[-1]
        mean, square = sums[:-1].chunk(2)
        mean = mean / total
        var = (square / total - mean**2).clamp(min=0)
        scale = torch.rsqrt(var + eps).float()
        mean = mean.float()
        shape = (1, -1, 1, 1)
        y = (full - mean.reshape(shape)) * (scale * weight).reshape(shape) + bias.reshape(shape)
        ctx.save_for_backward(x, weight, mean, scale, total)
        ctx.mark_non_differentiable(mean, var, total)
        return y.to(x.dtype), mean, var, total

    @staticmethod
    def backward(ctx: Any, dy: Tensor, *unused: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        x, weight, mean, scale, total = ctx.saved_tensors
        shape = (1, -1, 1, 1)
        full = dy.float()
        normal = (x.float() - mean.reshape(shape)) * scale.reshape(shape)
        grad_bias, grad_weight = full.sum((0, 2, 3)), (full * normal).sum((0, 2, 3))  # of this process
        sums = torch.cat([grad_bias, grad_weight])
        distributed.all_reduce(sums)
        mean_dy, mean_dy_normal = (sums / total.float()).chunk(2)
        dx = full - mean_dy.reshape(shape) - normal * mean_dy_normal.reshape(shape)
        dx = dx * (scale * weight).reshape(shape)
        return dx.to(dy.dtype), grad_weight, grad_bias, None


class _Synced:
    """Mixed into a BatchNorm layer's class: in training its statistics are those of all processes."""

    def forward(self, x: Tensor) -> Tensor:
        layer: Any = self
        if not layer.training or size() == 1:
            return super().forward(x)  # type: ignore[misc,no-any-return]
        y, mean, var, total = _Normalise.apply(x, layer.weight, layer.bias, layer.eps)
        if layer.track_running_stats:
            with torch.no_grad():
                if layer.num_batches_tracked is not None:
                    layer.num_batches_tracked.add_(1)
                share = layer.momentum if layer.momentum is not None else 1.0 / float(layer.num_batches_tracked)
                layer.running_mean.lerp_(mean, share)
                layer.running_var.lerp_((var * total / (total - 1)).float(), share)
        if hasattr(layer, "drop") and hasattr(layer, "act"):  # timm's layers end with their activation
            y = layer.act(layer.drop(y))
        return y  # type: ignore[no-any-return]


def synchronise_batch_norms(module: nn.Module) -> None:
    """Let the BatchNorm layers of a module use the images of all processes when they work by batch.

    Layers keep their weights, buffers and names, so checkpoints are the same with any number of processes.

    Args:
        module: changed in place.
    """
    for layer in batch_norms(module):
        kind = type(layer)
        if not issubclass(kind, _Synced):
            layer.__class__ = type(f"Synced{kind.__name__}", (_Synced, kind), {})
