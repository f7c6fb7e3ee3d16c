"""Draws a street: its layout, who drives, parks and walks there, what stands beside it, and the daylight."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from . import scenery, shapes
from .camera import Array
from .layout import Daylight, Layout, draw_daylight, draw_ground
from .render import Part
from .shapes import Shape

CLASS_NAMES = ("car", "truck", "pedestrian")
CAR, TRUCK, PEDESTRIAN, CLUTTER = 0, 1, 2, -1


@dataclass(frozen=True)
class Thing:
    """Something that stands or moves on the ground.

    Attributes:
        shape: its parts and size.
        x, z: metres, at time 0.
        heading: radians, 0 looks along the street.
        label: index into :data:`CLASS_NAMES`, or :data:`CLUTTER`.
        speed: metres a second along its heading.
        walk_seed: for pedestrians, seed of the individual, so that a step later it is the same one.
        lights: whether its lamps are on at dusk.
    """

    shape: Shape
    x: float
    z: float
    heading: float
    label: int
    speed: float = 0.0
    walk_seed: int | None = None
    lights: bool = True

    def at(self, time: float) -> Thing:
        """The same thing ``time`` seconds later."""
        travel = self.speed * time
        moved = replace(self, x=self.x + travel * np.sin(self.heading), z=self.z + travel * np.cos(self.heading))
        if self.walk_seed is None or self.speed == 0:
            return moved
        # a stride of about 1.5 m, two swings of the legs
        stride = float(np.sin(2 * np.pi * travel / 1.5 + self.walk_seed % 7))
        return replace(moved, shape=shapes.pedestrian(np.random.default_rng(self.walk_seed), stride))

    def footprint(self, margin: float = 0.0) -> Array:
        """Corners [4, 2] of the ground it covers, (x, z) in metres."""
        width, _, length = self.shape.size
        x, z = width / 2 + margin, length / 2 + margin
        corners = np.array([[-x, -z], [x, -z], [x, z], [-x, z]])
        c, s = np.cos(self.heading), np.sin(self.heading)
        turned: Array = corners @ np.array([[c, -s], [s, c]]) + (self.x, self.z)
        return turned


@dataclass(frozen=True)
class Street:
    """A whole scene.

    Attributes:
        ground: road, markings, pavements.
        houses: buildings, painted before everything else.
        things: labelled objects first to last; their position + 1 is the instance number. Clutter among them.
        daylight: sun and sky.
        lane: x of the camera's lane in metres.
        texture_seed: of the surface texture and clouds.
    """

    ground: Part
    houses: tuple[Thing, ...]
    things: tuple[Thing, ...]
    daylight: Daylight
    lane: float
    texture_seed: int


def draw_street(rng: np.random.Generator, moving: bool = False, length: float = 42.0) -> Street:
    """Draw a street at random.

    Args:
        rng: source of all randomness.
        moving: give things speeds and leave out what would collide.
        length: metres along which objects stand.
    """
    crossing = rng.uniform(18, 45) if rng.random() < 0.35 else None
    layout = Layout(
        lanes=int(rng.integers(1, 3)),
        lane_width=rng.uniform(3.0, 3.6),
        parking=2.3 if rng.random() < 0.7 else 0.3,
        pavement=rng.uniform(2.2, 4.5),
        crossing=crossing,
        crossing_half=rng.uniform(4, 6.5),
    )
    lane = (int(rng.integers(layout.lanes)) + 0.5) * layout.lane_width
    placed = _Placer(rng)
    _traffic(rng, layout, placed, moving, length, lane)
    _people(rng, layout, placed, moving, length)
    _furniture(rng, layout, placed, length)
    return Street(
        ground=draw_ground(rng, layout, length),
        houses=_houses(rng, layout, length),
        things=tuple(placed.things),
        daylight=draw_daylight(rng),
        lane=lane,
        texture_seed=int(rng.integers(1 << 31)),
    )


class _Placer:
    """Keeps things from standing inside each other."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.things: list[Thing] = []
        self._bounds: list[Array] = []

    def put(self, thing: Thing, margin: float = 0.25) -> bool:
        """Add it if its place is free."""
        corners = thing.footprint(margin)
        low, high = corners.min(axis=0), corners.max(axis=0)
        for other in self._bounds:
            if (low < other[1]).all() and (high > other[0]).all():
                return False
        self.things.append(thing)
        self._bounds.append(np.stack([low, high]))
        return True


def _vehicle(
    rng: np.random.Generator, x: float, z: float, heading: float, trucks: float, speed: float = 0.0, lights: bool = True
) -> Thing:
    label = TRUCK if rng.random() < trucks else CAR
    shape = shapes.truck(rng) if label == TRUCK else shapes.car(rng)
    return Thing(shape, x, z + shape.size[2] / 2, heading, label, speed, lights=lights)


def _traffic(
    rng: np.random.Generator, layout: Layout, placed: _Placer, moving: bool, length: float, own: float
) -> None:
    """Vehicles on the lanes, at the kerb and on a crossing street."""
    for side in (1, -1):
        for number in range(layout.lanes):
            x = side * (number + 0.5) * layout.lane_width
            forward = side > 0
            # in a lane all drive alike, so nobody runs into anybody; on the camera's lane, as fast as the camera
            pace = 8.0 if abs(x - own) < 0.1 else rng.uniform(6.5, 9.5)
            speed = pace if moving else 0.0
            z = rng.uniform(5, 20)
            reach = length if forward or not moving else 2 * length
            while z < reach:
                jitter = 0.0 if moving else rng.normal(0, 0.06)
                if not moving and rng.random() < 0.15:
                    jitter += rng.choice([-1, 1]) * rng.uniform(0.25, 1.3)  # turning
                heading = jitter if forward else np.pi + jitter
                offset = rng.uniform(-0.3, 0.3)
                placed.put(_vehicle(rng, x + offset, z, heading, 0.25, speed))
                z += rng.uniform(12, 32)
        if layout.parking > 1:
            x, z = side * (layout.kerb - 1.2), rng.uniform(2, 8)
            while z < length * 0.75:
                if not layout.in_crossing(z + 2, 4) and rng.random() < 0.45:
                    heading = rng.normal(0, 0.04) + (np.pi if rng.random() < (0.15 if side > 0 else 0.85) else 0)
                    placed.put(_vehicle(rng, x, z, heading, 0.12, lights=rng.random() < 0.2))
                z += rng.uniform(6.0, 11)
    if layout.crossing is not None:
        for _ in range(int(rng.integers(1, 4))):
            across = rng.choice([-1, 1])
            inside = layout.kerb + 3 if moving else -layout.kerb
            x = across * rng.uniform(inside, layout.kerb + 12)
            z = layout.crossing + across * rng.uniform(1.2, 3.0) - 2
            placed.put(_vehicle(rng, x, z, -across * np.pi / 2 + rng.normal(0, 0.1), 0.25))


def _people(rng: np.random.Generator, layout: Layout, placed: _Placer, moving: bool, length: float) -> None:
    """Walkers on the pavements, alone or in groups, and some on the road."""
    for side in (1, -1):
        for _ in range(rng.poisson(2.6 * length / 42)):
            z = rng.uniform(5, max(26, length * 0.7) if moving else 24)
            along = rng.random() < 0.8 or moving
            way = 0.0 if rng.random() < 0.5 else np.pi
            heading = (
                way + (rng.normal(0, 0.05) if moving else rng.normal(0, 0.3)) if along else rng.uniform(0, 2 * np.pi)
            )
            for _ in range(1 + int(rng.random() < 0.25)):
                x = side * (layout.kerb + rng.uniform(0.5, max(0.8, layout.pavement - 0.3)))
                _walker(rng, placed, x, z + rng.uniform(-1.5, 1.5), heading, rng.uniform(0.9, 1.6) if moving else 0.0)
    if not moving:
        for _ in range(rng.poisson(1.2)):
            x, z = rng.uniform(-layout.kerb, layout.kerb), rng.uniform(7, 24)
            _walker(rng, placed, x, z, rng.choice([-1, 1]) * np.pi / 2 + rng.normal(0, 0.3), 0.0)


def _walker(rng: np.random.Generator, placed: _Placer, x: float, z: float, heading: float, speed: float) -> None:
    seed = int(rng.integers(1 << 31))
    stride = float(rng.uniform(-1, 1)) * float(rng.random() < 0.8)
    shape = shapes.pedestrian(np.random.default_rng(seed), stride)
    placed.put(Thing(shape, x, z, heading, PEDESTRIAN, speed, seed), 0.05)


def _furniture(rng: np.random.Generator, layout: Layout, placed: _Placer, length: float) -> None:
    """Trees, lamps, signs and boxes along the kerb."""
    for side in (1, -1):
        z, gap, leafy = rng.uniform(3, 14), rng.uniform(9, 22), rng.random()
        while z < length * 1.3:
            draw = rng.random()
            towards = 0.0 if side > 0 else np.pi  # lamp arms reach over the road
            if draw < 0.55 * leafy:
                shape = scenery.tree(rng)
            elif draw < 0.75:
                shape = scenery.lamp_post(rng)
            elif draw < 0.87:
                shape, towards = scenery.street_sign(rng), rng.normal(0, 0.1)
            else:
                shape, towards = scenery.street_box(rng), rng.normal(0, 0.15)
            reach = 0.4 + shape.size[0] / 2 if shape.size[1] < 2.6 else 0.5
            if not layout.in_crossing(z, 1.5):
                placed.put(Thing(shape, side * (layout.kerb + reach), z, towards, CLUTTER), 0.02)
            z += gap * rng.uniform(0.6, 1.3)


def _houses(rng: np.random.Generator, layout: Layout, length: float) -> tuple[Thing, ...]:
    """Two rows of houses with gaps, and a skyline behind."""
    houses = []
    tall = rng.uniform(6, 22)
    for side in (1, -1):
        z, setback = rng.uniform(-8, 0), layout.kerb + layout.pavement
        while z < length + 80:
            span = rng.uniform(8, 24)
            middle = z + span / 2
            if layout.in_crossing(middle, span / 2 + layout.pavement * 0.7):
                z += 3
                continue
            if rng.random() < 0.9:
                width, height = rng.uniform(9, 14), tall * rng.uniform(0.6, 1.35)
                x = side * (setback + rng.choice([0.0, 0.0, 2.5]) + width / 2)
                houses.append(Thing(scenery.building(rng, width, height, span), x, middle, 0.0, CLUTTER))
            z += span + (rng.uniform(2, 10) if rng.random() < 0.25 else 0.05)
    return tuple(houses)
