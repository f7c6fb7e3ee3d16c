"""What a bundle is checked on: made images, and frames of the user's."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from ptedge.errors import InputError
from ptedge.frames.source import open_frames
from ptedge.preprocess import PIXEL_MEAN, Letterbox

Images = NDArray[np.uint8]  # [N, 3, H, W]


def make_scenes(size: tuple[int, int]) -> dict[str, Images]:
    """Images without a camera: black, noise, and a pattern of blocks on the mean colour.

    Args:
        size: (height, width).

    Returns:
        Name -> [N, 3, H, W] uint8.
    """
    generator = np.random.default_rng(0)
    height, width = size
    blocks = np.empty((1, 3, height, width), np.uint8)
    blocks[:] = np.round(PIXEL_MEAN).astype(np.uint8)[:, None, None]
    for y, x in itertools.product(range(8, height - 16, 32), range(8, width - 16, 48)):
        blocks[0, :, y : y + 20, x : x + 30] = generator.integers(0, 256, (3, 1, 1))
    return {
        "black": np.zeros((1, 3, height, width), np.uint8),
        "noise": generator.integers(0, 256, (2, 3, height, width), dtype=np.uint8),
        "blocks": blocks,
    }


def read_frames(spec: str, size: tuple[int, int], limit: int) -> Images:
    """The first frames of any source, letterboxed.

    Raises:
        InputError: none there.
    """
    height, width = size
    placed = [
        Letterbox(frame.image.shape[1], frame.image.shape[0], height, width).image(frame.image).transpose(2, 0, 1)
        for frame in itertools.islice(open_frames(spec), limit)
    ]
    if not placed:
        raise InputError(f"{spec} holds no frames. Give an image, folder, list, video or field folder")
    return np.stack(placed)
