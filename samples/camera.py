"""A pinhole camera: world points to pixels, pixels to rays.

World and camera axes are x right, y up, z forward, in metres.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

NEAR = 0.4  # metres; what is nearer is cut away


@dataclass(frozen=True)
class Camera:
    """A pinhole camera without lens distortion.

    Attributes:
        width, height: image size in pixels.
        focal: focal length in pixels.
        position: (x, y, z) in metres; y is the height over the road.
        pitch: radians, positive looks down.
        yaw: radians, positive looks right.
    """

    width: int
    height: int
    focal: float
    position: tuple[float, float, float]
    pitch: float = 0.0
    yaw: float = 0.0

    @property
    def rotation(self) -> Array:
        """[3, 3] matrix from world to camera directions."""
        cp, sp, cy, sy = np.cos(self.pitch), np.sin(self.pitch), np.cos(self.yaw), np.sin(self.yaw)
        turn = np.array([[cy, 0, -sy], [0, 1, 0], [sy, 0, cy]])
        tilt = np.array([[1, 0, 0], [0, cp, sp], [0, -sp, cp]])
        rotation: Array = tilt @ turn
        return rotation

    def to_camera(self, points: Array) -> Array:
        """World points [N, 3] in camera axes [N, 3], metres."""
        seen: Array = (points - np.array(self.position)) @ self.rotation.T
        return seen

    def to_pixels(self, seen: Array) -> Array:
        """Camera points [N, 3] with z > 0 as pixels [N, 2]; (0, 0) is the outer corner of the top-left pixel."""
        pixels: Array = np.stack(
            [
                self.width / 2 + self.focal * seen[:, 0] / seen[:, 2],
                self.height / 2 - self.focal * seen[:, 1] / seen[:, 2],
            ],
            axis=1,
        )
        return pixels

    def world_rays(self, offset: float = 0.5) -> NDArray[np.float32]:
        """:meth:`rays` in world axes."""
        turned = self.rays(offset).reshape(-1, 3) @ self.rotation.astype(np.float32)
        return turned.reshape(self.height, self.width, 3)

    def rays(self, offset: float = 0.5) -> NDArray[np.float32]:
        """Directions [H, W, 3], z = 1, in camera axes, through the points ``offset`` pixels inside each pixel."""
        u = (np.arange(self.width) + offset - self.width / 2) / self.focal
        v = (self.height / 2 - np.arange(self.height) - offset) / self.focal
        rays = np.ones((self.height, self.width, 3), dtype=np.float32)
        rays[..., 0] = u[None, :]
        rays[..., 1] = v[:, None]
        return rays


def clip_near(polygon: Array) -> Array:
    """Cut a polygon in camera axes [K, 3] at the near plane; returns [M, 3], M = 0 when nothing is left."""
    if (polygon[:, 2] < NEAR).all():
        return np.empty((0, 3))
    kept: list[Array] = []
    for here, after in zip(polygon, [*polygon[1:], polygon[0]], strict=True):
        if here[2] >= NEAR:
            kept.append(here)
        if (here[2] >= NEAR) != (after[2] >= NEAR):
            kept.append(here + (after - here) * (NEAR - here[2]) / (after[2] - here[2]))
    return np.array(kept).reshape(-1, 3)
