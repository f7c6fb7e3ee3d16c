"""A checkpoint that answers images with detections, run by torch as it is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from ptedge.artifacts.checkpoint import load_checkpoint
from ptedge.detections import Detections
from ptedge.detector.model import ProbabilisticFasterRCNN
from ptedge.detector.roi_heads import RawDetections
from ptedge.files import sha256_file
from ptedge.preprocess import Letterbox


def to_detections(raw: RawDetections) -> Detections:
    """Detections as numpy, still in input pixels."""
    return Detections(
        raw.boxes.cpu().numpy().astype(np.float32),
        raw.scores.cpu().numpy().astype(np.float32),
        raw.labels.cpu().numpy().astype(np.int64),
        raw.sigma.cpu().numpy().astype(np.float32),
        raw.entropy.cpu().numpy().astype(np.float32),
    )


class CheckpointPredictor:
    """A checkpoint that answers as any :class:`~ptedge.backends.predictor.Predictor` (torch eager, on a GPU if any).

    Args:
        path: checkpoint file.
        threads: CPU threads of torch; ``None`` leaves its default.
        calibrated: correct sides as the checkpoint says, where it does.

    Raises:
        InputError, ArtifactError: see :func:`ptedge.artifacts.checkpoint.load_checkpoint`.
    """

    def __init__(self, path: Path, threads: int | None = None, *, calibrated: bool = True) -> None:
        if threads is not None:
            torch.set_num_threads(threads)
        checkpoint = load_checkpoint(path)
        if not calibrated:
            checkpoint = replace(checkpoint, calibration=None)
        self.class_names = checkpoint.class_names
        self.input_size = checkpoint.config.input_size
        self.model_hash = sha256_file(path)
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.model = checkpoint.build().to(self.device)

    def detect(self, image: NDArray[np.uint8]) -> Detections:
        """Detections of one RGB image [height, width, 3], in its pixels."""
        return detect_image(self.model, image, self.device)

    def close(self) -> None:
        """Nothing to free: torch keeps no handle on the file."""


def detect_image(
    model: ProbabilisticFasterRCNN, image: NDArray[np.uint8], device: torch.device | None = None
) -> Detections:
    """Letterbox, detect, and bring the detections back to the image.

    Args:
        model: in eval mode.
        image: [height, width, 3] uint8 RGB.
        device: where the model is; ``None`` for the CPU.
    """
    letterbox = Letterbox(image.shape[1], image.shape[0], *model.config.input_size)
    batch = torch.from_numpy(letterbox.image(image)).permute(2, 0, 1).unsqueeze(0)
    return letterbox.undo(to_detections(model.detect(batch.to(device or torch.device("cpu")))[0]))
