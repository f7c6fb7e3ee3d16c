"""Weak and strong views of a letterboxed image. Everything random is drawn from a generator that is passed in.

Views change only the part that shows the image; the padding stays the channel mean.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torchvision.transforms.v2 import functional as T

from ptedge.boxes import clip_boxes
from ptedge.config import require
from ptedge.preprocess import PIXEL_MEAN

Image = NDArray[np.uint8]


@dataclass(frozen=True)
class AugmentConfig:
    """The strong view, in the order it is applied; a probability of 0 switches a step off.

    Attributes:
        jitter: probability of colour jitter.
        brightness: factor within 1 +- this.
        contrast: factor within 1 +- this.
        saturation: factor within 1 +- this.
        hue: shift within +- this, of the whole circle, at most 0.5.
        grayscale: probability.
        blur: probability of Gaussian blur.
        blur_sigma: (lowest, highest) sigma in input pixels.
        solarize: probability; values of 128 and more are inverted.
        zoom: (lowest, highest) scale; the image shrinks by it and is pasted centred on a mean-filled canvas. Above
            1 its centre is enlarged instead. A range that holds 1 in its midst keeps the student's boxes honest: with
            target frames that only shrink, boxes at the teacher's scale tighten from step to step.

    Reference:
        method.md section 7.
    """

    jitter: float = 0.8
    brightness: float = 0.4
    contrast: float = 0.4
    saturation: float = 0.4
    hue: float = 0.1
    grayscale: float = 0.2
    blur: float = 0.5
    blur_sigma: tuple[float, float] = (0.1, 2.0)
    solarize: float = 0.2
    zoom: tuple[float, float] = (0.5, 1.5)

    def __post_init__(self) -> None:
        for name in ("jitter", "grayscale", "blur", "solarize"):
            require(name, getattr(self, name), 0, 1)
        for name in ("brightness", "contrast", "saturation"):
            require(name, getattr(self, name), 0)
        require("hue", self.hue, 0, 0.5)
        require("lowest blur_sigma", self.blur_sigma[0], 0, self.blur_sigma[1], open_low=True)
        require("lowest zoom", self.zoom[0], 0.1, self.zoom[1])
        require("highest zoom", self.zoom[1], 0.1, 4)


def flip(image: Image, boxes: NDArray[np.float32]) -> tuple[Image, NDArray[np.float32]]:
    """Mirror left and right.

    Args:
        image: [h, w, 3].
        boxes: [N, 4] xyxy in its pixels.
    """
    width = image.shape[1]
    mirrored = boxes.copy()
    mirrored[:, 0], mirrored[:, 2] = width - boxes[:, 2], width - boxes[:, 0]
    # a copy in any case: numpy calls a mirrored image of width 1 contiguous, and torch refuses its negative stride
    return image[:, ::-1].copy(), mirrored


def strong_colour(image: Image, config: AugmentConfig, generator: torch.Generator) -> Image:
    """Colour jitter, grayscale, blur and solarize.

    Args:
        image: [h, w, 3] uint8 RGB.
        config: probabilities and ranges.
        generator: CPU generator.
    """
    x = torch.from_numpy(image).permute(2, 0, 1)  # [3, h, w]
    if _chance(config.jitter, generator):
        x = _jitter(x, config, generator)
    if _chance(config.grayscale, generator):
        x = T.rgb_to_grayscale(x, num_output_channels=3)
    out: Image = x.permute(1, 2, 0).numpy()
    if _chance(config.blur, generator):
        # OpenCV's separable filter: the same kernel, about ten times faster on a CPU than a convolution of uint8
        out = np.asarray(cv2.GaussianBlur(np.ascontiguousarray(out), (0, 0), _uniform(*config.blur_sigma, generator)))
    if _chance(config.solarize, generator):
        out = np.where(out >= 128, 255 - out, out).astype(np.uint8)
    return out


def _jitter(x: Tensor, config: AugmentConfig, generator: torch.Generator) -> Tensor:
    for step in torch.randperm(4, generator=generator).tolist():
        if step == 0 and config.brightness:
            x = T.adjust_brightness(x, _factor(config.brightness, generator))
        elif step == 1 and config.contrast:
            x = T.adjust_contrast(x, _factor(config.contrast, generator))
        elif step == 2 and config.saturation:
            x = T.adjust_saturation(x, _factor(config.saturation, generator))
        elif step == 3 and config.hue:
            x = T.adjust_hue(x, _uniform(-config.hue, config.hue, generator))
    return x


def draw_zoom(width: int, height: int, config: AugmentConfig, generator: torch.Generator) -> NDArray[np.float32]:
    """Draw a zoom about the centre.

    Args:
        width: of the image in pixels.
        height: of the image in pixels.
        config: range of the scale.
        generator: CPU generator.

    Returns:
        [3] (scale, dx, dy): x' = scale x + dx, y' = scale y + dy.
    """
    scale = _uniform(*config.zoom, generator)
    return np.array([scale, (1 - scale) * width / 2, (1 - scale) * height / 2], np.float32)


def apply_zoom(image: Image, zoom: NDArray[np.float32]) -> Image:
    """Scale and shift an image on a canvas of its own size, filled with the channel mean.

    Args:
        image: [h, w, 3] uint8 RGB.
        zoom: [3] (scale, dx, dy) of :func:`draw_zoom`.
    """
    scale, dx, dy = (float(v) for v in zoom)
    if scale == 1.0 and dx == 0.0 and dy == 0.0:
        return image
    height, width = image.shape[:2]
    # warpAffine maps pixel centres, boxes live on pixel edges: hence the half pixels
    matrix = np.array([[scale, 0, dx + 0.5 * scale - 0.5], [0, scale, dy + 0.5 * scale - 0.5]], np.float64)
    return np.asarray(
        cv2.warpAffine(image, matrix, (width, height), flags=cv2.INTER_LINEAR, borderValue=PIXEL_MEAN), np.uint8
    )


def move_boxes(boxes: NDArray[np.float32], zoom: NDArray[np.float32]) -> NDArray[np.float32]:
    """Boxes [N, 4] after a zoom [3]."""
    return np.asarray(boxes * zoom[0] + np.concatenate([zoom[1:], zoom[1:]]), np.float32)


def picture_in_view(zoom: NDArray[np.float32], width: int, height: int) -> NDArray[np.float32]:
    """The part of a view that shows the picture: what lies beyond it is canvas or the letterbox's border.

    Args:
        zoom: [3] (scale, dx, dy) of :func:`draw_zoom`.
        width: of the image in pixels.
        height: of the image in pixels.

    Returns:
        [4] x1, y1, x2, y2 in pixels of the view.
    """
    moved = move_boxes(np.array([[0, 0, width, height]], np.float32), zoom)
    return np.asarray(clip_boxes(moved, width, height)[0], np.float32)


def _uniform(low: float, high: float, generator: torch.Generator) -> float:
    return low + (high - low) * float(torch.rand((), generator=generator))


def _factor(spread: float, generator: torch.Generator) -> float:
    return _uniform(max(0.0, 1.0 - spread), 1.0 + spread, generator)


def _chance(probability: float, generator: torch.Generator) -> bool:
    # always draws, so that switching one step off leaves the others' random numbers as they were
    return float(torch.rand((), generator=generator)) < probability
