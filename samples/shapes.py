"""Solid things of a street, each made of convex parts: cars, trucks, pedestrians and what stands around them.

A thing's own axes: origin on the ground at its middle, x to its right, y up, z ahead; metres. Every function takes its
own random generator and draws a different individual each time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .camera import Array
from .render import Colour, Part, PartBuilder, join

GLASS: Colour = (0.13, 0.16, 0.20)
RUBBER: Colour = (0.06, 0.06, 0.07)
CHROME: Colour = (0.55, 0.55, 0.57)
HEADLIGHT: Colour = (0.88, 0.88, 0.82)
TAILLIGHT: Colour = (0.58, 0.06, 0.06)
HEADLIGHT_GLOW: Colour = (1.6, 1.45, 1.05)
TAILLIGHT_GLOW: Colour = (1.1, 0.10, 0.06)
SIDES = {"back": 0, "right": 1, "front": 2, "left": 3}  # order of the faces of a box


@dataclass(frozen=True)
class Shape:
    """Parts painted far to near, and the size of the box around them.

    Attributes:
        parts: one, or several one behind the other along the z axis; the nearer is painted later.
        size: width, height, length in metres.
    """

    parts: tuple[Part, ...]
    size: tuple[float, float, float]


def ring(width: float, length: float, y: float, z: float = 0.0) -> Array:
    """Four corners [4, 3] of a level rectangle: back left, back right, front right, front left."""
    x, half = width / 2, length / 2
    return np.array([[-x, y, z - half], [x, y, z - half], [x, y, z + half], [-x, y, z + half]])


def circle(radius: float, y: float, corners: int = 8, x: float = 0.0, z: float = 0.0) -> Array:
    """Corners [K, 3] of a level polygon."""
    angle = np.arange(corners) * (2 * np.pi / corners)
    return np.stack([x + radius * np.sin(angle), np.full(corners, y), z + radius * np.cos(angle)], axis=1)


def solid(rings: list[Array], colour: Colour, top: Colour | None = None, emission: Colour = (0, 0, 0)) -> PartBuilder:
    """A convex solid of level rings from the bottom up, closed on top."""
    levels = np.array(rings)  # [R, K, 3]
    builder = PartBuilder(tuple(levels.mean(axis=(0, 1)).tolist()))
    after = levels[:, np.arange(1, levels.shape[1] + 1) % levels.shape[1]]
    sides = np.stack([levels[:-1], after[:-1], after[1:], levels[1:]], axis=2)  # [R - 1, K, 4, 3]
    builder.sides(sides.reshape(-1, 4, 3), colour, emission)
    builder.face(rings[-1], top or colour, emission)
    return builder


def decals(low: Array, high: Array, side: int, areas: list[tuple[float, float, float, float]]) -> Array:
    """Rectangles [P, 4, 3] on one side of a box given by its lower and upper ring.

    Args:
        low, high: [4, 3] rings.
        side: index of the side, see :data:`SIDES`.
        areas: (u0, u1, v0, v1) in [0, 1]; u along the ring, v upwards.
    """
    after = (side + 1) % 4
    a, b, c, d = low[side], low[after], high[after], high[side]
    rectangles = np.array(areas)  # [P, 4]
    u, v = rectangles[:, [0, 1, 1, 0], None], rectangles[:, [2, 2, 3, 3], None]  # [P, 4, 1]
    points: Array = a + u * (b - a) + v * (d - a) + u * v * (a - b + c - d)
    return points


def paint(rng: np.random.Generator) -> Colour:
    """A car colour: half greys, half hues."""
    if rng.random() < 0.45:
        grey = float(rng.choice([0.08, 0.2, 0.38, 0.6, 0.85])) + rng.uniform(-0.04, 0.06)
        return (grey, grey, grey * rng.uniform(0.97, 1.08))
    return hue(rng.uniform(0, 1), rng.uniform(0.45, 0.9), rng.uniform(0.3, 0.85))


def hue(h: float, saturation: float, value: float) -> Colour:
    """RGB in [0, 1] of a colour given by hue, saturation and value."""
    k = (np.array([5.0, 3.0, 1.0]) + h * 6) % 6
    r, g, b = value - value * saturation * np.clip(np.minimum(k, 4 - k), 0, 1)
    return (float(r), float(g), float(b))


def scaled(colour: Colour, factor: float) -> Colour:
    """A darker or lighter colour."""
    return (colour[0] * factor, colour[1] * factor, colour[2] * factor)


def _wheels(builder: PartBuilder, width: float, radius: float, axles: list[float], hub: Colour) -> None:
    """Discs on both flanks, a little outside them."""
    angle = np.arange(12) * (2 * np.pi / 12)
    y, z = radius + radius * np.sin(angle), radius * np.cos(angle)
    for x in (-width / 2 - 0.01, width / 2 + 0.01):
        for scale, colour in ((1.0, RUBBER), (0.58, hub)):
            discs = [
                np.stack([np.full(12, x), radius + (y - radius) * scale, axle + z * scale], axis=1) for axle in axles
            ]
            builder.face(np.array(discs), colour)


def _axle_block(width: float, radius: float, axle: float) -> Part:
    """What is seen of the tyres from ahead or behind, under the body."""
    block = PartBuilder((0, radius, axle))
    for side in (-1, 1):
        outer, inner = side * width / 2, side * (width / 2 - 0.22)
        for z in (axle - radius, axle + radius):
            block.face(np.array([[outer, 0, z], [inner, 0, z], [inner, 2 * radius, z], [outer, 2 * radius, z]]), RUBBER)
    return block.build()


def _lamps(builder: PartBuilder, low: Array, high: Array, height: tuple[float, float], wide: float) -> None:
    """Head and tail lights, and a number plate at both ends."""
    v0, v1 = height
    pair = [(0.03, 0.03 + wide, v0, v1), (0.97 - wide, 0.97, v0, v1)]
    builder.face(decals(low, high, SIDES["front"], pair), HEADLIGHT, HEADLIGHT_GLOW)
    builder.face(decals(low, high, SIDES["back"], pair), TAILLIGHT, TAILLIGHT_GLOW)
    for end in ("front", "back"):
        builder.face(decals(low, high, SIDES[end], [(0.38, 0.62, v0 - 0.26, v0 - 0.08)]), (0.85, 0.85, 0.78))


def car(rng: np.random.Generator) -> Shape:
    """A saloon, hatchback, estate, SUV or van in a random colour."""
    kind = rng.choice(["saloon", "hatch", "estate", "suv", "van"], p=[0.28, 0.27, 0.15, 0.18, 0.12])
    length, height, waist = {
        "saloon": (4.6, 1.43, 0.90),
        "hatch": (3.95, 1.50, 0.95),
        "estate": (4.6, 1.50, 0.93),
        "suv": (4.5, 1.72, 1.08),
        "van": (4.8, 1.92, 1.10),
    }[str(kind)]
    # cabin: rear end and front end at the waist, rear end and front end of the roof, as shares of the length
    rear, front, roof_rear, roof_front = {
        "saloon": (-0.36, 0.24, -0.20, 0.08),
        "hatch": (-0.47, 0.26, -0.38, 0.10),
        "estate": (-0.48, 0.24, -0.42, 0.08),
        "suv": (-0.47, 0.24, -0.40, 0.09),
        "van": (-0.48, 0.38, -0.47, 0.22),
    }[str(kind)]
    length, height = length * rng.uniform(0.93, 1.07), height * rng.uniform(0.96, 1.05)
    width, radius = rng.uniform(1.66, 1.92), rng.uniform(0.29, 0.36)
    colour = paint(rng)
    low, mid = ring(width * 0.97, length * 0.97, 0.22), ring(width, length, 0.55)
    high = ring(width * 0.94, length * 0.95, waist)
    body = solid([low, mid, high], colour)
    bumper = RUBBER if rng.random() < 0.4 else scaled(colour, 0.7)
    for end in ("front", "back"):
        body.face(decals(low, mid, SIDES[end], [(0.0, 1.0, 0.0, 0.75)]), bumper)
    for flank in ("left", "right"):
        body.face(decals(low, mid, SIDES[flank], [(0.0, 1.0, 0.0, 0.25)]), RUBBER)
        body.face(decals(mid, high, SIDES[flank], [(0.48, 0.487, 0.0, 1.0)]), scaled(colour, 0.55))
    body.face(decals(mid, high, SIDES["front"], [(0.27, 0.73, 0.25, 0.8)]), scaled(RUBBER, 1.4))
    _lamps(body, mid, high, (0.38, 0.85), rng.uniform(0.15, 0.24))
    axles = [length * -0.31, length * 0.31]
    _wheels(body, width, radius, axles, CHROME if rng.random() < 0.7 else scaled(RUBBER, 3))
    base = ring(width * 0.93, (front - rear) * length, waist, (front + rear) / 2 * length)
    roof = ring(width * 0.74, (roof_front - roof_rear) * length, height, (roof_front + roof_rear) / 2 * length)
    roof_colour = RUBBER if rng.random() < 0.12 else colour
    cabin = solid([base, roof], colour, roof_colour)
    for end in ("front", "back"):
        cabin.face(decals(base, roof, SIDES[end], [(0.06, 0.94, 0.1, 0.92)]), GLASS)
    for flank in ("left", "right"):
        panes = [(0.07, 0.48, 0.1, 0.88), (0.52, 0.93, 0.1, 0.88)]
        cabin.face(decals(base, roof, SIDES[flank], panes), scaled(GLASS, 0.85))
    blocks = tuple(_axle_block(width * 0.96, radius, axle) for axle in axles)
    return Shape((join([*blocks, body.build(), cabin.build()]),), (width, height, length))


def truck(rng: np.random.Generator) -> Shape:
    """A lorry: cab ahead, and behind it a box, a tank or a loaded platform."""
    length, width, height = rng.uniform(5.6, 8.8), rng.uniform(2.1, 2.5), rng.uniform(2.6, 3.5)
    cab_length, cab_height, radius = rng.uniform(1.6, 2.1), min(height, rng.uniform(2.2, 2.8)), rng.uniform(0.42, 0.5)
    colour, middle = paint(rng), length / 2 - cab_length / 2
    low, mid = ring(width * 0.95, cab_length, 0.45, middle), ring(width * 0.95, cab_length, 1.25, middle)
    high = ring(width * 0.90, cab_length * 0.8, cab_height, middle - cab_length * 0.1)
    cab = solid([low, mid, high], colour)
    cab.face(decals(mid, high, SIDES["front"], [(0.06, 0.94, 0.12, 0.75)]), GLASS)
    for flank, span in (("right", (0.35, 0.9)), ("left", (0.1, 0.65))):
        cab.face(decals(mid, high, SIDES[flank], [(*span, 0.12, 0.7)]), GLASS)
    cab.face(decals(low, mid, SIDES["front"], [(0.2, 0.8, 0.45, 0.9)]), scaled(RUBBER, 1.5))
    cab.face(decals(low, mid, SIDES["front"], [(0.0, 1.0, 0.0, 0.25)]), scaled(colour, 0.5))
    lamps = [(0.03, 0.18, 0.35, 0.6), (0.82, 0.97, 0.35, 0.6)]
    cab.face(decals(low, mid, SIDES["front"], lamps), HEADLIGHT, HEADLIGHT_GLOW)
    axle = length / 2 - cab_length * 0.55
    _wheels(cab, width * 0.96, radius, [axle], CHROME)
    load_length = length - cab_length - 0.15
    load_middle = -length / 2 + load_length / 2
    chassis_low, chassis_high = (
        ring(width * 0.9, load_length, 0.5, load_middle),
        ring(width, load_length, 0.95, load_middle),
    )
    chassis = solid([chassis_low, chassis_high], (0.16, 0.16, 0.17))
    chassis.face(decals(chassis_low, chassis_high, SIDES["back"], lamps), TAILLIGHT, TAILLIGHT_GLOW)
    axles = [-length / 2 + 1.3] + ([-length / 2 + 2.3] if length > 7 else [])
    _wheels(chassis, width, radius, axles, CHROME)
    load = _load(rng, width, load_length, load_middle, height)
    blocks = tuple(_axle_block(width * 0.96, radius, z) for z in axles)
    front = join([_axle_block(width * 0.96, radius, axle), cab.build()])
    return Shape((front, join([*blocks, chassis.build(), load])), (width, height, length))


def _load(rng: np.random.Generator, width: float, length: float, z: float, height: float) -> Part:
    """What a truck carries, on the chassis at 0.95 m."""
    colour = paint(rng) if rng.random() < 0.6 else (0.82, 0.82, 0.8)
    kind = rng.choice(["box", "tank", "tarpaulin"], p=[0.6, 0.15, 0.25])
    if kind == "tank":
        wide = [(0.6, 0.0), (0.98, 0.25), (0.98, 0.65), (0.6, 0.95)]
        rings = [ring(width * w, length * 0.98, 0.95 + (height - 0.95) * y * 0.9, z) for w, y in wide]
        return solid(rings, colour).build()
    top = 1.0 if kind == "box" else 0.82
    low, high = ring(width, length, 0.95, z), ring(width * top, length * 0.99, height, z)
    load = solid([low, high], colour, scaled(colour, 0.9))
    load.face(
        decals(low, high, SIDES["back"], [(0.06, 0.49, 0.04, 0.94), (0.51, 0.94, 0.04, 0.94)]), scaled(colour, 0.82)
    )
    if kind == "box" and rng.random() < 0.7:
        stripe = hue(rng.random(), 0.7, 0.7)
        v0 = rng.uniform(0.15, 0.55)
        area = (rng.uniform(0.05, 0.3), rng.uniform(0.6, 0.95), v0, v0 + rng.uniform(0.12, 0.3))
        for flank in ("left", "right"):
            load.face(decals(low, high, SIDES[flank], [area]), stripe)
    else:
        ribs = [(u, u + 0.012, 0.0, 1.0) for u in np.linspace(0.12, 0.88, 6)]
        for flank in ("left", "right"):
            load.face(decals(low, high, SIDES[flank], ribs), scaled(colour, 0.75))
    return load.build()


def pedestrian(rng: np.random.Generator, stride: float) -> Shape:
    """A standing or walking person.

    Args:
        rng: draws clothes and build.
        stride: swing of the legs in [-1, 1].
    """
    height = rng.uniform(1.5, 1.92)
    girth = rng.uniform(0.85, 1.2)
    skin = scaled((0.86, 0.66, 0.52), rng.uniform(0.4, 1.05))
    shirt, trousers = hue(rng.random(), rng.uniform(0.1, 0.8), rng.uniform(0.15, 0.9)), scaled(paint(rng), 0.6)
    hair = scaled((0.4, 0.27, 0.16), rng.uniform(0.2, 1.4))
    hip, shoulder, chin = 0.49 * height, 0.82 * height, 0.86 * height
    coat = rng.random() < 0.3
    parts: list[Part] = []
    for side in (-1, 1):
        foot, top = ring(0.13, 0.22, 0.0, 0.30 * stride * side), ring(0.17 * girth, 0.19, hip)
        foot[:, 0] += 0.10 * side * girth
        top[:, 0] += 0.09 * side * girth
        parts.append(solid([foot, top], trousers).build())
    for side in (-1, 1):
        hand, joint = ring(0.09, 0.10, 0.46 * height, -0.26 * stride * side), ring(0.12, 0.14, shoulder)
        hand[:, 0] += 0.27 * side * girth
        joint[:, 0] += 0.23 * side * girth
        parts.append(solid([hand, joint], scaled(shirt, 0.85)).build())
    hem = ring(0.44 * girth, 0.30, (0.32 if coat else 0.46) * height)
    parts.append(solid([hem, ring(0.44 * girth, 0.26, shoulder)], shirt).build())
    if rng.random() < 0.35:
        bag = solid([ring(0.3, 0.16, 0.58 * height, -0.2), ring(0.28, 0.12, 0.8 * height, -0.19)], paint(rng))
        parts.append(bag.build())
    head = [circle(0.07, chin - 0.04), circle(0.105, chin + 0.06), circle(0.105, 0.95 * height)]
    parts.append(solid(head, skin).build())
    parts.append(solid([circle(0.112, 0.945 * height), circle(0.06, height)], hair).build())
    return Shape((join(parts),), (0.62 * girth, height, 0.55))
