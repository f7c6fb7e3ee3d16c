"""What lies between the street and the stored picture: daylight or dusk, fog, the camera.

Colours are float RGB in [0, 1], proportional to stored values.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from .camera import Array
from .render import Image


@dataclass(frozen=True)
class Domain:
    """Conditions under which a picture is taken.

    Attributes:
        name: for messages and files.
        beta: fog, scattering coefficient per metre; 0 is clear. A person sees about 3 / beta metres.
        airlight: colour of thick fog by day.
        dusk: 0 is day, 1 is late dusk with all lights on.
        focal: focal length as a factor of the usual one.
        height: camera height over the road as a factor of the usual one.
        blur: standard deviation of the lens blur in pixels at 320 pixels width.
        noise: standard deviation of the sensor noise at mid grey, of 255.
        gain: colour response, a factor each for R, G, B.
        contrast: slope around mid grey; 1 leaves as is.
        gamma: exponent of the tone curve; above 1 darkens the mid tones.
        vignette: loss of light in the corners, 0 to 1.
    """

    name: str
    beta: float = 0.0
    airlight: tuple[float, float, float] = (0.78, 0.80, 0.82)
    dusk: float = 0.0
    focal: float = 1.0
    height: float = 1.0
    blur: float = 0.3
    noise: float = 1.5
    gain: tuple[float, float, float] = (1.0, 1.0, 1.0)
    contrast: float = 1.0
    gamma: float = 1.0
    vignette: float = 0.0


def transmission(depth: NDArray[np.float32], beta: float) -> NDArray[np.float32]:
    """Share of light that reaches the camera, t = exp(-beta depth).

    Args:
        depth: metres.
        beta: per metre.
    """
    share: NDArray[np.float32] = np.exp(np.float32(-beta) * depth)
    return share


def add_fog(
    image: Image, depth: NDArray[np.float32], beta: float, airlight: tuple[float, float, float] | Array
) -> Image:
    """Scattering by fog, I = J t + A (1 - t).

    Args:
        image: J, [H, W, 3].
        depth: [H, W] metres.
        beta: scattering coefficient per metre.
        airlight: A, [3].

    Reference:
        Narasimhan and Nayar, Vision and the Atmosphere, IJCV 2002; used this way by Foggy Cityscapes.
    """
    share = transmission(depth, beta)[..., None]
    foggy: Image = image * share + np.asarray(airlight, dtype=np.float32) * (1 - share)
    return foggy


def dusk_light(ambient: Array, sun: Array, dusk: float) -> tuple[Array, Array]:
    """Dim and tint the day's light: the sun goes first, and what is left is bluish."""
    left = np.array([0.20, 0.21, 0.31])
    return ambient * ((1 - dusk) + dusk * left), sun * (1 - dusk) ** 2


def fog_light(ambient: Array, sun: Array, beta: float) -> tuple[Array, Array]:
    """Fog spreads the sun's light: soft shadows in thin fog, none in thick."""
    direct = float(np.exp(-30 * beta))  # 30 m: a usual height of ground fog
    return ambient + 0.5 * (1 - direct) * sun, direct * sun


def dusk_sky(zenith: Array, horizon: Array, dusk: float) -> tuple[Array, Array]:
    """Sky colours at dusk: dark blue above, a warm rim."""
    return (
        (1 - dusk) * zenith + dusk * np.array([0.10, 0.12, 0.24]),
        (1 - dusk) * horizon + dusk * np.array([0.50, 0.33, 0.28]),
    )


def add_glow(reflected: Image, emitted: Image) -> Image:
    """Lamps and the halo that the lens lays around them."""
    halo = cv2.GaussianBlur(emitted, (0, 0), reflected.shape[1] / 90)
    wide = cv2.GaussianBlur(emitted, (0, 0), reflected.shape[1] / 25)
    lit: Image = reflected + emitted + 0.7 * halo + 0.9 * wide
    return lit


def take_picture(image: Image, domain: Domain, rng: np.random.Generator) -> NDArray[np.uint8]:
    """Lens, sensor and tone curve.

    Args:
        image: [H, W, 3] float, may exceed 1 where lamps shine.
        domain: the camera's properties.
        rng: draws the noise.

    Returns:
        RGB uint8 [H, W, 3].
    """
    height, width = image.shape[:2]
    if domain.blur > 0:
        image = np.asarray(cv2.GaussianBlur(image, (0, 0), domain.blur * width / 320), dtype=np.float32)
    if domain.vignette > 0:
        y = np.linspace(-1, 1, height, dtype=np.float32)[:, None]
        x = np.linspace(-1, 1, width, dtype=np.float32)[None, :]
        image = image * (1 - np.float32(domain.vignette / 2) * (x * x + y * y))[..., None]
    image = np.clip(image * np.asarray(domain.gain, dtype=np.float32), 0, 1).astype(np.float32)
    if domain.gamma != 1:
        image = np.asarray(image ** np.float32(domain.gamma), dtype=np.float32)
    toned = (image - 0.5) * domain.contrast + 0.5
    noise = rng.standard_normal(image.shape, dtype=np.float32) * np.float32(domain.noise)
    picture: NDArray[np.uint8] = np.clip(toned * 255 + noise + 0.5, 0, 255).astype(np.uint8)
    return picture
