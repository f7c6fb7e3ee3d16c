"""What a light ROI head saves while training: processor time of a step of train and of adapt, two heads in turns.

    python tests/bench/head_step.py FULL.pt LIGHT.pt SOURCE FRAMES [--steps 8] [--proposals 600,150]
        [--train train.toml] [--adapt source_free.toml]

Both checkpoints take the same steps: supervised ones on SOURCE, and source-free ones on FRAMES with a teacher of their
own. Images are prepared beforehand and count in neither. The light one proposes as ``--proposals`` says at inference,
which is what a teacher does. Medians over the steps.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from ptedge.artifacts.checkpoint import load_checkpoint
from ptedge.config import load_config
from ptedge.detector.model import ProbabilisticFasterRCNN
from ptedge.frames.source import index_frames
from ptedge.machine.heap import keeping_freed_memory
from ptedge.training.batches.batch import AdaptBatch
from ptedge.training.batches.steps import SOURCE_STREAM, TARGET_STREAM, StepBatches
from ptedge.training.batches.views import SourceViews, TargetViews, collate_source, collate_target
from ptedge.training.config import AdaptConfig, TrainConfig
from ptedge.training.data import open_trainable
from ptedge.training.device import prepared_torch
from ptedge.training.mutual import MutualLearning
from ptedge.training.optim import build_optimizer
from ptedge.training.pretrain import Pretraining
from ptedge.training.update import Updater


def loaded(path: Path, proposals: tuple[int, int] | None) -> ProbabilisticFasterRCNN:
    """The model of a checkpoint."""
    checkpoint = load_checkpoint(path)
    config = checkpoint.config
    config = config if proposals is None else replace(config, rpn_test_top_n=proposals)
    model = ProbabilisticFasterRCNN(config, len(checkpoint.class_names))
    model.load_state_dict(checkpoint.state)
    return model.to(memory_format=torch.channels_last)  # type: ignore[call-overload,no-any-return]


def measure(options: argparse.Namespace, device: torch.device) -> dict[str, Any]:
    """Seconds of the processor a step, by kind of step and head."""
    train = load_config(TrainConfig, options.train, ["workers=0"])
    adapt = load_config(AdaptConfig, options.adapt, ["workers=0"])
    dataset, frames = open_trainable(options.source), index_frames(options.frames)
    heads = {"full": (options.full, None), "light": (options.light, tuple(map(int, options.proposals.split(","))))}
    size = load_checkpoint(options.full).config.input_size
    labelled = StepBatches(
        len(dataset),
        SourceViews(dataset, size, train.augment if train.view == "strong" else None),
        collate_source,
        batch_size=train.optim.batch,
        steps=options.steps + 1,
        seed=0,
        stream=SOURCE_STREAM,
    )
    target = StepBatches(
        len(frames),
        TargetViews(frames, size, adapt.augment),
        collate_target,
        batch_size=adapt.optim.batch,
        steps=options.steps + 1,
        seed=0,
        stream=TARGET_STREAM,
    )
    steps: dict[str, dict[str, Any]] = {"train": {}, "source-free": {}}
    for head, (path, proposals) in heads.items():
        model = loaded(path, proposals)
        task = Pretraining(options.source, dataset, replace(train, model=model.config), device)
        task.student.load_state_dict(model.state_dict())
        steps["train"][head] = Updater(task, build_optimizer(task.student, train.optim), train.optim)
        learning = MutualLearning(model, adapt, device)
        steps["source-free"][head] = Updater(learning, build_optimizer(learning.student, adapt.optim), adapt.optim)
    taken: dict[tuple[str, str], list[float]] = {}
    for number in range(options.steps + 1):
        given = {"train": labelled[number], "source-free": AdaptBatch(target[number], None)}
        for kind, updaters in steps.items():
            for head, updater in updaters.items():
                start = time.process_time()
                updater(number, [given[kind]])
                updater.task.after_step()
                if number:  # the first step takes memory and chooses kernels
                    taken.setdefault((kind, head), []).append(time.process_time() - start)
    report: dict[str, Any] = {
        "steps": options.steps,
        "threads": torch.get_num_threads(),
        "images_a_step": len(labelled[0]),
    }
    for kind in steps:
        full, light = (taken[kind, head] for head in heads)
        ratios = [b / a for a, b in zip(full, light, strict=True)]
        report[kind] = {
            "full_s": round(statistics.median(full), 3),
            "light_s": round(statistics.median(light), 3),
            "ratio": round(statistics.median(ratios), 3),
            "ratio_range": [round(min(ratios), 3), round(max(ratios), 3)],
        }
    return report


def main() -> None:
    """Measure and print one JSON document."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("full", "light", "source"):
        parser.add_argument(name, type=Path)
    parser.add_argument("frames")
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--proposals", default="600,150", help="of the light one: before and after suppression")
    parser.add_argument("--train", type=Path)
    parser.add_argument("--adapt", type=Path)
    options = parser.parse_args()
    with keeping_freed_memory(), prepared_torch(0) as device:
        print(json.dumps(measure(options, device), indent=2))


if __name__ == "__main__":
    main()
