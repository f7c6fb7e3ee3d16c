"""Labelled street scenes made by a program: exact boxes and depth, and the same street under other conditions.

Every picture draws from its own generator, seeded by (seed, index), so its content depends on nothing else. The street
does not depend on the domain: domains differ in light, air and camera only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import cv2
import numpy as np
from numpy.typing import NDArray

from .camera import Array, Camera
from .layout import Daylight
from .render import Canvas, Image
from .weather import Domain, add_fog, add_glow, dusk_light, dusk_sky, fog_light, take_picture
from .world import CLASS_NAMES, CLUTTER, Street, Thing, draw_street

__all__ = ["CLASS_NAMES", "DOMAINS", "Domain", "Scene", "render_scene", "render_street", "usual_camera"]

MIN_VISIBILITY = 0.45  # of the silhouette
MIN_HEIGHT = 16.0  # pixels at 192 pixels image height: one cell of a detector's feature map
MIN_PIXELS = 60  # at 320 x 192
MIN_TRANSMISSION = 0.1  # of an object's contrast through fog

_CAMERA = Domain(
    "camera",
    focal=0.72,
    height=1.35,
    blur=1.1,
    noise=13.0,
    gain=(1.08, 0.88, 0.62),
    contrast=0.65,
    gamma=1.4,
    vignette=0.5,
)
# strong enough that a detector that knows only clear scenes loses much of its precision
DOMAINS: dict[str, Domain] = {
    "clear": Domain("clear"),
    "fog": Domain("fog", beta=0.095, noise=3.0),
    "dusk": Domain("dusk", dusk=1.0, noise=7.0, blur=0.6),
    "camera": _CAMERA,
    "fog_camera": replace(_CAMERA, name="fog_camera", beta=0.06),
    # people still see what is there, and so can a detector that has adapted
    "haze": Domain(
        "haze",
        beta=0.05,
        focal=0.85,
        height=1.1,
        blur=0.5,
        noise=4.0,
        gain=(1.1, 0.85, 0.55),
        contrast=0.5,
        gamma=1.6,
        vignette=0.5,
    ),
}


@dataclass(frozen=True)
class Scene:
    """A picture and what is in it.

    Attributes:
        image: RGB uint8 [H, W, 3].
        depth: float32 [H, W] metres along the optical axis; 1000 for the sky.
        instances: int32 [H, W], track id of the object a pixel shows, 0 for background.
        boxes: float32 [N, 4] xyxy pixels, around the visible pixels of each object.
        labels: int64 [N], index into :data:`CLASS_NAMES`.
        track_ids: int64 [N], the same for one object in all frames of a street.
        visibility: float32 [N], share of the silhouette neither covered nor outside the frame.
        ignore: bool [N]; too small, too far covered or too deep in fog to be asked of a detector. Objects without any
            visible pixel are not listed at all.
    """

    image: NDArray[np.uint8]
    depth: NDArray[np.float32]
    instances: NDArray[np.int32]
    boxes: NDArray[np.float32]
    labels: NDArray[np.int64]
    track_ids: NDArray[np.int64]
    visibility: NDArray[np.float32]
    ignore: NDArray[np.bool_]


def render_scene(seed: int, index: int, domain: Domain, width: int = 320, height: int = 192) -> Scene:
    """Draw one picture.

    Args:
        seed: of the whole set, >= 0.
        index: of the picture in the set, >= 0.
        domain: light, air and camera.
        width, height: pixels.
    """
    rng = np.random.default_rng([seed, index])
    street = draw_street(rng)
    return render_street(street, usual_camera(rng, street, domain, width, height), domain, noise_seed=(seed, index, 1))


def usual_camera(rng: np.random.Generator, street: Street, domain: Domain, width: int, height: int) -> Camera:
    """A dashboard camera, mounted a little differently each time."""
    focal, up = rng.uniform(0.8, 1.0), rng.uniform(1.25, 1.7)
    side, pitch, yaw = rng.uniform(-0.6, 0.6), rng.uniform(0.0, 0.07), rng.normal(0, 0.07)
    position = (street.lane + side, up * domain.height, 0.0)
    return Camera(width, height, focal * domain.focal * width, position, pitch, yaw)


def render_street(
    street: Street, camera: Camera, domain: Domain, time: float = 0.0, noise_seed: tuple[int, ...] = (0,)
) -> Scene:
    """Draw a street at a moment.

    Args:
        street: what is there at time 0.
        camera: where it is looked at from.
        domain: light, air and camera.
        time: seconds.
        noise_seed: of the sensor noise.
    """
    canvas = Canvas(camera)
    canvas.draw(street.ground)
    things = [(number, thing.at(time)) for number, thing in enumerate(street.things, start=1)]
    eye = np.array(camera.position)
    daylight = street.daylight
    for thing in (*street.houses, *(thing for _, thing in things)):
        _cast_shadow(canvas, thing, daylight.to_sun)
    for thing in sorted(street.houses, key=lambda house: -_distance(house, eye)):
        _draw_thing(canvas, thing, 0, eye)
    for number, thing in sorted(things, key=lambda entry: -_distance(entry[1], eye)):
        if thing.z - eye[2] > -12:
            _draw_thing(canvas, thing, 0 if thing.label == CLUTTER else number, eye)
    depth = canvas.depth()
    image = _develop(canvas, street, depth, domain, noise_seed)
    return _annotate(image, depth, canvas, things, domain)


def _distance(thing: Thing, eye: Array) -> float:
    return float(np.hypot(thing.x - eye[0], thing.z - eye[2]))


def _draw_thing(canvas: Canvas, thing: Thing, instance: int, eye: Array) -> None:
    position = (thing.x, 0.0, thing.z)
    along = np.array([np.sin(thing.heading), np.cos(thing.heading)])
    ahead = along @ np.array([eye[0] - thing.x, eye[2] - thing.z])  # how far the camera is in front of it
    for part in sorted(thing.shape.parts, key=lambda part: -abs(ahead - part.inside[:, 2].mean())):
        canvas.draw(part, position, thing.heading, instance, thing.lights)


def _cast_shadow(canvas: Canvas, thing: Thing, to_sun: Array) -> None:
    """The ground in the shade of the box around a thing, and a dark rim under it."""
    height = thing.shape.size[1] * 0.9
    base = thing.footprint()
    moved = base - height * to_sun[[0, 2]] / to_sun[1]
    hull = cv2.convexHull(np.concatenate([base, moved]).astype(np.float32))[:, 0].astype(np.float64)
    canvas.shade(np.stack([hull[:, 0], np.zeros(len(hull)), hull[:, 1]], axis=1))


def _develop(
    canvas: Canvas, street: Street, depth: NDArray[np.float32], domain: Domain, noise_seed: tuple[int, ...]
) -> NDArray[np.uint8]:
    daylight, camera = street.daylight, canvas.camera
    ambient, sun = dusk_light(daylight.ambient, daylight.sun, domain.dusk)
    ambient, sun = fog_light(ambient, sun, domain.beta)
    reflected, emitted = canvas.colours(ambient, sun, daylight.to_sun, domain.dusk)
    texture = np.random.default_rng(street.texture_seed).standard_normal((128, 128), dtype=np.float32)
    reflected = _add_texture(reflected, depth, camera, texture)
    sky = _sky(camera, daylight, domain, texture)
    image: Image = reflected + sky * canvas.sky_share[..., None]
    if domain.dusk > 0:
        image = add_glow(image, emitted)
    if domain.beta > 0:
        airlight = dusk_light(np.array(domain.airlight), np.zeros(3), domain.dusk)[0]
        image = add_fog(image, depth, domain.beta, airlight)
    return take_picture(image, domain, np.random.default_rng(noise_seed))


def _add_texture(image: Image, depth: NDArray[np.float32], camera: Camera, texture: NDArray[np.float32]) -> Image:
    """Grain that sticks to surfaces, fading with distance where it would only flicker."""
    world = camera.world_rays(0.25) * depth[..., None] + np.array(camera.position, dtype=np.float32)
    a, b = (world[..., 0] + world[..., 1] * 0.7) * 9, (world[..., 2] + world[..., 1]) * 9
    grain = cv2.remap(texture, a % 128, b % 128, cv2.INTER_LINEAR, borderMode=cv2.BORDER_WRAP)
    blotches = cv2.remap(texture, a * 0.07 % 128, b * 0.07 % 128, cv2.INTER_LINEAR, borderMode=cv2.BORDER_WRAP)
    textured: Image = image * (1 + 0.04 * (grain + blotches) * np.exp(-depth / 25))[..., None]
    return textured


def _sky(camera: Camera, daylight: Daylight, domain: Domain, texture: NDArray[np.float32]) -> Image:
    zenith, horizon = dusk_sky(daylight.zenith, daylight.horizon, domain.dusk)
    half = Camera(camera.width // 2, camera.height // 2, camera.focal / 2, camera.position, camera.pitch, camera.yaw)
    rays = half.world_rays()  # a sky is smooth: half the resolution does
    up = np.clip(rays[..., 1:2] * 2.2, 0, 1)
    sky: Image = (horizon * (1 - up) + zenith * up).astype(np.float32)
    soft = cv2.GaussianBlur(texture, (0, 0), 3)
    flat = np.clip(rays[..., 1], 0.03, None)  # clouds lie on a plane overhead
    a, b = (rays[..., 0] / flat * 6) % 128, (rays[..., 2] / flat * 6) % 128
    cloud = np.clip(cv2.remap(soft, a, b, cv2.INTER_LINEAR, borderMode=cv2.BORDER_WRAP) * 7 - 0.1, 0, 1)
    cover = (cloud * daylight.clouds * np.clip(rays[..., 1] * 5, 0, 1))[..., None]
    white = np.float32(0.95 * (1 - domain.dusk) + 0.25 * domain.dusk)
    clouded = sky * (1 - cover) + white * cover
    return np.asarray(cv2.resize(clouded, (camera.width, camera.height), interpolation=cv2.INTER_LINEAR))


def _annotate(
    image: NDArray[np.uint8],
    depth: NDArray[np.float32],
    canvas: Canvas,
    things: list[tuple[int, Thing]],
    domain: Domain,
) -> Scene:
    instances, shares = canvas.instances(), canvas.visibility()
    height, width = instances.shape
    boxes, labels, tracks, visibility, ignore = [], [], [], [], []
    for number, thing in things:
        mask = (instances == number).astype(np.uint8) if number in shares else None
        pixels = 0 if mask is None else cv2.countNonZero(mask)
        if mask is None or pixels == 0:
            continue
        x, y, w, h = cv2.boundingRect(mask)
        near = float(depth[mask > 0].min())
        boxes.append((x, y, x + w, y + h))
        labels.append(thing.label)
        tracks.append(number)
        visibility.append(shares[number])
        ignore.append(
            shares[number] < MIN_VISIBILITY
            or h < MIN_HEIGHT * height / 192
            or pixels < MIN_PIXELS * (width * height) / (320 * 192)
            or np.exp(-domain.beta * near) < MIN_TRANSMISSION
        )
    return Scene(
        image=image,
        depth=depth,
        instances=instances,
        boxes=np.array(boxes, dtype=np.float32).reshape(-1, 4),
        labels=np.array(labels, dtype=np.int64),
        track_ids=np.array(tracks, dtype=np.int64),
        visibility=np.array(visibility, dtype=np.float32),
        ignore=np.array(ignore, dtype=np.bool_),
    )
