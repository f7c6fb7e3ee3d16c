"""Models that are timed without training: ``python -m ptedge.training.study.timing.untrained`` and one of these.

ours SETTINGS CLASSES OUT         a checkpoint with random weights; SETTINGS is the model's table as JSON
torchvision NAME HxW OUT          torchvision's detector NAME as ONNX, with random weights
"""

from __future__ import annotations

import io
import json
import sys
import warnings
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ptedge.artifacts.checkpoint import Checkpoint, save_checkpoint
from ptedge.detector.config import config_of_file
from ptedge.detector.model import ProbabilisticFasterRCNN
from ptedge.errors import ConfigError, PtedgeError
from ptedge.files import atomic_write

from ...state import state_of

OPSET = 17  # as ptedge export


def write_untrained(settings: str, classes: int, out: Path) -> None:
    """Write a checkpoint of a detector that was never trained.

    Args:
        settings: of the model, JSON.
        classes: how many.
        out: of the file.

    Raises:
        PtedgeError: wrong settings, or ``out`` cannot be written.
    """
    torch.manual_seed(0)
    config = config_of_file(json.loads(settings), "the model's settings")
    model = ProbabilisticFasterRCNN(config, classes).eval()
    save_checkpoint(out, Checkpoint(config, tuple(f"class {i}" for i in range(classes)), state_of(model)))


class _OneImage(nn.Module):
    """torchvision's detector as a device would feed it: bytes [1, 3, H, W] in, as ours."""

    def __init__(self, detector: nn.Module) -> None:
        super().__init__()
        self.detector = detector

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        found = self.detector([images[0].float() / 255.0])[0]
        return found["boxes"], found["scores"], found["labels"]


def write_torchvision(name: str, size: tuple[int, int], out: Path) -> None:
    """Export one of torchvision's detectors as it comes, random weights, for an input of this size.

    Args:
        name: of ``torchvision.models.detection``.
        size: (height, width) in pixels; the detector's own resizing keeps it.
        out: ONNX file.

    Raises:
        ConfigError: torchvision has no such detector.
    """
    from torchvision.models import detection as module
    from torchvision.models import get_model, list_models

    if name not in (known := list_models(module)):
        raise ConfigError(f"torchvision has no detector {name!r}; there are {', '.join(known)}")
    torch.manual_seed(0)
    sides: dict[str, Any] = {} if name.startswith("ssd") else {"min_size": min(size), "max_size": max(size)}
    detector = get_model(name, weights=None, weights_backbone=None, num_classes=2, **sides).eval()
    images = torch.randint(0, 256, (1, 3, *size), dtype=torch.uint8)
    file: Any = io.BytesIO()  # torch types it as a path, and takes a file as well
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            _OneImage(detector), (images,), file, dynamo=False, opset_version=OPSET, input_names=["images"]
        )
    with atomic_write(out, "wb") as target:
        target.write(file.getvalue())


def main() -> None:
    """Write one file."""
    what, first, second, out = sys.argv[1:]
    try:
        if what == "ours":
            write_untrained(first, int(second), Path(out))
        else:
            height, width = (int(side) for side in second.split("x"))
            write_torchvision(first, (height, width), Path(out))
    except PtedgeError as error:
        sys.exit(f"ptedge: {error}")


if __name__ == "__main__":
    main()
