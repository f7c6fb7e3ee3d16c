"""Corruptions of labelled pictures: eleven kinds that leave boxes where they are, one that shrinks the scene.

They are no weather and need no library beyond OpenCV: what counts is that errors grow in several ways, so that what
is learnt from them holds for another way. Strengths lie in (0, 1]; at 1 most objects are lost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from ptedge.preprocess import PIXEL_MEAN

Image = NDArray[np.uint8]
FloatImage = NDArray[np.float32]

CLEAN = "clean"
SMALLER = "smaller"
SMALLEST = 0.35  # scale of the scene at strength 1
STRENGTHS = (0.2, 0.4, 0.6, 0.8)


@dataclass(frozen=True)
class Corruption:
    """A kind and how strong.

    Attributes:
        kind: one of :data:`KINDS`, ``smaller``, or ``clean``.
        strength: in (0, 1]; 0 for ``clean``.
    """

    kind: str
    strength: float


def _blur(image: FloatImage, strength: float, rng: np.random.Generator) -> FloatImage:
    return _float(cv2.GaussianBlur(image, (0, 0), 0.4 + 2.6 * strength))


def _smear(image: FloatImage, strength: float, rng: np.random.Generator) -> FloatImage:
    """The camera moved while the shutter was open, mostly sideways."""
    half = 1.0 + 9.0 * strength
    angle = rng.uniform(-0.5, 0.5)
    steps = np.linspace(-half, half, 2 * int(half) + 3)
    kernel = np.zeros((2 * int(half) + 3,) * 2, np.float32)
    centre = kernel.shape[0] // 2
    for step in steps:
        x, y = round(centre + step * np.cos(angle)), round(centre + step * np.sin(angle))
        kernel[min(max(y, 0), 2 * centre), min(max(x, 0), 2 * centre)] += 1
    return _float(cv2.filter2D(image, -1, kernel / kernel.sum()))


def _noise(image: FloatImage, strength: float, rng: np.random.Generator) -> FloatImage:
    return _float(image + rng.standard_normal(image.shape, dtype=np.float32) * np.float32(40 * strength))


def _dark(image: FloatImage, strength: float, rng: np.random.Generator) -> FloatImage:
    return _float(255 * (image / 255) ** np.float32(1 + strength) * np.float32(1 - 0.75 * strength))


def _bright(image: FloatImage, strength: float, rng: np.random.Generator) -> FloatImage:
    return _float(255 * (image / 255) ** np.float32(1 - 0.6 * strength) * np.float32(1 + 0.8 * strength))


def _flat(image: FloatImage, strength: float, rng: np.random.Generator) -> FloatImage:
    mean = np.float32(image.mean())
    return _float(mean + (image - mean) * np.float32(1 - 0.9 * strength))


def _haze(image: FloatImage, strength: float, rng: np.random.Generator) -> FloatImage:
    """White from above, as far things are higher in the picture of a camera that looks along the ground."""
    share = strength * np.linspace(1.0, 0.55, image.shape[0], dtype=np.float32)[:, None, None]
    return _float(image * (1 - np.float32(0.93) * share) + np.float32(0.93 * 205) * share)


def _compressed(image: FloatImage, strength: float, rng: np.random.Generator) -> FloatImage:
    quality = round(24 - 22 * strength)
    _, data = cv2.imencode(".jpg", np.clip(image, 0, 255).astype(np.uint8), [cv2.IMWRITE_JPEG_QUALITY, quality])
    return np.asarray(cv2.imdecode(data, cv2.IMREAD_COLOR), np.float32)


def _colour(image: FloatImage, strength: float, rng: np.random.Generator) -> FloatImage:
    """Towards grey, and another white."""
    grey = image.mean(axis=2, keepdims=True)
    gains = np.exp(rng.uniform(-1, 1, 3) * 0.9 * strength).astype(np.float32)
    return _float((image + (grey - image) * np.float32(0.8 * strength)) * gains)


def _coarse(image: FloatImage, strength: float, rng: np.random.Generator) -> FloatImage:
    """A sensor of fewer pixels."""
    height, width = image.shape[:2]
    factor = 1 + 5 * strength
    few = cv2.resize(image, (max(8, int(width / factor)), max(8, int(height / factor))), interpolation=cv2.INTER_AREA)
    return _float(cv2.resize(few, (width, height), interpolation=cv2.INTER_LINEAR))


def _dusk(image: FloatImage, strength: float, rng: np.random.Generator) -> FloatImage:
    """Several at once, as places have it: dark, soft and grainy."""
    return _noise(_dark(_blur(image, 0.35 * strength, rng), 0.75 * strength, rng), 0.15 * strength, rng)


KINDS: dict[str, Callable[[FloatImage, float, np.random.Generator], FloatImage]] = {
    "blur": _blur,
    "smear": _smear,
    "noise": _noise,
    "dark": _dark,
    "bright": _bright,
    "flat": _flat,
    "haze": _haze,
    "compressed": _compressed,
    "colour": _colour,
    "coarse": _coarse,
    "dusk": _dusk,
}


def corruption_sets() -> tuple[Corruption, ...]:
    """Two clean sets, and each kind in each of four strengths: 50."""
    kinds = (*KINDS, SMALLER)
    return (Corruption(CLEAN, 0.0),) * 2 + tuple(Corruption(kind, power) for kind in kinds for power in STRENGTHS)


def corrupt(
    image: Image, boxes: NDArray[np.float32], corruption: Corruption, rng: np.random.Generator
) -> tuple[Image, NDArray[np.float32]]:
    """A picture and its boxes under a corruption.

    Args:
        image: RGB uint8 [H, W, 3], at the size of the network's input: strengths are in its pixels.
        boxes: [N, 4] float32 xyxy in pixels of ``image``.
        corruption: what is done.
        rng: draws noise, directions and colours.

    Returns:
        Picture and boxes, of the same shapes.
    """
    if corruption.kind == CLEAN:
        return image, boxes
    if corruption.kind == SMALLER:
        return _shrunk(image, boxes, 1 - (1 - SMALLEST) * corruption.strength)
    changed = KINDS[corruption.kind](image.astype(np.float32), corruption.strength, rng)
    return np.clip(changed + 0.5, 0, 255).astype(np.uint8), boxes


def _shrunk(image: Image, boxes: NDArray[np.float32], scale: float) -> tuple[Image, NDArray[np.float32]]:
    """The scene from farther away, in the middle of the picture; around it the mean colour."""
    height, width = image.shape[:2]
    x_scale, y_scale = round(width * scale) / width, round(height * scale) / height
    small = cv2.resize(image, (round(width * scale), round(height * scale)), interpolation=cv2.INTER_AREA)
    top, left = (height - small.shape[0]) // 2, (width - small.shape[1]) // 2
    out = np.empty_like(image)
    out[:] = np.round(PIXEL_MEAN).astype(np.uint8)
    out[top : top + small.shape[0], left : left + small.shape[1]] = small
    moved = boxes * np.array([x_scale, y_scale] * 2, np.float32) + np.array([left, top] * 2, np.float32)
    return out, moved.astype(np.float32)


def _float(image: object) -> FloatImage:
    return np.asarray(image, np.float32)
