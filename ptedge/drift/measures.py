"""What is measured of a frame: of its picture, of parts of it, and of what the model found in each class.

The same code measures the frames that a model was made for and those of a device. Pictures are measured at the size of
the network's input, so that a camera's resolution does not matter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

from ptedge.boxes import box_area
from ptedge.detections import Detections
from ptedge.preprocess import Letterbox

FloatArray = NDArray[np.float64]

LEAST_SCORE = 0.2  # detections below are no matter here: most are noise
ROWS, COLUMNS = 3, 4  # parts of a picture
PICTURE = ("brightness", "contrast", "sharpness", "saturation", "warmth")
PARTS = ("light", "detail")  # of each part, relative to the whole picture
OF_CLASS = ("boxes", "score", "size", "sigma", "entropy")
_DARK = 4.0  # grey levels added before a logarithm: below them there is only noise
_FLAT = 0.5  # the same for the Laplacian


def measure_names(classes: int) -> tuple[str, ...]:
    """Names of all measures: ``brightness``, ``light:7`` of the part 7, ``score:0`` of the class 0.

    Args:
        classes: how many the model has.
    """
    parts = [f"{name}:{part}" for name in PARTS for part in range(ROWS * COLUMNS)]
    return (*PICTURE, *parts, *(f"{name}:{label}" for label in range(classes) for name in OF_CLASS))


def split_name(name: str) -> tuple[str, int | None]:
    """The measure, and the part or label that it is of; ``None`` for the whole picture."""
    kind, _, number = name.partition(":")
    return kind, int(number) if number else None


def measure_frame(
    image: NDArray[np.uint8], found: Detections, input_size: tuple[int, int], classes: int
) -> dict[str, FloatArray]:
    """All measures of a frame.

    Args:
        image: [H, W, 3] uint8 RGB.
        found: what the model found in it, in its pixels, down to :data:`LEAST_SCORE` or lower.
        input_size: (height, width) of the network's input.
        classes: how many the model has.

    Returns:
        Name -> values: one of a picture, one a detection of a class (none where there is none). All are finite.
    """
    height, width = image.shape[:2]
    letterbox = Letterbox(width, height, *input_size)
    rows, columns = letterbox.content
    shown = letterbox.image(image)[:rows, :columns]
    return {**measure_picture(shown), **measure_found(found, width, height, classes)}


def measure_picture(image: NDArray[np.uint8]) -> dict[str, FloatArray]:
    """Measures of a picture, one value each.

    Args:
        image: [H, W, 3] uint8 RGB, at least 16 pixels high and wide.

    Returns:
        ``brightness`` (mean grey, 0 to 255), ``contrast`` (its standard deviation), ``sharpness`` (logarithm of the
        mean absolute Laplacian), ``saturation`` (mean of largest minus smallest channel, 0 to 255), ``warmth`` (red
        minus blue); and of each part ``light`` and ``detail``: logarithm of its brightness and its Laplacian over
        those of the picture.
    """
    grey = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY).astype(np.float32)
    edges = np.abs(cv2.Laplacian(grey, cv2.CV_32F))
    colour = image.astype(np.int16)
    bright, sharp = float(grey.mean()), float(edges.mean())
    values = {
        "brightness": bright,
        "contrast": float(grey.std()),
        "sharpness": float(np.log(sharp + _FLAT)),
        "saturation": float((colour.max(axis=2) - colour.min(axis=2)).mean()),
        "warmth": float(colour[..., 0].mean() - colour[..., 2].mean()),
    }
    for name, picture, mean, least in (("light", grey, bright, _DARK), ("detail", edges, sharp, _FLAT)):
        parts = cv2.resize(picture, (COLUMNS, ROWS), interpolation=cv2.INTER_AREA).ravel()
        relative = np.log((parts.astype(np.float64) + least) / (mean + least))
        values |= {f"{name}:{part}": float(value) for part, value in enumerate(relative)}
    return {name: np.array([value]) for name, value in values.items()}


def measure_found(found: Detections, width: int, height: int, classes: int) -> dict[str, FloatArray]:
    """Measures of the detections in a frame, by class.

    Args:
        found: in pixels of the frame.
        width: of the frame in pixels.
        height: as ``width``.
        classes: how many the model has.

    Returns:
        ``boxes``: how many there are; and one value a detection: ``score``; ``size``, root of the box's area over that
        of the frame; ``sigma``, logarithm of the mean of its sides over the root of the box's area; ``entropy`` in
        nats.
    """
    found = found.select(found.scores >= LEAST_SCORE)
    side = np.sqrt(np.maximum(box_area(found.boxes), 1.0)).astype(np.float64)
    looseness = np.log(np.maximum(found.sigma.mean(axis=1) / side, 1e-6)) if len(found) else np.zeros(0)
    of_each = {
        "score": found.scores.astype(np.float64),
        "size": side / np.sqrt(width * height),
        "sigma": looseness.astype(np.float64),
        "entropy": found.entropy.astype(np.float64),
    }
    values: dict[str, FloatArray] = {}
    for label in range(classes):
        mine = found.labels == label
        values[f"boxes:{label}"] = np.array([float(mine.sum())])
        values |= {f"{name}:{label}": all_of[mine] for name, all_of in of_each.items()}
    return values


def weigh(frames: Sequence[Mapping[str, FloatArray]], name: str) -> tuple[FloatArray, FloatArray]:
    """All values of a measure, so weighted that each frame which has any counts alike.

    Detections of one frame are no independent draws: a frame with twenty cars says little more than one with two.

    Args:
        frames: of :func:`measure_frame`.
        name: of the measure.

    Returns:
        [N] values in ascending order and [N] weights, whose sum is the number of frames that have a value.
    """
    parts = [frame[name] for frame in frames if len(frame[name])]
    values = np.concatenate([np.zeros(0), *parts])
    weights = np.concatenate([np.zeros(0), *(np.full(len(part), 1 / len(part)) for part in parts)])
    order = np.argsort(values, kind="stable")
    return values[order], weights[order]
