"""What ``train`` and ``adapt`` choose where the user has not: steps, warm-up, EMA, rate and anchors.

By what data there is and what computes. All of it ends up in config.toml, so that a run can be repeated, and in two
lines at the start. What is not measured is near to what is: docs/training.md says what.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from ptedge.data.dataset import Dataset
from ptedge.data.report import suggest_anchor_sizes

from ..config import AdaptConfig, OptimConfig, RunConfig, TrainConfig
from ..optim import step_images
from .presets import KINDS

C = TypeVar("C", TrainConfig, AdaptConfig)
MEASURED_IMAGES = 2000  # whose boxes the anchors are fitted to, evenly spread
FASTEST_EMA, SLOWEST_EMA = 0.9, 0.9996  # the paper's, for 26,000 steps
HINT = "        --set KEY=VALUE changes a setting, --preset paper takes the paper's recipe"


@dataclass(frozen=True)
class Schedule:
    """How many steps, by the images there are.

    Attributes:
        passes: times that every image is seen.
        fewest: steps at least.
        most: steps at most on a CPU, and on a GPU.
        warm_part: the learning rate rises over one of so many parts of the steps.
    """

    passes: float
    fewest: int
    most: tuple[int, int]
    warm_part: int

    def steps(self, images: int, a_step: int, *, gpu: bool) -> int:
        """Optimiser steps for so many images, of which a step sees ``a_step``."""
        wanted = math.ceil(self.passes * images / a_step)
        return max(self.fewest, min(wanted, self.most[gpu]))

    def said(self) -> str:
        """The rule in words, for the documents."""
        passes = {1.0: "one pass", 2.0: "two passes"}[self.passes]
        cpu, gpu = self.most
        most = f"{cpu:,}" if cpu == gpu else f"{cpu:,} on a CPU and {gpu:,} on a GPU"
        return f"{passes} over the images, {self.fewest} at least, {most} at most"


SCHEDULES = {
    "train": Schedule(2.0, 400, (2000, 20000), 8),
    "adapt": Schedule(1.0, 100, (400, 2000), 10),
    # 1,000 steps without source made sigma too small
    "source_free": Schedule(1.0, 100, (400, 400), 10),
}


def ema_for(steps: int) -> float:
    """Share of the teacher kept each step: 1 - 2 / steps, so that its half-life is about a third of the run.

    Args:
        steps: of the run; at least 0.
    """
    return min(SLOWEST_EMA, max(FASTEST_EMA, round(1 - 2 / max(steps, 1), 5)))


def fit_anchors(dataset: Dataset, size: tuple[int, int]) -> tuple[float, ...] | None:
    """Anchor sizes for the boxes of a data set at the input size, as ``ptedge data stats --size`` suggests them.

    Args:
        dataset: labelled data; of large ones a part, evenly spread.
        size: (height, width) of the network's input in pixels.

    Returns:
        Three square roots of areas in input pixels, by k-means; ``None`` where no box has a known place.
    """
    every = max(1, math.ceil(len(dataset) / MEASURED_IMAGES))
    found = suggest_anchor_sizes(replace(dataset, samples=dataset.samples[::every]), size)
    if found is None and every > 1:
        found = suggest_anchor_sizes(dataset, size)
    return None if found is None else tuple(max(1.0, value) for value in found)


@dataclass(frozen=True)
class Situation:
    """What a recipe goes by.

    Attributes:
        kind: ``train``, ``adapt`` or ``source_free``.
        images: labelled images (train) or target frames.
        gpu: a GPU computes.
        processes: that train together.
    """

    kind: str
    images: int
    gpu: bool
    processes: int = 1

    def describe(self) -> str:
        """For people."""
        what = "images" if self.kind == "train" else "frames"
        return f"{self.images} {what}, {'GPU' if self.gpu else 'CPU'}"


@dataclass(frozen=True)
class Settled(Generic[C]):
    """Settings with nothing left open.

    Attributes:
        config: complete.
        chosen: those of them that the recipe chose, by key.
        lines: what to tell the user, one or two.
    """

    config: C
    chosen: Mapping[str, Any]
    lines: tuple[str, ...]


def settle(
    config: C, given: Collection[str] | None, situation: Situation, dataset: Dataset | None = None
) -> Settled[C]:
    """Choose what the user has not set.

    Args:
        config: what was set, and defaults.
        given: the keys that were set, ``table.key``; they stay as they are. ``None``: all were.
        situation: data and machine.
        dataset: to whose boxes the anchors of ``train`` are fitted.
    """
    if given is None:
        return Settled(config, {}, ())
    optim = _optim(config.optim, given, situation)
    names = ["steps", "warmup", "lr", "weight_decay"]
    values: dict[str, Any] = {f"optim.{name}": getattr(optim, name) for name in names}
    if isinstance(config, AdaptConfig):
        teacher = config.teacher
        if "teacher.ema" not in given:
            teacher = replace(teacher, ema=ema_for(optim.steps))
        config = replace(config, optim=optim, teacher=teacher)
        values["teacher.ema"] = teacher.ema
    else:
        model = config.model
        if dataset is not None and "model.anchor_sizes" not in given:
            fitted = fit_anchors(dataset, model.input_size)
            model = model if fitted is None else replace(model, anchor_sizes=fitted)
        config = replace(config, optim=optim, model=model)
        values["model.anchor_sizes"] = list(model.anchor_sizes)
    chosen = {key: value for key, value in values.items() if key not in given}
    return Settled(config, chosen, tuple(_lines(config, chosen, situation)))


def _lines(config: RunConfig, chosen: Mapping[str, Any], situation: Situation) -> Iterator[str]:
    optim = config.optim
    name = {"adamw": "AdamW", "sgd": "SGD"}[optim.optimizer]
    parts = [f"{name} {optim.lr:g}", f"{optim.steps} steps ({situation.describe()})"]
    parts.append("cosine" if optim.schedule == "cosine" else "constant rate")
    if isinstance(config, AdaptConfig):
        parts.append(f"EMA {config.teacher.ema:g}")
    else:
        sizes = ", ".join(f"{size:g}" for size in config.model.anchor_sizes)
        parts += [f"{config.view} view", f"anchors {sizes} px"]
        parts[-1] += " (fitted)" if "model.anchor_sizes" in chosen else ""
    yield f"recipe: {', '.join(parts)}"
    if chosen:
        yield HINT


def _optim(optim: OptimConfig, given: Collection[str], situation: Situation) -> OptimConfig:
    schedule = SCHEDULES[situation.kind]
    steps, changes = optim.steps, dict[str, Any]()
    if "optim.steps" not in given:
        steps = changes["steps"] = schedule.steps(
            situation.images, step_images(optim, situation.processes), gpu=situation.gpu
        )
    if "optim.warmup" not in given:
        changes["warmup"] = steps // schedule.warm_part
    if optim.optimizer == "sgd":  # the class's own rate and decay are AdamW's
        usual = KINDS[situation.kind]["optim"]
        changes.update({name: usual[name] for name in ("lr", "weight_decay") if f"optim.{name}" not in given})
    return replace(optim, **changes)
