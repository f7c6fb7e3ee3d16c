"""Answers of the different implementations for the same images, in one form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ptedge.backends.checkpoint_predictor import to_detections
from ptedge.backends.runner import Runner
from ptedge.detections import Detections
from ptedge.detector.model import ProbabilisticFasterRCNN
from ptedge.graph_contract import IMAGES, detections_of

from ..graph import StaticGraph, StaticOutput
from ..network_inputs import Images

Outputs = dict[str, NDArray[Any]]


def detect_all(model: ProbabilisticFasterRCNN, images: Images) -> list[Detections]:
    """Eager detections in input pixels, image by image: [N, 3, H, W] uint8 -> N results."""
    return [to_detections(model.detect(torch.from_numpy(image[None]))[0]) for image in images]


def infer_all(runner: Runner, images: Images) -> Outputs:
    """Outputs of an exported graph for any number of images; each group's last image fills the batch."""
    batch = int(runner.inputs[IMAGES][0][0])
    return _in_groups(images, batch, lambda group: runner.infer({IMAGES: group}))


def infer_static(static: StaticGraph, images: Images) -> Outputs:
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
