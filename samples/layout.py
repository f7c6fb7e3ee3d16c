"""The empty street: how wide it is, what its ground looks like, and the light of the day."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from . import scenery, shapes
from .camera import Array
from .render import Colour, Part


@dataclass(frozen=True)
class Layout:
    """Widths of a street in metres, centre line at x = 0."""

    lanes: int
    lane_width: float
    parking: float
    pavement: float
    crossing: float | None  # z of the middle of a crossing street
    crossing_half: float

    @property
    def kerb(self) -> float:
        return self.lanes * self.lane_width + self.parking

    def in_crossing(self, z: float, margin: float = 0.0) -> bool:
        return self.crossing is not None and abs(z - self.crossing) < self.crossing_half + margin


@dataclass(frozen=True)
class Daylight:
    """Light of a clear day; dusk is made from it later.

    Attributes:
        ambient, sun: [3] light, see :meth:`ptedge.samples.render.Canvas.colours`.
        to_sun: [3] unit vector.
        zenith, horizon: [3] sky colours.
        clouds: 0 (none) to 1.
    """

    ambient: Array
    sun: Array
    to_sun: Array
    zenith: Array
    horizon: Array
    clouds: float


def draw_ground(rng: np.random.Generator, layout: Layout, length: float) -> Part:
    """Road with markings and repairs, pavements, grass, and perhaps a crossing street.

    Args:
        rng: source of all randomness.
        layout: widths.
        length: metres along which objects stand; the ground goes on behind.
    """
    grey = rng.uniform(0.24, 0.42)
    asphalt: Colour = (grey, grey * rng.uniform(0.97, 1.02), grey * rng.uniform(0.96, 1.06))
    tone = rng.uniform(0.48, 0.66)
    pavement: Colour = (tone, tone * rng.uniform(0.93, 1.0), tone * rng.uniform(0.86, 0.98))
    grass = shapes.hue(rng.uniform(0.1, 0.3), rng.uniform(0.1, 0.45), rng.uniform(0.35, 0.5))
    white = (0.85, 0.85, 0.82)
    kerb, far, edge = layout.kerb, length + 340, layout.kerb + layout.pavement
    patches: list[tuple[list[tuple[float, float, float, float]], Colour]] = [
        ([(-400, 400, -20, far)], grass),
        ([(-edge, edge, -20, far)], pavement),
        ([(-edge, edge, z, z + 0.05) for z in np.arange(2, 40, 2.0).tolist()], shapes.scaled(pavement, 0.85)),
        ([(-kerb - 0.18, kerb + 0.18, -20, far)], shapes.scaled(pavement, 1.2)),
        ([(-kerb, kerb, -20, far)], asphalt),
    ]
    if layout.crossing is not None:
        low, high = layout.crossing - layout.crossing_half, layout.crossing + layout.crossing_half
        patches.append(([(-400, 400, low - layout.pavement, high + layout.pavement)], pavement))
        patches.append(
            ([(-400, 400, low, high), (-kerb, kerb, low - layout.pavement, high + layout.pavement)], asphalt)
        )
    spots = []
    for _ in range(int(rng.integers(0, 7))):
        x, z = rng.uniform(-kerb, kerb - 1), rng.uniform(3, length)
        spots.append((x, x + rng.uniform(0.5, 2.5), z, z + rng.uniform(0.8, 6)))
    patches.append((spots, shapes.scaled(asphalt, rng.uniform(0.8, 1.15))))
    dash, period = rng.uniform(2, 4), rng.uniform(6, 10)
    starts = [z for z in np.arange(-10, length + 120, period).tolist() if not layout.in_crossing(z + dash / 2, 3)]
    for number in range(layout.lanes):
        for x in {number * layout.lane_width, -number * layout.lane_width}:
            patches.append(([(x - 0.07, x + 0.07, z, z + dash) for z in starts], white))
    if layout.parking > 1 and rng.random() < 0.6:
        x = layout.kerb - layout.parking
        patches.append(([(s * x - 0.05, s * x + 0.05, z, z + period * 0.8) for s in (1, -1) for z in starts], white))
    if layout.crossing is not None or rng.random() < 0.25:
        z = rng.uniform(8, 25) if layout.crossing is None else layout.crossing - layout.crossing_half - 3.2
        patches.append(([(x, x + 0.5, z, z + 2.8) for x in np.arange(-kerb + 0.4, kerb - 0.6, 1.0).tolist()], white))
    return scenery.ground_part(patches)


def draw_daylight(rng: np.random.Generator) -> Daylight:
    """Sun, sky and clouds of a day between bright and overcast."""
    azimuth, elevation = rng.uniform(0, 2 * np.pi), rng.uniform(0.45, 1.15)
    to_sun = np.array([np.cos(elevation) * np.sin(azimuth), np.sin(elevation), np.cos(elevation) * np.cos(azimuth)])
    overcast = rng.uniform(0, 1) ** 2
    sun = (
        (1 - 0.85 * overcast)
        * rng.uniform(0.5, 0.75)
        * np.array([1.0, rng.uniform(0.9, 0.98), rng.uniform(0.78, 0.92)])
    )
    ambient = (0.62 + 0.3 * overcast) * np.array([0.95, 0.99, rng.uniform(1.0, 1.1)])
    blue = np.array([rng.uniform(0.25, 0.45), rng.uniform(0.5, 0.65), rng.uniform(0.8, 0.95)])
    grey = np.full(3, rng.uniform(0.7, 0.88))
    zenith = (1 - overcast) * blue + overcast * grey
    horizon = 0.35 * zenith + 0.65 * np.array([0.86, 0.9, 0.93])
    return Daylight(ambient, sun, to_sun, zenith, horizon, float(rng.uniform(0.1, 0.9)))
