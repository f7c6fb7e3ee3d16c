"""Make OUT/bundle, OUT/split (two graphs) and OUT/frames, without any training: what a device test needs.

usage: make_bundle.py OUT [HEIGHTxWIDTH]
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import cv2
import numpy as np
import torch

from ptedge.artifacts.checkpoint import Checkpoint, save_checkpoint
from ptedge.detector.config import ModelConfig
from ptedge.detector.model import ProbabilisticFasterRCNN

CLASS_NAMES = ("car", "person")


def main() -> None:
    """Write the checkpoint, export it with the command line, and paint three frames."""
    out = Path(sys.argv[1])
    height, width = map(int, (sys.argv[2] if len(sys.argv) > 2 else "384x640").split("x"))
    torch.manual_seed(0)
    config = ModelConfig(weights="none", input_size=(height, width))
    model = ProbabilisticFasterRCNN(config, len(CLASS_NAMES))
    save_checkpoint(out / "model.pt", Checkpoint(config, CLASS_NAMES, model.state_dict()))
    command = [sys.executable, "-m", "ptedge", "export", str(out / "model.pt"), "--out"]
    subprocess.run([*command, str(out / "bundle")], check=True)
    subprocess.run([*command, str(out / "split"), "--split"], check=True)

    frames = out / "frames"
    frames.mkdir(parents=True, exist_ok=True)
    generator = np.random.default_rng(0)
    for index in range(3):
        image = generator.integers(0, 256, (90, 160, 3), dtype=np.uint8)
        cv2.rectangle(image, (20 + 30 * index, 30), (60 + 30 * index, 60), (40, 40, 200), -1)
        cv2.imwrite(str(frames / f"{index}.png"), image)


if __name__ == "__main__":
    main()
