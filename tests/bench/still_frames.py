"""Frames of a camera that does not move, made of one labelled picture of a road and the cars of the others.

Run: python tests/bench/still_frames.py DIR/target/val.json OUT [--seed 0] [--frames 480] [--after 160]

OUT gets two folders, ``frames`` and ``val``, for ``tests/bench/drift_delay.py``. The background is one picture without
labels. Cars are cut out where they are labelled and pasted at the height they had, so that their size fits the road.
What varies as on an ordinary day: cars that pass (each frame) and that park (each stretch), a shadow over a part of the
picture (each stretch), a mount that trembles by a pixel, noise. Light by the hour is the other script's.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from ptedge.data import open_dataset
from ptedge.frames.images import read_image

Image = NDArray[np.uint8]
Car = tuple[Image, int]  # and its top

STRETCH = 4  # frames that belong together
BETWEEN_STRETCHES = 1000  # of the numbers in names, from which drift_delay.py begins another


def pictures(data: Path, rng: np.random.Generator) -> tuple[Image, list[Car]]:
    """A background without labels, and every labelled car.

    Args:
        data: labelled DATA.
        rng: chooses the background.
    """
    dataset = open_dataset(data)
    empty, cars = [], []
    for sample in dataset.samples:
        if not len(sample.boxes):
            empty.append(sample.path)
            continue
        image = read_image(sample.path)
        for box in sample.boxes:
            x1, y1, x2, y2 = (round(float(side)) for side in box)
            cars.append((image[y1:y2, x1:x2].copy(), y1))
    return read_image(empty[int(rng.integers(len(empty)))]), [car for car in cars if min(car[0].shape[:2]) >= 6]


def paste(image: Image, car: Car, rng: np.random.Generator) -> None:
    """Put a car somewhere along its own height, in place; it may be cut by the picture's edge."""
    crop, top = car
    left = int(rng.integers(-crop.shape[1] // 2, image.shape[1] - crop.shape[1] // 2))
    first, last = max(0, left), min(image.shape[1], left + crop.shape[1])
    bottom = min(image.shape[0], top + crop.shape[0])
    image[top:bottom, first:last] = crop[: bottom - top, first - left : last - left]


def shadow(shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.float32]:
    """[height, width, 1] factors: a soft, darker part."""
    height, width = shape[:2]
    cover = np.zeros((height, width), np.float32)
    centre = int(rng.uniform(0, width)), int(rng.uniform(0, height))
    axes = int(width * rng.uniform(0.1, 0.4)), int(height * rng.uniform(0.1, 0.4))
    cv2.ellipse(cover, centre, axes, rng.uniform(0, 180), 0, 360, 1.0, -1)
    return 1 - rng.uniform(0, 0.3) * cv2.GaussianBlur(cover, (0, 0), width * 0.04)[..., None]


def trembled(image: Image, rng: np.random.Generator) -> Image:
    """A pixel off at most, and noise."""
    height, width = image.shape[:2]
    by = np.array([[1, 0, rng.uniform(-1, 1)], [0, 1, rng.uniform(-1, 1)]])
    moved = cv2.warpAffine(image, by, (width, height), borderMode=cv2.BORDER_REFLECT_101).astype(np.float32)
    return np.clip(moved + rng.normal(0, 2, moved.shape), 0, 255).astype(np.uint8)


def write_frames(out: Path, count: int, background: Image, cars: list[Car], rng: np.random.Generator) -> None:
    """Stretch after stretch."""
    out.mkdir(parents=True)
    for number in range(count):
        stretch, place = divmod(number, STRETCH)
        if place == 0:
            scene = background.copy()
            for _ in range(int(rng.integers(0, 4))):
                paste(scene, cars[int(rng.integers(len(cars)))], rng)
            scene = (scene * shadow(scene.shape, rng)).astype(np.uint8)
        frame = scene.copy()
        for _ in range(int(rng.poisson(1.0))):
            paste(frame, cars[int(rng.integers(len(cars)))], rng)
        name = f"{stretch * BETWEEN_STRETCHES + place:06}.png"
        cv2.imwrite(str(out / name), cv2.cvtColor(trembled(frame, rng), cv2.COLOR_RGB2BGR))


def main() -> None:
    """Write both folders."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--frames", type=int, default=480)
    parser.add_argument("--after", type=int, default=160, help="frames of the folder that changes are made on")
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    background, cars = pictures(options.data, rng)
    write_frames(options.out / "frames", options.frames, background, cars, rng)
    write_frames(options.out / "val", options.after, background, cars, rng)
    print(f"{len(cars)} cars, {options.frames} and {options.after} frames")


if __name__ == "__main__":
    main()
