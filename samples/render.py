"""A small polygon renderer: every pixel learns which face it shows, and colour, depth and instance follow from that.

Faces are painted far to near into one buffer of face
numbers at twice the image's resolution; one table lookup then gives colours, and the plane of the face gives the exact
depth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import cv2
import numpy as np
from numpy.typing import NDArray

from .camera import NEAR, Array, Camera, clip_near

Image = NDArray[np.float32]  # RGB [H, W, 3]; may exceed 1 where lamps shine
Colour = tuple[float, float, float]

OVERSAMPLING = 2
SKY_DEPTH = 1000.0  # metres; stands for "no surface"
SUBPIXEL_BITS = 4
FAR_OUTSIDE = 20000.0  # pixels; keeps fixed-point coordinates inside 32 bits


@dataclass(frozen=True)
class Part:
    """Faces of convex solids (or of the ground) painted in this order, in the axes of the thing they belong to.

    Attributes:
        vertices: [V, 3] metres.
        layout: (first vertex, polygons, corners a polygon) of each of F faces; polygons of a face share one plane.
        inside: [F, 3] a point behind the face; a face is seen from the other side only.
        colour: [F, 3] albedo in [0, 1].
        emission: [F, 3] light given off in [0, 1] when lights are on.
        ground: True when shadows fall on it.
    """

    vertices: Array
    layout: tuple[tuple[int, int, int], ...]
    inside: Array
    colour: Array
    emission: Array
    ground: bool


@dataclass
class PartBuilder:
    """Collects faces for a :class:`Part`."""

    inside: tuple[float, float, float]
    ground: bool = False
    _vertices: list[Array] = field(default_factory=list)
    _layout: list[tuple[int, int, int]] = field(default_factory=list)
    _colour: list[Colour] = field(default_factory=list)
    _emission: list[Colour] = field(default_factory=list)
    _end: int = 0

    def face(self, polygons: Array, colour: Colour, emission: Colour = (0.0, 0.0, 0.0)) -> None:
        """Add a face: polygons [P, K, 3] (or one, [K, 3]) in one plane, convex each."""
        count = len(polygons) if polygons.ndim == 3 else 1
        self._add(polygons, [(count, polygons.shape[-2])], colour, emission)

    def sides(self, polygons: Array, colour: Colour, emission: Colour = (0.0, 0.0, 0.0)) -> None:
        """Add faces alike: convex polygons [F, K, 3], each in its own plane."""
        self._add(polygons, [(1, polygons.shape[1])] * len(polygons), colour, emission)

    def _add(self, polygons: Array, faces: list[tuple[int, int]], colour: Colour, emission: Colour) -> None:
        self._vertices.append(polygons.reshape(-1, 3))
        for count, corners in faces:
            self._layout.append((self._end, count, corners))
            self._end += count * corners
        self._colour += [colour] * len(faces)
        self._emission += [emission] * len(faces)

    def build(self) -> Part:
        """The finished part."""
        return Part(
            vertices=np.concatenate(self._vertices),
            layout=tuple(self._layout),
            inside=np.tile(np.array(self.inside, dtype=np.float64), (len(self._layout), 1)),
            colour=np.array(self._colour),
            emission=np.array(self._emission),
            ground=self.ground,
        )


def join(parts: Sequence[Part]) -> Part:
    """One part of several, painted first to last."""
    shifts = np.cumsum([0] + [len(part.vertices) for part in parts])
    return Part(
        vertices=np.concatenate([part.vertices for part in parts]),
        layout=tuple(
            (a + int(shift), n, k) for part, shift in zip(parts, shifts, strict=False) for a, n, k in part.layout
        ),
        inside=np.concatenate([part.inside for part in parts]),
        colour=np.concatenate([part.colour for part in parts]),
        emission=np.concatenate([part.emission for part in parts]),
        ground=parts[0].ground,
    )


class Canvas:
    """Paints parts in the order they come; :meth:`depth`, :meth:`instances` and :meth:`colours` read the result."""

    def __init__(self, camera: Camera) -> None:
        self.camera = camera
        self._fine = Camera(
            camera.width * OVERSAMPLING, camera.height * OVERSAMPLING, camera.focal * OVERSAMPLING, camera.position
        )
        shape = (self._fine.height, self._fine.width)
        self._rotation = camera.rotation
        self._faces = np.zeros(shape, dtype=np.uint16)  # 0 is sky
        self._shadow = np.zeros(shape, dtype=np.uint8)
        self._normal: list[Array] = [np.array([[0.0, 0.0, -1.0]])]
        self._plane: list[Array] = [np.array([[0.0, 0.0, 1 / SKY_DEPTH]])]
        self._colour: list[Array] = [np.zeros((1, 3))]
        self._emission: list[Array] = [np.zeros((1, 3))]
        self._ground: list[NDArray[np.bool_]] = [np.zeros(1, dtype=np.bool_)]
        self._instance: list[NDArray[np.int32]] = [np.zeros(1, dtype=np.int32)]
        self._count = 1
        self._outlines: dict[int, list[NDArray[np.int32]]] = {}

    def draw(
        self,
        part: Part,
        position: tuple[float, float, float] = (0, 0, 0),
        heading: float = 0,
        instance: int = 0,
        lights: bool = True,
    ) -> None:
        """Paint the faces of a part that look at the camera over what is there.

        Args:
            part: what to paint.
            position: where its origin stands, metres.
            heading: radians about the upright axis, positive turns its z axis to the right.
            instance: number written to the instance buffer; 0 is background.
            lights: whether its faces give off their light.
        """
        c, s = np.cos(heading), np.sin(heading)
        turn = np.array([[c, 0, -s], [0, 1, 0], [s, 0, c]])
        eye = np.array(self.camera.position)
        world = part.vertices @ turn + position
        seen = (world - eye) @ self._rotation.T
        if not self._in_view(seen):
            return
        start = np.array([entry[0] for entry in part.layout])
        origin = world[start]
        normal = _cross(world[start + 1] - origin, world[start + 2] - origin)
        normal /= np.sqrt((normal * normal).sum(axis=1, keepdims=True)) + 1e-12
        outward = (normal * (origin - (part.inside @ turn + position))).sum(axis=1)
        normal[outward < 0] *= -1
        distance = (normal * (eye - origin)).sum(axis=1)  # [F]
        shown = np.flatnonzero(distance > 1e-6)
        self._normal.append(normal[shown])
        # n . (z ray) = -distance on the plane, so 1 / z = -(n . ray) / distance
        self._plane.append(-(normal[shown] @ self._rotation.T) / distance[shown, None])
        self._colour.append(part.colour[shown])
        self._emission.append(part.emission[shown] * lights)
        self._ground.append(np.full(len(shown), part.ground))
        self._instance.append(np.full(len(shown), instance, dtype=np.int32))
        fixed = self._to_fixed(seen)
        behind = seen[:, 2] < NEAR
        some_behind = bool(behind.any())
        outlines = self._outlines.setdefault(instance, [])
        for number, index in enumerate(shown.tolist(), start=self._count):
            first, polygons, corners = part.layout[index]
            for begin in range(first, first + polygons * corners, corners):
                outline = fixed[begin : begin + corners]
                if some_behind and behind[begin : begin + corners].any():
                    clipped = clip_near(seen[begin : begin + corners])
                    if len(clipped) < 3:
                        continue
                    outline = self._to_fixed(clipped)
                cv2.fillConvexPoly(self._faces, outline, number, lineType=cv2.LINE_8, shift=SUBPIXEL_BITS)
                if instance:
                    outlines.append(outline)
        self._count += len(shown)

    def shade(self, polygon: Array) -> None:
        """Put a convex polygon [K, 3] of the ground, in world axes, into shadow."""
        clipped = clip_near(self.camera.to_camera(polygon))
        if len(clipped) >= 3:
            cv2.fillConvexPoly(self._shadow, self._to_fixed(clipped), 1, lineType=cv2.LINE_8, shift=SUBPIXEL_BITS)

    def _in_view(self, seen: Array) -> bool:
        """Whether camera points [V, 3] may reach into the picture."""
        side, up = self._fine.width / 2 / self._fine.focal, self._fine.height / 2 / self._fine.focal
        x, y, z = seen[:, 0], seen[:, 1], seen[:, 2]
        outside = (z < NEAR).all() or (x > side * z).all() or (x < -side * z).all()
        return not (outside or (y > up * z).all() or (y < -up * z).all())

    def _to_fixed(self, seen: Array) -> NDArray[np.int32]:
        """Camera points [V, 3] as fixed-point pixels [V, 2] of the fine buffer; meaningless where z < NEAR."""
        seen = np.column_stack([seen[:, :2], np.maximum(seen[:, 2], NEAR)])
        # cv2 puts integer coordinates on pixel centres
        pixels = np.clip(self._fine.to_pixels(seen) - 0.5, -FAR_OUTSIDE, FAR_OUTSIDE)
        return np.rint(pixels * (1 << SUBPIXEL_BITS)).astype(np.int32)

    @property
    def sky_share(self) -> NDArray[np.float32]:
        """[H, W] share of each pixel that shows sky."""
        size = (self.camera.width, self.camera.height)
        share: NDArray[np.float32] = cv2.resize(
            (self._faces == 0).astype(np.float32), size, interpolation=cv2.INTER_AREA
        )
        return share

    @property
    def face_numbers(self) -> NDArray[np.uint16]:
        """[H, W] the face each pixel shows, 0 for sky."""
        return self._faces[::OVERSAMPLING, ::OVERSAMPLING]

    def depth(self) -> NDArray[np.float32]:
        """[H, W] distance along the optical axis in metres; :data:`SKY_DEPTH` where there is no surface."""
        planes = np.take(
            np.concatenate(self._plane).astype(np.float32), self.face_numbers, axis=0, mode="clip"
        )  # [H, W, 3]
        rays = self.camera.rays(0.5 / OVERSAMPLING)  # where the fine pixel that was sampled has its centre
        inverse = (planes * rays).sum(axis=2)
        depth: NDArray[np.float32] = np.clip(1 / np.clip(inverse, 1 / SKY_DEPTH, None), NEAR, SKY_DEPTH)
        depth[self.face_numbers == 0] = SKY_DEPTH
        return depth

    def instances(self) -> NDArray[np.int32]:
        """[H, W] number of the object each pixel shows, 0 for background."""
        numbers: NDArray[np.int32] = np.concatenate(self._instance)[self.face_numbers]
        return numbers

    def visibility(self) -> dict[int, float]:
        """Share of each object's silhouette that is seen: neither covered nor outside the frame."""
        fine = np.concatenate(self._instance)[self._faces]
        seen = np.bincount(fine.ravel(), minlength=1 + max(self._outlines, default=0))  # pixels by instance
        return {
            instance: min(1.0, float(seen[instance]) / max(1, _silhouette_area(outlines, fine.shape)))
            for instance, outlines in self._outlines.items()
            if seen[instance] and instance
        }

    def colours(self, ambient: Array, sun: Array, to_sun: Array, lights: float) -> tuple[Image, Image]:
        """Light the faces.

        Args:
            ambient: [3] light from everywhere.
            sun: [3] light of the sun at right angles.
            to_sun: [3] unit vector towards it.
            lights: 0 (off) to 1, factor of emission.

        Returns:
            Reflected and emitted light, float [H, W, 3] each; sky is 0.
        """
        normal, albedo = np.concatenate(self._normal), np.concatenate(self._colour)
        ground = np.concatenate(self._ground)
        up = 0.8 + 0.2 * normal[:, 1:2]  # the sky is brighter than the street
        shaded = albedo * ambient * up
        lit = shaded + albedo * sun * np.clip(normal @ to_sun, 0, None)[:, None]
        dark = np.where(ground[:, None], 0.82 * shaded, lit)
        emitted = np.concatenate(self._emission) * lights
        table = np.concatenate([lit, dark]).astype(np.float32)  # second half: in shadow
        numbers = self._faces.astype(np.int32) + self._shadow * np.int32(len(lit))
        size = (self.camera.width, self.camera.height)
        reflected = cv2.resize(np.take(table, numbers, axis=0, mode="clip"), size, interpolation=cv2.INTER_AREA).astype(
            np.float32
        )
        if lights == 0:
            return reflected, np.zeros_like(reflected)
        glow = np.take(emitted.astype(np.float32), self._faces, axis=0, mode="clip")
        return reflected, cv2.resize(glow, size, interpolation=cv2.INTER_AREA).astype(np.float32)


def _cross(a: Array, b: Array) -> Array:
    """Row-wise cross product [F, 3]; several times faster than numpy's on short arrays."""
    rolled: Array = a[:, [1, 2, 0]] * b[:, [2, 0, 1]] - a[:, [2, 0, 1]] * b[:, [1, 2, 0]]
    return rolled


def _silhouette_area(outlines: list[NDArray[np.int32]], shape: tuple[int, ...]) -> int:
    """Pixels of the union of polygons, also of what lies up to two frames outside."""
    points = np.concatenate(outlines) / (1 << SUBPIXEL_BITS)
    limit = np.array([shape[1], shape[0]])
    low = np.clip(np.floor(points.min(axis=0)) - 1, -2 * limit, 3 * limit).astype(np.int32)
    high = np.clip(np.ceil(points.max(axis=0)) + 2, -2 * limit, 3 * limit).astype(np.int32)
    mask = np.zeros(tuple(np.maximum(high - low, 1)[::-1]), dtype=np.uint8)
    for outline in outlines:
        cv2.fillConvexPoly(mask, outline - (low << SUBPIXEL_BITS), 1, lineType=cv2.LINE_8, shift=SUBPIXEL_BITS)
    return int(cv2.countNonZero(mask))
