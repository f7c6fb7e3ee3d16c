"""One mutual-learning step with source against the sum of its parts run bare. A script, not a test.

    python tests/bench/mutual_step.py [--steps 15] [--size 240x416] [--batch 4]

The parts: the teacher's forward pass on the weak views, and the student's forward and backward pass on the source and
the target batch, each the dense work alone (backbone, RPN head, RoIAlign, fully connected layers) on the same number
of proposals, with a sum as loss: no matching, no losses, no EMA, no optimiser. The full step is everything ``ptedge
adapt`` does between two batches. Both are timed alternately; the medians' ratio is the answer.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time

import torch
from torch import Tensor

from ptedge.detector.config import ModelConfig
from ptedge.detector.model import ProbabilisticFasterRCNN
from ptedge.training.batches.batch import AdaptBatch, SourceBatch, TargetBatch
from ptedge.training.config import AdaptConfig
from ptedge.training.device import image_tensor, prepared_torch
from ptedge.training.losses.source import ImageLabels
from ptedge.training.mutual import MutualLearning
from ptedge.training.optim import build_optimizer
from ptedge.training.update import Updater


def make_batches(size: tuple[int, int], batch: int) -> tuple[TargetBatch, SourceBatch]:
    """A target and a source batch of noise with two boxes an image."""
    images = torch.randint(0, 256, (batch, 3, *size), dtype=torch.uint8)
    boxes = torch.tensor([[20.0, 30.0, 90.0, 80.0], [150.0, 100.0, 230.0, 150.0]])
    labels = [ImageLabels(boxes, torch.zeros(2, dtype=torch.int64), torch.zeros(0, 4)) for _ in range(batch)]
    views = torch.tensor([[1.0, 0.0, 0.0, 0.0, 0.0, size[1], size[0]]]).repeat(batch, 1)
    return TargetBatch(images.clone(), images, views), SourceBatch(images.clone(), labels)


def bare(model: ProbabilisticFasterRCNN, images: Tensor, proposals: list[Tensor]) -> Tensor:
    """The dense work of one pass: a scalar that depends on every output."""
    features = model.features(images)
    rpn = model.rpn_head(features)
    roi = model.roi(features, proposals)
    return sum((x.sum() for x in (*rpn, roi.logits, roi.deltas, roi.variances)), torch.zeros(()))


def main() -> None:
    """Measure and print one JSON document."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=15)
    parser.add_argument("--size", default="240x416")
    parser.add_argument("--batch", type=int, default=4)
    options = parser.parse_args()
    height, width = (int(v) for v in options.size.split("x"))
    with prepared_torch(0) as device:
        print(json.dumps(measure(options.steps, (height, width), options.batch, device), indent=2))


def measure(steps: int, size: tuple[int, int], batch: int, device: torch.device) -> dict[str, object]:
    """Times of whole steps and of their parts, in turn."""
    config = AdaptConfig()
    settings = ModelConfig(weights="none", input_size=size, anchor_sizes=(20.0, 45.0, 100.0))
    model = ProbabilisticFasterRCNN(settings, 1).to(memory_format=torch.channels_last)
    learning = MutualLearning(model, config, device)
    updater = Updater(learning, build_optimizer(learning.student, config.optim), config.optim)
    target, source = make_batches(size, batch)

    counts = {"teacher": settings.rpn_test_top_n[1], "source": config.sampling.roi_count, "target": 0}
    seen: list[int] = []
    original = learning.student.roi_head.forward

    def counting(features: Tensor, proposals: list[Tensor]) -> object:
        seen.append(sum(len(p) for p in proposals))
        return original(features, proposals)

    learning.student.roi_head.forward = counting  # type: ignore[method-assign,assignment]

    def full() -> None:
        updater(0, [AdaptBatch(target, source)])
        learning.after_step()

    full()
    counts["target"] = seen[-1] // batch  # how many proposals of a target image learn depends on the teacher
    learning.student.roi_head.forward = original  # type: ignore[method-assign]
    rois = {name: [torch.rand(n, 4) * 60 + torch.tensor([0.0, 0, 60, 60])] * batch for name, n in counts.items()}
    weak, strong, labelled = (image_tensor(x, device) for x in (target.weak, target.strong, source.images))

    def parts() -> None:
        with torch.no_grad():
            bare(learning.teacher, weak, rois["teacher"])
        for images, name in ((labelled, "source"), (strong, "target")):
            bare(learning.student, images, rois[name]).backward()  # type: ignore[no-untyped-call]
        learning.student.zero_grad(set_to_none=True)

    parts()
    times: dict[str, list[float]] = {"step": [], "parts": []}
    for _ in range(steps):
        for name, function in (("step", full), ("parts", parts)):
            start = time.perf_counter()
            function()
            times[name].append(time.perf_counter() - start)
    medians = {name: statistics.median(values) for name, values in times.items()}
    ratios = [a / b for a, b in zip(times["step"], times["parts"], strict=True)]
    return {
        "median_step_s": round(medians["step"], 3),
        "median_parts_s": round(medians["parts"], 3),
        "ratio_of_medians": round(medians["step"] / medians["parts"], 3),
        "ratio_range": [round(min(ratios), 3), round(max(ratios), 3)],
        "proposals_an_image": counts,
        "threads": torch.get_num_threads(),
        "steps": steps,
    }


if __name__ == "__main__":
    main()
