"""Answers of a bundle for many images, in one form, whichever backend gives them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptedge.backends.runner import Runner
from ptedge.detections import Detections
from ptedge.graph_contract import IMAGES, detections_of

from ..network_inputs import Images

Outputs = dict[str, NDArray[Any]]


def infer_all(runner: Runner, images: Images) -> Outputs:
    """Outputs of an exported graph for any number of images [N, 3, H, W]; each group's last image fills the batch."""
    batch = int(runner.inputs[IMAGES][0][0])
    return in_groups(images, batch, lambda group: runner.infer({IMAGES: group}))


def in_groups(images: Images, batch: int, run: Callable[[Images], Outputs]) -> Outputs:
    """Outputs for any number of images from what takes a fixed number at a time.

    Args:
        images: [N, 3, H, W].
        batch: images a call.
        run: [batch, 3, H, W] -> outputs, images first.
    """
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
