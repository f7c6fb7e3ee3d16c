"""Steps, memory and hours of a run before it starts: reckoned from its settings and the network's layers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from ptedge.detector.config import ModelConfig

from ..config import AdaptConfig, TrainConfig
from .cost import ImageCost, image_cost
from .gpus import Gpu
from .jobs import Job
from .load import settings_of
from .plan import Row, Study

GIB = 2**30
CONTEXT = 1.0 * GIB  # CUDA's own, and what cuDNN and cuBLAS work in
SPARE = 1.5  # on activations: the allocator's gaps, convolutions' work space, small tensors that are not counted
SHARE_OF_PEAK = (0.2, 0.5)  # of a GPU's peak that training of convolutions reaches, lowest and highest taken
CLASSES = 8  # where the data do not say; it hardly matters

HOW = (
    "Memory: weights, gradients, momenta and copies of the model; what autograd keeps of every layer, counted on the "
    "real network without computing it; the widest layer once more; half as much again for gaps and work space; 1 GiB "
    "for CUDA. "
    f"Hours: floating-point operations of all passes over {SHARE_OF_PEAK[0]:.0%} to {SHARE_OF_PEAK[1]:.0%} of the "
    "GPU's dense peak by its data sheet; scoring, monitors and reading images come on top, and too few cores make it "
    "slower. Neither was measured on a GPU: look at peak_memory_mib and speed in summary.json of a short run"
)


@dataclass(frozen=True)
class Estimate:
    """What a run will take.

    Attributes:
        steps: optimiser steps.
        images: labelled and unlabelled images a step; 0 for those it does without.
        memory: GiB of the GPU at its fullest.
        operations: floating-point operations of all steps.
        precision: of products, ``fp32``, ``bf16`` or ``fp16``.
    """

    steps: int
    images: tuple[int, int]
    memory: float
    operations: float
    precision: str = "fp32"

    def hours(self, gpu: Gpu) -> tuple[float, float] | None:
        """Fewest and most GPU hours; ``None`` where the GPU's peak is not known."""
        peak = (gpu.single if self.precision == "fp32" else gpu.half) * 1e12
        if not peak:
            return None
        low, high = SHARE_OF_PEAK
        return self.operations / (peak * high) / 3600, self.operations / (peak * low) / 3600


def estimate_of(study: Study, job: Job) -> Estimate:
    """What a job will take on one GPU.

    Args:
        study: checked.
        job: of it.
    """
    settings = settings_of(study, job.row)
    model = _model_of(study, job.row)
    half = settings.precision != "fp32"
    cost = _cost(model, _classes(study), settings.sampling.roi_count, half)
    part, parts = settings.optim.batch, settings.optim.accumulate
    labelled = part * parts if job.row.kind != "source_free" else 0
    unlabelled = part * parts if job.row.adapts else 0
    domains = (labelled > 0) + (unlabelled > 0)
    operations = part * parts * _operations(cost, settings, domains, teacher=unlabelled > 0)
    return Estimate(
        steps=settings.optim.steps,
        images=(labelled, unlabelled),
        memory=_memory(cost, settings, part, domains, copies=2 if unlabelled else 0) / GIB,
        operations=operations * settings.optim.steps,
        precision=settings.precision,
    )


def _operations(cost: ImageCost, settings: TrainConfig | AdaptConfig, domains: int, *, teacher: bool) -> float:
    """Of a step, an image of each domain: forward, twice that backward where there is a gradient, and what repeats."""
    forward = cost.frozen + cost.trained + cost.heads
    student = forward + 2 * (cost.trained + cost.heads)
    if settings.checkpointing:
        student += cost.trained
    if settings.optim.accumulate > 1:
        student += forward  # the pass that counts
    return domains * student + (forward if teacher else 0)


def _memory(cost: ImageCost, settings: TrainConfig | AdaptConfig, part: int, domains: int, copies: int) -> float:
    """Bytes: the model and what belongs to it, activations of a part of every domain, one layer's input and output."""
    moments = 1 if settings.optim.optimizer == "sgd" else 2
    weights = 4 * (cost.parameters * (1 + copies) + cost.trained_parameters * (1 + moments))
    weights += 2 * cost.parameters if settings.precision != "fp32" else 0  # autocast's copies
    backbone = cost.between if settings.checkpointing else cost.kept
    # with checkpointing one stage is there in full when it is worked out again; the whole backbone is the limit
    again = cost.kept if settings.checkpointing else 0.0
    held = domains * part * (backbone + cost.kept_by_heads) + part * (again + cost.widest)
    return CONTEXT + weights + SPARE * held


def _model_of(study: Study, row: Row) -> ModelConfig:
    rows = {one.name: one for one in study.row}
    while row.adapts:
        row = rows[row.start or study.start]
    settings = settings_of(study, row)
    assert isinstance(settings, TrainConfig)
    return settings.model


def _classes(study: Study) -> int:
    described = next((one.values.get("classes") for one in study.described if one.part == "source"), None)
    return len(described) if described else CLASSES


_cost: Callable[[ModelConfig, int, int, bool], ImageCost] = lru_cache(maxsize=16)(
    lambda model, classes, proposals, half: image_cost(model, classes, proposals, half=half)
)
