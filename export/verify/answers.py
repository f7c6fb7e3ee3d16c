"""Answers of the different implementations for the same images, in one form; and what a graph's answers promise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ptedge.artifacts.bundle import Bundle
from ptedge.backends.checkpoint_predictor import to_detections
from ptedge.backends.runner import Runner
from ptedge.detections import Detections
from ptedge.detector.model import ProbabilisticFasterRCNN
from ptedge.graph_contract import IMAGES, ROW_OUTPUTS, converged_images, detections_of, unused_rows

from ..graph import StaticGraph, StaticOutput
from ..made_images import Images

Outputs = dict[str, NDArray[Any]]


def detect_all(model: ProbabilisticFasterRCNN, images: Images) -> list[Detections]:
    """Eager detections in input pixels, image by image: [N, 3, H, W] uint8 -> N results."""
    return [to_detections(model.detect(torch.from_numpy(image[None]))[0]) for image in images]


def run_graph(runner: Runner, images: Images) -> Outputs:
    """Outputs of an exported graph for any number of images; each group's last image fills the batch."""
    batch = int(runner.inputs[IMAGES][0][0])
    return _in_groups(images, batch, lambda group: runner.infer({IMAGES: group}))


def run_static(static: StaticGraph, images: Images) -> Outputs:
    """Outputs of the static graph in torch, image by image."""

    def run(group: Images) -> Outputs:
        with torch.no_grad():
            found: StaticOutput = static(torch.from_numpy(group))
        return {name: value.numpy() for name, value in found._asdict().items()}

    return _in_groups(images, 1, run)


def _in_groups(images: Images, batch: int, run: Callable[[Images], Outputs]) -> Outputs:
    parts: list[Outputs] = []
    for start in range(0, len(images), batch):
        group = images[start : start + batch]
        filler = np.repeat(group[-1:], batch - len(group), axis=0)
        outputs = run(np.ascontiguousarray(np.concatenate([group, filler])))
        parts.append({name: value[: len(group)] for name, value in outputs.items()})
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def to_rows(outputs: Outputs) -> list[Detections]:
    """Graph outputs as detections in input pixels, one entry an image."""
    return [detections_of(outputs, i) for i in range(len(outputs["num_detections"]))]


def broken_promises(outputs: Outputs, bundle: Bundle, *, made: bool = False) -> list[str]:
    """What the graph's outputs promise whatever the image shows, and do not keep.

    Args:
        outputs: for N images.
        bundle: its manifest gives the input size, the classes and the threshold.
        made: images that no camera takes. On an even one boxes suppress each other in chains of any length, and NMS may
            stop before its end: the graph then says so, as it should.
    """
    manifest = bundle.manifest
    height, width = manifest.input_size
    problems = []
    if not all(np.isfinite(value).all() for value in outputs.values()):
        problems.append("numbers that are not finite")
    early = int((~converged_images(outputs)).sum())
    if early and not made:
        problems.append(f"NMS not at its fixpoint in {early} images")
    unused = unused_rows(outputs)  # [N, D]
    for name in ROW_OUTPUTS:
        if outputs[name][unused].any():
            problems.append(f"{name} beyond num_detections are not zero")
    for found in to_rows(outputs):
        x1, y1, x2, y2 = found.boxes.T
        if not ((x1 >= 0) & (y1 >= 0) & (x2 <= width) & (y2 <= height) & (x1 <= x2) & (y1 <= y2)).all():
            problems.append("a box is inverted or outside the input")
        if (np.diff(found.scores) > 0).any() or not (
            (found.scores > manifest.score_threshold) & (found.scores <= 1)
        ).all():
            problems.append("scores are not in descending order within (threshold, 1]")
        if not ((found.labels >= 0) & (found.labels < len(manifest.class_names))).all():
            problems.append("a label has no class")
        if (found.sigma < 0).any() or (found.entropy < -1e-5).any():
            problems.append("sigma or entropy is negative")
    return problems
