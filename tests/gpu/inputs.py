"""What tests/gpu/prepare.sh keeps for the GPU: network inputs, and what ONNX Runtime answers to them on the CPU."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

import numpy as np

from ptedge.backends.bundle_predictor import BundlePredictor
from ptedge.frames.source import open_frames
from ptedge.graph_contract import IMAGES

PRECISIONS = ("fp32", "fp16", "int8")
FRAMES = 24
EVERY = 5  # frames of a video are alike


def main() -> None:
    """Write OUT/inputs.npz and OUT/PRECISION-cpu.npz."""
    out, frames = Path(sys.argv[1]), sys.argv[2]
    predictors = {precision: BundlePredictor(out / precision, "cpu") for precision in PRECISIONS}
    first = predictors[PRECISIONS[0]]
    height, width = first.input_size
    chosen = itertools.islice(open_frames(frames), 0, EVERY * FRAMES, EVERY)
    placed = [first.preprocess([frame.image])[0][0] for frame in chosen]
    noise = np.random.default_rng(0).integers(0, 256, (3, height, width), dtype=np.uint8)
    images = np.stack([*placed, np.zeros_like(noise), noise])  # [N, 3, H, W]
    np.savez(out / "inputs.npz", images=images)
    for precision, predictor in predictors.items():
        found = [predictor.runner.infer({IMAGES: image[None]}) for image in images]
        answers = {name: np.concatenate([one[name] for one in found]) for name in found[0]}
        np.savez(out / f"{precision}-cpu.npz", **answers)
        print(f"{precision}: {len(images)} images, {int(answers['num_detections'].sum())} detections")


if __name__ == "__main__":
    main()
