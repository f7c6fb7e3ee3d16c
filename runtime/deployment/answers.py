"""Whether a bundle answers as its graph promises here, and as ONNX Runtime on the CPU does. Needs no torch.

``ptedge verify`` compares with the checkpoint and has stricter limits; this is what a device can tell by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptedge.backends.bundle_predictor import BundlePredictor
from ptedge.backends.promises import broken_promises
from ptedge.detections import Detections, class_iou
from ptedge.graph_contract import IMAGES
from ptedge.preprocess import Letterbox

from .check import GateCheck

Image = NDArray[np.uint8]  # [height, width, 3] RGB
SURE = 0.5  # score from which a detection must be there on both backends
SAME_IOU = 0.5
LEAST_MATCHED = 0.8  # as ptedge verify asks of int8, which moves most


def made_images(size: tuple[int, int]) -> dict[str, Image]:
    """Pictures that no camera takes: black, and noise.

    Args:
        size: (height, width) in pixels.
    """
    noise = np.random.default_rng(0).integers(0, 256, (*size, 3), np.uint8)
    return {"black": np.zeros((*size, 3), np.uint8), "noise": noise}


def check_answers(predictor: BundlePredictor, reference: BundlePredictor | None, frames: Sequence[Image]) -> GateCheck:
    """Ask a bundle about made pictures and frames.

    Args:
        predictor: on the backend that will run it.
        reference: the same bundle on the CPU, where that is another backend.
        frames: of the place, may be none.
    """
    backend = predictor.runner.backend
    made = made_images(predictor.input_size)
    problems, found = [], list[Detections]()
    for name, image in [*made.items(), *(("a frame", frame) for frame in frames)]:
        detections, broken = _ask(predictor, image, made=name in made)
        problems += [f"{name}: {problem}" for problem in broken]
        found += [detections]
    if problems:
        return GateCheck("answers", False, f"on {backend}: {problems[0]} ({len(problems)} faults)")
    count = sum(map(len, found[len(made) :]))
    text = f"on {backend}: finite, ordered, inside; {count} detections in {len(frames)} frames"
    figures = {"detections": float(count), "frames": float(len(frames))}
    if reference is None:
        return GateCheck("answers", True, text, figures=figures)
    other = [_ask(reference, frame, made=False)[0] for frame in frames]
    matched, sure = matched_share(found[len(made) :], other)
    text += f"; {matched:.0%} of {sure} sure detections as on the CPU"
    figures |= {"matched": matched, "sure": float(sure)}
    return GateCheck("answers", matched >= LEAST_MATCHED, text, figures=figures)


def matched_share(one: Sequence[Detections], other: Sequence[Detections]) -> tuple[float, int]:
    """How much two sets of answers agree.

    Args:
        one: an entry a picture.
        other: of the same pictures.

    Returns:
        Share of sure detections of either side that overlap one of their class on the other side, 1 without any; and
        how many sure ones there are.
    """
    matched = sure = 0
    for a, b in zip(one, other, strict=True):
        for own, others in ((a, b), (b, a)):
            mine = own.select(own.scores >= SURE)
            same = class_iou(mine, others) >= SAME_IOU
            sure += len(mine)
            matched += int(same.any(axis=1).sum())
    return (matched / sure if sure else 1.0), sure


def _ask(predictor: BundlePredictor, image: Image, *, made: bool) -> tuple[Detections, list[str]]:
    """Detections, and what the raw answer breaks."""
    array: NDArray[Any]
    letterboxes: list[Letterbox]
    array, letterboxes = predictor.preprocess([image])
    outputs = predictor.runner.infer({IMAGES: array})
    broken = broken_promises({name: value[:1] for name, value in outputs.items()}, predictor.manifest, made=made)
    if broken:
        return Detections.empty(), broken
    return predictor.postprocess(outputs, letterboxes)[0], []
