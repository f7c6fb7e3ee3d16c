"""What stands along a street without a label: buildings, trees, lamps, signs, bins."""

from __future__ import annotations

import numpy as np

from .render import Part, PartBuilder, join
from .shapes import SIDES, Shape, circle, decals, hue, paint, ring, scaled, solid


def building(rng: np.random.Generator, width: float, height: float, length: float) -> Shape:
    """A house with rows of windows on every side; some are lit when lights are on."""
    wall = (
        hue(rng.uniform(0.02, 0.14), rng.uniform(0.1, 0.5), rng.uniform(0.4, 0.85))
        if rng.random() < 0.7
        else hue(rng.random(), rng.uniform(0.0, 0.2), rng.uniform(0.35, 0.8))
    )
    low, high = ring(width, length, 0.0), ring(width, length, height)
    house = solid([low, high], wall, scaled(wall, 0.6))
    glass = hue(0.58, rng.uniform(0.1, 0.4), rng.uniform(0.18, 0.4))
    floor, pitch = rng.uniform(2.8, 3.6), rng.uniform(2.2, 4.2)
    fill_u, fill_v = rng.uniform(0.35, 0.75), rng.uniform(0.4, 0.65)
    shop = rng.random() < 0.5
    for side, span in ((SIDES["back"], width), (SIDES["left"], length), (SIDES["right"], length)):
        columns, rows = max(1, int(span / pitch)), max(1, int(height / floor))
        first = 1 if shop else 0
        areas = [
            (
                (c + 0.5 - fill_u / 2) / columns,
                (c + 0.5 + fill_u / 2) / columns,
                (r + 0.25) / rows,
                (r + 0.25 + fill_v) / rows,
            )
            for r in range(first, rows)
            for c in range(columns)
        ]
        lit = rng.random(len(areas)) < 0.3
        for on in (False, True):
            chosen = [area for area, state in zip(areas, lit, strict=True) if bool(state) == on]
            if chosen:
                glow = (0.85, 0.62, 0.3) if on else (0.0, 0.0, 0.0)
                house.face(decals(low, high, side, chosen), glass, glow)
        if shop:
            fronts = [((c + 0.08) / columns, (c + 0.92) / columns, 0.1 / rows, 0.72 / rows) for c in range(columns)]
            house.face(decals(low, high, side, fronts), scaled(glass, 0.8), (0.55, 0.45, 0.28))
            house.face(decals(low, high, side, [(0.0, 1.0, 0.76 / rows, 0.98 / rows)]), hue(rng.random(), 0.6, 0.55))
    return Shape((house.build(),), (width, height, length))


def tree(rng: np.random.Generator) -> Shape:
    """A trunk and a crown of several lumps."""
    height, spread = rng.uniform(4.0, 8.5), rng.uniform(1.1, 2.2)
    leaf = hue(rng.uniform(0.2, 0.36), rng.uniform(0.35, 0.7), rng.uniform(0.25, 0.5))
    base = height * rng.uniform(0.3, 0.42)
    trunk = solid([circle(0.17, 0, 6), circle(0.12, base + 0.4, 6)], (0.27, 0.2, 0.14))
    parts: list[Part] = [trunk.build()]
    for share, radius, x, z in ((0.0, 0.8, -0.35, 0.2), (0.1, 0.8, 0.4, -0.2), (0.3, 0.75, 0.0, 0.0)):
        y = base + share * (height - base)
        top = min(height, y + (height - base) * 0.7)
        r = spread * radius * rng.uniform(0.85, 1.15)
        levels = ((0.55, 0.0), (1.0, 0.35), (0.85, 0.7), (0.35, 1.0))
        rings = [circle(r * k, y + (top - y) * v, 7, x * spread, z * spread) for k, v in levels]
        parts.append(solid(rings, scaled(leaf, rng.uniform(0.85, 1.1))).build())
    return Shape((join(parts),), (spread, height, spread))


def lamp_post(rng: np.random.Generator) -> Shape:
    """A pole with an arm over the road (towards its own left) and a lamp."""
    height, arm = rng.uniform(5.5, 8.0), rng.uniform(1.0, 2.0)
    grey = scaled((0.4, 0.42, 0.42), rng.uniform(0.5, 1.2))
    pole = solid([circle(0.1, 0, 6), circle(0.06, height, 6)], grey)
    boom_low, boom_high = ring(arm, 0.08, height - 0.1), ring(arm, 0.08, height)
    lamp_low, lamp_high = ring(0.6, 0.25, height - 0.18), ring(0.5, 0.2, height - 0.02)
    for corners in (boom_low, boom_high):
        corners[:, 0] -= arm / 2
    for corners in (lamp_low, lamp_high):
        corners[:, 0] -= arm
    boom = solid([boom_low, boom_high], grey)
    lamp = solid([lamp_low, lamp_high], (0.8, 0.8, 0.75), emission=(1.5, 1.2, 0.7))
    return Shape((join([pole.build(), boom.build(), lamp.build()]),), (0.2, height, 0.2))


def street_sign(rng: np.random.Generator) -> Shape:
    """A plate on a thin pole."""
    height, size = rng.uniform(2.2, 3.0), rng.uniform(0.5, 0.8)
    pole = solid([circle(0.04, 0, 5), circle(0.04, height, 5)], (0.5, 0.5, 0.5))
    low, high = ring(size, 0.05, height - size), ring(size, 0.05, height)
    colour = [(0.75, 0.1, 0.1), (0.1, 0.25, 0.65), (0.8, 0.65, 0.1)][int(rng.integers(3))]
    plate = solid([low, high], (0.5, 0.5, 0.5))
    for side in (SIDES["front"], SIDES["back"]):
        plate.face(decals(low, high, side, [(0.0, 1.0, 0.0, 1.0)]), colour)
        plate.face(decals(low, high, side, [(0.2, 0.8, 0.3, 0.7)]), (0.9, 0.9, 0.9))
    return Shape((join([pole.build(), plate.build()]),), (size, height, 0.1))


def street_box(rng: np.random.Generator) -> Shape:
    """A bin, a switch cabinet, a skip or a kiosk: box-like things that carry no label."""
    width, height, length = [(0.6, 1.1, 0.6), (1.2, 1.3, 0.4), (1.6, 1.2, 2.6), (2.0, 2.4, 2.0)][
        int(rng.choice(4, p=[0.45, 0.25, 0.15, 0.15]))
    ]
    colour = scaled(paint(rng), 0.8)
    scale = rng.uniform(0.85, 1.15)
    low, high = (
        ring(width * scale * 0.9, length * scale * 0.9, 0.0),
        ring(width * scale, length * scale, height * scale),
    )
    box = solid([low, high], colour, scaled(colour, 0.6))
    for side in SIDES.values():
        box.face(decals(low, high, side, [(0.1, 0.9, 0.55, 0.62)]), scaled(colour, 0.6))
    return Shape((box.build(),), (width * scale, height * scale, length * scale))


def ground_part(patches: list[tuple[list[tuple[float, float, float, float]], tuple[float, float, float]]]) -> Part:
    """Flat rectangles on the ground, later ones on top.

    Args:
        patches: pairs of rectangles (x0, x1, z0, z1) in metres and their colour.
    """
    builder = PartBuilder((0.0, -1.0, 0.0), ground=True)
    for areas, colour in patches:
        if areas:
            corners = [[(x0, 0.0, z0), (x1, 0.0, z0), (x1, 0.0, z1), (x0, 0.0, z1)] for x0, x1, z0, z1 in areas]
            builder.face(np.array(corners), colour)
    return builder.build()
