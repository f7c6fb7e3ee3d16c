"""Inputs that the tests of batches share."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from tiny_detector import HEIGHT, WIDTH

from ptedge.preprocess import PIXEL_MEAN

MEAN = np.round(PIXEL_MEAN).astype(np.uint8)
OFF: dict[str, Any] = {"jitter": 0.0, "grayscale": 0.0, "blur": 0.0, "solarize": 0.0, "zoom": (1.0, 1.0)}
SIZE = (HEIGHT, WIDTH)


def generator(seed: int = 0) -> torch.Generator:
    """A generator of a seed."""
    return torch.Generator().manual_seed(seed)


def picture(height: int = HEIGHT, width: int = WIDTH) -> NDArray[np.uint8]:
    """Noise, always the same."""
    return np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8)
