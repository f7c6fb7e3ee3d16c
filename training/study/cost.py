"""What a step costs: products and kept bytes of the real network, counted on shapes alone; nothing is computed."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks
from torch.multiprocessing.reductions import StorageWeakRef
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from ptedge.detector.config import ModelConfig
from ptedge.detector.model import ProbabilisticFasterRCNN


@dataclass(frozen=True)
class ImageCost:
    """One image through the detector.

    Attributes:
        frozen: floating-point operations of the frozen stages, forward.
        trained: of the other stages, forward; what checkpointing works out twice.
        heads: of RPN and ROI head, forward.
        kept: bytes that the trained stages keep for the gradient, their output included.
        kept_by_heads: the same of the heads.
        between: bytes that go from stage to stage, which is all that checkpointing keeps of the backbone.
        widest: bytes of the largest input and output of one layer together: what is there for a moment.
        parameters: of the model.
        trained_parameters: those with a gradient.
    """

    frozen: float
    trained: float
    heads: float
    kept: float
    kept_by_heads: float
    between: float
    widest: float
    parameters: int
    trained_parameters: int


def image_cost(config: ModelConfig, num_classes: int, proposals: int, *, half: bool) -> ImageCost:
    """Count one image on the ``meta`` device, where tensors have shapes and no values.

    Args:
        config: of the detector.
        num_classes: K.
        proposals: an image that the ROI head looks at.
        half: activations are bf16 or fp16, and whole numbers stay as they are.
    """
    with torch.device("meta"):
        model = ProbabilisticFasterRCNN(config, num_classes).train()
        x = torch.empty(1, 3, *config.input_size)
        pooled = torch.empty(proposals, model.roi_head.fc1.in_features, requires_grad=True)
    backbone = model.backbone
    backbone.frozen_statistics = False
    size = 2 if half else 4
    widest = _Widest(model, size)
    frozen = trained = between = 0.0
    kept = _Kept()
    with widest:
        for stage in backbone.stages:
            learns = any(p.requires_grad for p in stage.parameters())
            with FlopCounterMode(display=False) as counter, kept if learns else torch.no_grad():
                x = stage(x)
            trained += counter.get_total_flops() if learns else 0
            frozen += 0 if learns else counter.get_total_flops()
            between += _bytes(x, size) if learns else 0
    heads = _Kept()
    with FlopCounterMode(display=False) as counter, heads:
        _heads(model, x, pooled)
    weights = {_memory(p) for p in model.parameters()}
    return ImageCost(
        frozen=frozen,
        trained=trained,
        heads=float(counter.get_total_flops()),
        kept=kept.bytes(weights, size),
        kept_by_heads=heads.bytes(weights | set(kept.tensors), size),
        between=between,
        widest=widest.bytes,
        parameters=sum(p.numel() for p in model.parameters()),
        trained_parameters=sum(p.numel() for p in model.parameters() if p.requires_grad),
    )


def _heads(model: ProbabilisticFasterRCNN, features: Tensor, pooled: Tensor) -> None:
    """The layers of both heads; what they do beside products does not run without values."""
    rpn, roi = model.rpn_head, model.roi_head
    hidden = F.relu(rpn.conv(features))
    roi.looked_at(features)
    active = F.relu(roi.fc2(F.relu(roi.fc1(pooled))))
    for layer in (rpn.objectness, rpn.deltas, rpn.variances):
        if layer is not None:
            layer(hidden)
    for predictor in (roi.logits, roi.deltas, roi.variances):
        if predictor is not None:
            predictor(active)


class _Kept:
    """Inside, notes every tensor that autograd keeps, each memory once."""

    def __init__(self) -> None:
        self.tensors: dict[StorageWeakRef, Tensor] = {}
        self.hooks = saved_tensors_hooks(self._note, lambda x: x)

    def __enter__(self) -> None:
        self.hooks.__enter__()

    def __exit__(self, *error: object) -> None:
        self.hooks.__exit__(*error)

    def _note(self, tensor: Tensor) -> Tensor:
        self.tensors.setdefault(_memory(tensor), tensor)
        return tensor

    def bytes(self, without: set[StorageWeakRef], size: int) -> float:
        return sum(_bytes(tensor, size) for key, tensor in self.tensors.items() if key not in without)


class _Widest:
    """Inside, notes the largest input and output of one layer."""

    def __init__(self, model: torch.nn.Module, size: int) -> None:
        self.bytes = 0.0
        self.size = size
        self.layers = [layer for layer in model.modules() if not list(layer.children())]
        self.handles: list[torch.utils.hooks.RemovableHandle] = []

    def __enter__(self) -> None:
        self.handles = [layer.register_forward_hook(self._note) for layer in self.layers]

    def __exit__(self, *error: object) -> None:
        for handle in self.handles:
            handle.remove()

    def _note(self, layer: torch.nn.Module, given: tuple[Tensor, ...], output: Tensor) -> None:
        self.bytes = max(self.bytes, _bytes(given[0], self.size) + _bytes(output, self.size))


def _bytes(tensor: Tensor, size: int) -> float:
    return float(tensor.numel() * (size if tensor.is_floating_point() else tensor.element_size()))


def _memory(tensor: Tensor) -> StorageWeakRef:
    """What two tensors that share their memory have in common."""
    return StorageWeakRef(tensor.untyped_storage())  # type: ignore[no-untyped-call]
