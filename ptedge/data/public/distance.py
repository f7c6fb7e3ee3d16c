"""Metres from the camera to what each pixel shows, from Cityscapes' disparities or from depths."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from ptedge.data.parsing.documents import load_json
from ptedge.data.parsing.values import number
from ptedge.errors import InputError
from ptedge.files import open_regular


@dataclass(frozen=True)
class Camera:
    """What a camera file of Cityscapes says.

    Attributes:
        baseline: metres between the two cameras.
        fx: focal length in pixels, horizontal.
        fy: vertical.
        u0: column of the optical axis.
        v0: row of the optical axis.
    """

    baseline: float
    fx: float
    fy: float
    u0: float
    v0: float


def read_camera(path: Path) -> Camera:
    """Read ``<name>_camera.json``.

    Raises:
        InputError: unreadable, or a value is missing or no positive number.
    """
    document = load_json(path)
    values = []
    for group, key in (("extrinsic", "baseline"), *(("intrinsic", key) for key in ("fx", "fy", "u0", "v0"))):
        table = document.get(group) if isinstance(document, dict) else None
        value = number(table.get(key)) if isinstance(table, dict) else None
        if value is None or value <= 0:
            raise InputError(f"{path} has no {group}.{key} above 0, as camera files of Cityscapes have")
        values.append(value)
    return Camera(*values)


def disparity_to_distance(raw: NDArray[np.uint16], camera: Camera) -> NDArray[np.float64]:
    """Distances along the rays.

    A disparity is (p - 1) / 256 pixels where the file holds p, and missing where p is 0; depth is fx * baseline /
    disparity, infinite for a disparity of 0.

    Args:
        raw: [H, W] as in the file.
        camera: of this image.

    Returns:
        [H, W] metres; NaN where missing.
    """
    known = raw > 0
    disparity = (raw.astype(np.float64) - 1) / 256
    depth = np.full(raw.shape, np.inf)
    np.divide(camera.fx * camera.baseline, disparity, out=depth, where=disparity > 0)
    depth[~known] = np.nan
    rows, columns = np.arange(raw.shape[0])[:, None], np.arange(raw.shape[1])
    slope = ((columns - camera.u0) / camera.fx) ** 2 + ((rows - camera.v0) / camera.fy) ** 2
    distance: NDArray[np.float64] = depth * np.sqrt(1 + slope)
    return distance


def fill_missing(distance: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """Give each missing pixel the distance of the nearest pixel in the image that has one.

    Args:
        distance: [H, W] metres; NaN where missing, not everywhere.

    Returns:
        The distances, and the share of pixels that were missing.

    Raises:
        ValueError: nothing is known.
    """
    missing = np.isnan(distance)
    if missing.all():
        raise ValueError("no pixel has a distance")
    if not missing.any():
        return distance, 0.0
    _, nearest = cv2.distanceTransformWithLabels(
        missing.astype(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_5, labelType=cv2.DIST_LABEL_PIXEL
    )
    by_label = np.zeros(int(nearest.max()) + 1)
    by_label[nearest[~missing]] = distance[~missing]
    return by_label[nearest], float(missing.mean())


def read_sixteen_bits(path: Path, shape: tuple[int, ...]) -> NDArray[np.uint16]:
    """A 16-bit grey image.

    Args:
        path: PNG file.
        shape: (height, width) it must have.

    Raises:
        InputError: unreadable, or of another kind or size.
    """
    try:
        with open_regular(path) as file:
            content = np.frombuffer(file.read(), np.uint8)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    values = cv2.imdecode(content, cv2.IMREAD_UNCHANGED) if len(content) else None
    if values is None or values.dtype != np.uint16 or values.ndim != 2:
        raise InputError(f"{path} is no grey image of 16 bits, as disparities and depths are")
    if values.shape != shape:
        raise InputError(f"{path} is {values.shape[1]} x {values.shape[0]}, its image {shape[1]} x {shape[0]}")
    return np.asarray(values, np.uint16)


def read_depth(path: Path, unit: float, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Depths of a 16-bit PNG, or of an array file (``.npy``) in metres; taken as distances along the rays.

    Args:
        path: the file.
        unit: metres a step of a PNG, where 0 is missing; in an array NaN, 0 and less are missing.
        shape: (height, width) it must have.

    Returns:
        [H, W] metres; NaN where missing.

    Raises:
        InputError: unreadable, or of another kind or size.
    """
    if path.suffix.lower() != ".npy":
        raw = read_sixteen_bits(path, shape)
        return np.where(raw > 0, raw * unit, np.nan)
    try:
        with open_regular(path) as file:
            values = np.load(file, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise InputError(f"{path} cannot be read: {error}") from None
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "fiu" or values.shape != shape:
        raise InputError(f"{path} is no array of numbers of {shape[0]} x {shape[1]}, the height and width of its image")
    return np.where(values > 0, values.astype(np.float64), np.nan)
