"""Fog, night, rain and blur on pictures that were taken without them, by kornia's filters and generators.

Only boxes of the picture as it was stay right, so nothing here moves a pixel. Pictures are float32 RGB in [0, 1],
[H, W, 3]; strengths lie in (0, 1].
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import torch
from kornia.augmentation import RandomRain
from kornia.contrib import diamond_square
from kornia.enhance import adjust_brightness, adjust_contrast, adjust_gamma, adjust_saturation
from kornia.filters import gaussian_blur2d, motion_blur
from numpy.typing import NDArray
from torch import Tensor

from .weather import add_fog

HORIZON = 0.45  # of the height: where a level road seen by a level camera ends
NEAR, FAR = 6.0, 120.0  # metres, at the lower edge and from the horizon up
AIRLIGHT = (0.74, 0.76, 0.78)


def road_depth(height: int, width: int) -> NDArray[np.float32]:
    """Depth of a level road: inverse to the rows below the horizon, :data:`FAR` above.

    A guess: nobody measured it. What stands on the road is taken for the road behind it, so its upper parts are
    fogged too much.

    Returns:
        [H, W] metres.
    """
    rows = (np.arange(height, dtype=np.float32) + 0.5) / height
    below = np.maximum(rows - HORIZON, 1e-6) / (1 - HORIZON)
    depth = np.minimum(NEAR / below, FAR).astype(np.float32)
    return np.repeat(depth[:, None], width, axis=1)


def fog(image: NDArray[np.float32], strength: float) -> NDArray[np.float32]:
    """Fog in banks: scattering with a density that varies as a plasma fractal does. At 1 one sees about 60 m."""
    height, width = image.shape[:2]
    plasma = diamond_square((1, 1, height, width), roughness=0.4, normalize_range=(0.6, 1.4))[0, 0].numpy()
    depth = road_depth(height, width) * plasma.astype(np.float32)
    return add_fog(image, depth, 0.05 * strength, AIRLIGHT)


def night(image: NDArray[np.float32], strength: float) -> NDArray[np.float32]:
    """Less light, bluish and pale, and the noise of a sensor that makes up for it. At 1 mid grey falls to 10 %."""
    dark = adjust_gamma(_to_batch(image), 1 + 0.8 * strength)
    dark = adjust_saturation(dark, 1 - 0.6 * strength)
    tint = torch.tensor([1 - 0.25 * strength, 1 - 0.15 * strength, 1.0]).view(1, 3, 1, 1)
    dark = dark * tint * (1 - 0.6 * strength)
    noise = torch.randn_like(dark) * 0.03 * strength
    return _to_image((dark + noise).clamp(0, 1))


def rain(image: NDArray[np.float32], strength: float) -> NDArray[np.float32]:
    """Streaks, smeared along their fall, over a duller picture. At 1 there are 4 drops a thousand pixels."""
    height, width = image.shape[:2]
    dull = adjust_brightness(adjust_contrast(_to_batch(image), 1 - 0.5 * strength), -0.05 * strength)
    drops = max(1, round(4e-3 * strength * height * width))
    length = max(2, round(height * (0.03 + 0.04 * strength)))
    slant = (-max(1, length // 4), max(1, length // 4))
    fall = RandomRain((drops, drops), (length, length), slant, p=1.0)
    streaks = fall(torch.zeros(1, 3, height, width))
    streaks = motion_blur(streaks, _odd(length / 2), 90.0, 0.0)
    return _to_image((dull * (1 - 0.6 * streaks) + 0.8 * streaks).clamp(0, 1))


def blur(image: NDArray[np.float32], strength: float) -> NDArray[np.float32]:
    """A lens out of focus and a camera that turned: at 1 sigma is 0.5 % of the width and the smear 1.2 %."""
    width = image.shape[1]
    sigma = max(0.005 * width * strength, 0.2)
    size = _odd(6 * sigma)
    soft = gaussian_blur2d(_to_batch(image), (size, size), (sigma, sigma))
    angle = float(torch.rand(()) * 180)
    smeared = motion_blur(soft, _odd(0.012 * width * strength), angle, 0.0, border_type="replicate")
    return _to_image(smeared.clamp(0, 1))


EFFECTS: dict[str, Callable[[NDArray[np.float32], float], NDArray[np.float32]]] = {
    "rain": rain,
    "fog": fog,
    "night": night,
    "blur": blur,
}


def apply_effects(image: NDArray[np.uint8], effects: Sequence[tuple[str, float]], seed: int) -> NDArray[np.uint8]:
    """Effects one after the other, the same for the same seed.

    Args:
        image: RGB uint8 [H, W, 3].
        effects: names of :data:`EFFECTS` with their strengths, in (0, 1].
        seed: of all that is drawn.

    Returns:
        RGB uint8 [H, W, 3]; the picture as it was, where there are no effects.
    """
    picture: NDArray[np.float32] = np.asarray(image, np.float32) / np.float32(255)
    with torch.random.fork_rng(devices=[]):  # kornia draws from torch's global generator
        torch.manual_seed(seed)
        for name, strength in effects:
            picture = EFFECTS[name](picture, strength)
    rounded: NDArray[np.uint8] = np.clip(picture * 255 + 0.5, 0, 255).astype(np.uint8)
    return rounded


def _odd(size: float) -> int:
    """The next odd number of pixels, 3 at least: filters have a centre."""
    return max(3, 2 * math.ceil(size / 2) + 1)


def _to_batch(image: NDArray[np.float32]) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(image.transpose(2, 0, 1)))[None]


def _to_image(batch: Tensor) -> NDArray[np.float32]:
    image: NDArray[np.float32] = np.ascontiguousarray(batch[0].permute(1, 2, 0).numpy())
    return image
