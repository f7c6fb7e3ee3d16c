"""Network inputs to check and to calibrate a graph with: made ones, and frames of the user's."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from ptedge.errors import InputError
from ptedge.frames.source import open_frames
from ptedge.preprocess import PIXEL_MEAN, Letterbox

Images = NDArray[np.uint8]  # [N, 3, H, W]
FRAMES = "frames"  # the scene of the user's own frames; all others are made


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


def first_frames(spec: str, size: tuple[int, int], limit: int) -> Images:
    """The first frames of a source, letterboxed.

    Args:
        spec: image, folder, list, video or field folder.
        size: (height, width) of the network input.
        limit: at most this many.

    Raises:
        InputError: no frames there.
    """
    placed = [letterboxed(frame.image, size) for frame in itertools.islice(open_frames(spec), limit)]
    return np.stack(_some(placed, spec))


def spread_frames(spec: str, size: tuple[int, int], limit: int) -> Images:
    """Frames at equal distances over a source of any length, letterboxed.

    Whenever twice as many as wanted are held, every other one is dropped, so memory does not grow with the source.

    Args:
        spec: image, folder, list, video or field folder.
        size: (height, width) of the network input.
        limit: at most this many.

    Raises:
        InputError: no frames there.
    """
    held: list[NDArray[np.uint8]] = []
    step = 1
    for i, frame in enumerate(itertools.islice(open_frames(spec), 1000 * limit)):  # a live source never ends
        if i % step:
            continue
        held.append(letterboxed(frame.image, size))
        if len(held) == 2 * limit:
            held, step = held[::2], 2 * step
    rows = np.linspace(0, len(_some(held, spec)) - 1, min(limit, len(held))).round().astype(int)
    return np.stack([held[row] for row in rows])


def letterboxed(image: NDArray[np.uint8], size: tuple[int, int]) -> NDArray[np.uint8]:
    """An image as the network takes it.

    Args:
        image: [height, width, 3] uint8 RGB.
        size: (height, width) of the network input.

    Returns:
        [3, H, W] uint8.
    """
    placed: NDArray[np.uint8] = Letterbox(image.shape[1], image.shape[0], *size).image(image).transpose(2, 0, 1)
    return placed


def _some(frames: list[NDArray[np.uint8]], spec: str) -> list[NDArray[np.uint8]]:
    if not frames:
        raise InputError(f"{spec} holds no frames. Give an image, folder, list, video or field folder")
    return frames
