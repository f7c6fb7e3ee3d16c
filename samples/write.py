"""Generated scenes as files: a COCO data set, plain frames, or a video with its tracks."""

from __future__ import annotations

import os
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from ptedge.data.coco import write_coco as write_coco_json
from ptedge.data.dataset import Dataset, Sample
from ptedge.errors import OutputError
from ptedge.files import atomic_write, make_output_folder, write_json

from .camera import Camera
from .scenes import CLASS_NAMES, Domain, Scene, render_scene, render_street
from .world import draw_street

ANNOTATIONS = "annotations.json"
JPEG_QUALITY = 95
EGO_SPEED = 8.0  # metres a second; that of the camera's own lane in draw_street


def write_image(path: Path, image: NDArray[np.uint8]) -> None:
    """Write RGB pixels; the suffix of the name decides between JPEG and PNG.

    Raises:
        OutputError: the file cannot be written.
    """
    options = [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY] if path.suffix == ".jpg" else []
    done, encoded = cv2.imencode(path.suffix, image[..., ::-1], options)
    if not done:
        raise OutputError(f"cannot write {path}: OpenCV does not encode {path.suffix}. Use .jpg or .png")
    with atomic_write(path) as file:
        file.write(encoded.tobytes())


def write_coco(
    folder: Path,
    domain: Domain,
    count: int,
    seed: int,
    labelled: bool = True,
    width: int = 320,
    height: int = 192,
    suffix: str = ".jpg",
    first: int = 0,
) -> Dataset:
    """Write ``folder/images/000000.jpg ...`` and ``folder/annotations.json``.

    Args:
        folder: made when missing.
        domain: light, air and camera.
        count: images.
        seed: of the set; two sets with one seed show the same streets.
        labelled: False writes the images only.
        width, height: pixels.
        suffix: ``.jpg`` or ``.png``.
        first: index of the first picture, to continue a set.

    Returns:
        What was written; boxes that are too small or too far hidden are marked ``ignore``.

    Raises:
        OutputError: the folder cannot be written.
    """
    images = make_output_folder(Path(folder) / "images")
    samples = []
    for index in range(first, first + count):
        scene = render_scene(seed, index, domain, width, height)
        path = images / f"{index:06d}{suffix}"
        write_image(path, scene.image)
        samples.append(_sample(scene, path, index))
    dataset = Dataset(Path(folder), "coco", CLASS_NAMES, tuple(samples))
    if labelled:
        description = f"generated street scenes, domain {domain.name}, seed {seed}"
        write_coco_json(dataset, Path(folder) / ANNOTATIONS, description=description, licence="Apache-2.0")
    return dataset


def write_frames(
    folder: Path,
    domain: Domain,
    count: int,
    seed: int,
    width: int = 320,
    height: int = 192,
    suffix: str = ".jpg",
    first: int = 0,
) -> list[Path]:
    """Write images without labels, straight into ``folder``.

    Args:
        folder, domain, count, seed, width, height, suffix, first: as :func:`write_coco`.

    Returns:
        The files, in order.

    Raises:
        OutputError: the folder cannot be written.
    """
    target = make_output_folder(Path(folder))
    paths = []
    for index in range(first, first + count):
        path = target / f"{index:06d}{suffix}"
        write_image(path, render_scene(seed, index, domain, width, height).image)
        paths.append(path)
    return paths


def _sample(scene: Scene, path: Path, index: int) -> Sample:
    height, width = scene.image.shape[:2]
    return Sample(path, width, height, scene.boxes, scene.labels, scene.ignore, index)


def video_scenes(
    domain: Domain, frames: int, fps: float, seed: int, width: int = 320, height: int = 192
) -> list[Scene]:
    """Frames of a drive down one street: things keep their identity, size and pace.

    Args:
        domain: light, air and camera.
        frames: how many.
        fps: frames a second.
        seed: of the street.
        width, height: pixels.
    """
    rng = np.random.default_rng([seed, 0])
    duration = frames / fps
    street = draw_street(rng, moving=True, length=60 + EGO_SPEED * duration)
    focal, up, pitch = rng.uniform(0.8, 1.0), rng.uniform(1.25, 1.7), rng.uniform(0.0, 0.05)
    scenes = []
    for number in range(frames):
        time = number / fps
        # a car nods and drifts a little
        nod, drift = 0.004 * np.sin(2 * np.pi * 1.1 * time), 0.15 * np.sin(2 * np.pi * 0.2 * time)
        position = (street.lane + drift, up * domain.height, EGO_SPEED * time)
        camera = Camera(width, height, focal * domain.focal * width, position, pitch + nod, 0.01 * drift)
        scenes.append(render_street(street, camera, domain, time, (seed, number, 1)))
    return scenes


def render_video(
    path: Path, domain: Domain, frames: int = 100, fps: float = 10.0, seed: int = 0, width: int = 320, height: int = 192
) -> Path:
    """Write a short video and, beside it, ``NAME.tracks.json``.

    Args:
        path: ``.mp4`` file.
        domain, frames, fps, seed, width, height: as :func:`video_scenes`.

    Returns:
        The tracks' file: ``{"fps", "width", "height", "classes", "tracks": [{"frame", "track", "class", "box",
        "visibility", "ignore"}]}``.

    Raises:
        OutputError: the video cannot be written.
    """
    path = Path(path)
    make_output_folder(path.parent)
    # cv2 picks the container by suffix, so the temporary name keeps it
    temporary = path.with_name(f".{path.stem}.{os.getpid()}.tmp{path.suffix}")
    writer = cv2.VideoWriter(str(temporary), cv2.VideoWriter.fourcc(*"mp4v"), fps, (width, height))
    if not writer.isOpened():
        raise OutputError(f"cannot write {path}: this OpenCV writes no mp4v video. Write frames instead")
    tracks = []
    try:
        for number, scene in enumerate(video_scenes(domain, frames, fps, seed, width, height)):
            writer.write(np.ascontiguousarray(scene.image[..., ::-1]))
            tracks.extend(_track_lines(scene, number))
        writer.release()
        os.replace(temporary, path)
    finally:
        writer.release()
        temporary.unlink(missing_ok=True)
    file = path.with_suffix(".tracks.json")
    write_json(file, {"fps": fps, "width": width, "height": height, "classes": CLASS_NAMES, "tracks": tracks})
    return file


def _track_lines(scene: Scene, frame: int) -> list[dict[str, object]]:
    return [
        {
            "frame": frame,
            "track": int(track),
            "class": CLASS_NAMES[label],
            "box": box.tolist(),
            "visibility": round(float(visibility), 3),
            "ignore": bool(ignore),
        }
        for track, label, box, visibility, ignore in zip(
            scene.track_ids, scene.labels, scene.boxes, scene.visibility, scene.ignore, strict=True
        )
    ]
