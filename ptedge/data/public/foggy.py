"""Folders of foggy images: Cityscapes from its disparities, or any images from depths."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from ptedge.data.locate import files_below, is_picture
from ptedge.data.public.distance import disparity_to_distance, fill_missing, read_camera, read_depth, read_sixteen_bits
from ptedge.data.public.fog import add_fog, atmospheric_light, transmittance
from ptedge.errors import InputError
from ptedge.files import atomic_write
from ptedge.frames.images import read_image

WRITTEN = "images written"
THERE = "images that were there already (left as they are)"
FILLED = "images with pixels without a distance (that of the nearest pixel taken)"
MOSTLY_FILLED = "images of which more than half of the pixels had none"

_CLEAR = "_leftImg8bit.png"

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class FogOptions:
    """How foggy.

    Attributes:
        betas: attenuation coefficients in 1/m, an image for each.
        light: atmospheric light, red, green and blue from 0 to 255; ``None`` estimates it for each image.
    """

    betas: tuple[float, ...] = (0.02,)
    light: tuple[float, float, float] | None = None


def fog_cityscapes(
    root: Path, out: Path, splits: Sequence[str], options: FogOptions, progress: Progress | None = None
) -> dict[str, int]:
    """Write ``leftImg8bit_foggy/<split>/<city>/*_leftImg8bit_foggy_beta_0.02.png``.

    Args:
        root: folder with ``leftImg8bit``, ``disparity`` and ``camera``.
        out: folder that gets ``leftImg8bit_foggy``; may be ``root``.
        splits: parts; empty for all there are.
        options: how foggy.
        progress: called with images done and in all.

    Returns:
        Counts by what happened.

    Raises:
        InputError: no images, or one without disparity or camera.
        OutputError: not writable.
    """
    base = root / "leftImg8bit"
    files = [file for split in splits or ["*"] for file in sorted(base.glob(f"{split}/*/*{_CLEAR}"))]
    if not files:
        raise InputError(
            f"{base} holds no <split>/<city>/*{_CLEAR}. `ptedge data fetch-help cityscapes` tells where they come from"
        )

    def distance_of(file: Path, shape: tuple[int, ...]) -> NDArray[np.float64]:
        place, name = file.parent.relative_to(base), file.name.removesuffix(_CLEAR)
        camera = read_camera(root / "camera" / place / f"{name}_camera.json")
        raw = read_sixteen_bits(root / "disparity" / place / f"{name}_disparity.png", shape)
        return disparity_to_distance(raw, camera)

    homes = [out / "leftImg8bit_foggy" / file.relative_to(base).with_suffix("") for file in files]
    return _fog_all(list(zip(files, homes, strict=True)), distance_of, options, progress)


def fog_depths(
    images: Path, depths: Path, out: Path, unit: float, options: FogOptions, progress: Progress | None = None
) -> dict[str, int]:
    """Write ``<name>_foggy_beta_0.02.png`` for each image of a folder.

    Args:
        images: folder of images, its sub-folders included.
        depths: folder with a ``.png`` or ``.npy`` of the same name for each.
        out: folder for the foggy images.
        unit: metres a step of a 16-bit PNG.
        options: how foggy.
        progress: called with images done and in all.

    Returns:
        Counts by what happened.

    Raises:
        InputError: no images, or one without depths.
        OutputError: not writable.
    """
    files = [file for file in files_below(images) if is_picture(file.name)]
    if not files:
        raise InputError(f"{images} holds no image")

    def distance_of(file: Path, shape: tuple[int, ...]) -> NDArray[np.float64]:
        stem = depths / file.relative_to(images).with_suffix("")
        for suffix in (".png", ".npy"):
            place = stem.with_name(f"{stem.name}{suffix}")
            if place.is_file():
                return read_depth(place, unit, shape)
        raise InputError(f"{file} has no depths: neither {stem}.png nor {stem}.npy is there")

    homes = [out / file.relative_to(images).with_suffix("") for file in files]
    return _fog_all(list(zip(files, homes, strict=True)), distance_of, options, progress)


def _fog_all(
    files: Sequence[tuple[Path, Path]],
    distance_of: Callable[[Path, tuple[int, ...]], NDArray[np.float64]],
    options: FogOptions,
    progress: Progress | None,
) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for done, (file, home) in enumerate(files, start=1):
        wanted = {beta: home.with_name(f"{home.name}_foggy_beta_{beta:g}.png") for beta in options.betas}
        todo = {beta: path for beta, path in wanted.items() if not path.exists()}
        counts[THERE] += len(wanted) - len(todo)
        if todo:
            image = read_image(file)
            try:
                distance, share = fill_missing(distance_of(file, image.shape[:2]))
            except ValueError:
                raise InputError(f"no pixel of {file} has a distance, so that no fog can be made") from None
            counts[FILLED] += share > 0
            counts[MOSTLY_FILLED] += share > 0.5
            light = atmospheric_light(image) if options.light is None else np.array(options.light, np.float64)
            _write_all(((path, add_fog(image, transmittance(distance, beta), light)) for beta, path in todo.items()))
            counts[WRITTEN] += len(todo)
        if progress is not None:
            progress(done, len(files))
    return dict(+counts)


def _write_all(pictures: Iterable[tuple[Path, NDArray[np.uint8]]]) -> None:
    for path, picture in pictures:
        _, content = cv2.imencode(".png", cv2.cvtColor(picture, cv2.COLOR_RGB2BGR))
        with atomic_write(path) as file:
            file.write(content.tobytes())
