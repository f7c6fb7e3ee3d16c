"""Images as users hold them (file, array, PIL image) as what a model takes: [H, W, 3] uint8 RGB."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from ptedge.config import require_one_of
from ptedge.errors import InputError
from ptedge.frames.address import is_live, mask_credentials
from ptedge.frames.images import read_image

if TYPE_CHECKING:
    from PIL.Image import Image

Color = Literal["rgb", "bgr"]
COLORS = ("rgb", "bgr")


def to_rgb(image: str | Path | NDArray[np.uint8] | Image, color: Color) -> NDArray[np.uint8]:
    """One image, decoded.

    Args:
        image: a file; an array [H, W, 3] or, grey, [H, W] of uint8; or a PIL image, taken as it lies in memory.
        color: order of an array's channels; files and PIL images know theirs.

    Returns:
        [H, W, 3] uint8 RGB; the array itself where it is that already.

    Raises:
        InputError: an unreadable file, an array of another type or shape, a stream, or no image at all.
    """
    try:
        require_one_of("color", color, COLORS)
    except ValueError as error:
        raise InputError(str(error)) from None
    if isinstance(image, (str, Path)):
        return _read(image)
    if isinstance(image, np.ndarray):
        return _from_array(image, color)
    pil = sys.modules.get("PIL.Image")  # who holds such an image has imported it
    if pil is not None and isinstance(image, pil.Image):
        return np.asarray(image.convert("RGB"), np.uint8)
    kind = f"{type(image).__module__}.{type(image).__qualname__}".removeprefix("builtins.")
    raise InputError(f"an image is a file, a NumPy array or a PIL image, or a list of these; got {kind}")


def _read(image: str | Path) -> NDArray[np.uint8]:
    path = Path(image)
    if path.is_dir() or (is_live(str(image)) and not path.is_file()):
        shown = mask_credentials(str(image))
        raise InputError(f"{shown} is no single image. Give it to ptedge.stream, which takes it frame by frame")
    return read_image(path)


def _from_array(image: NDArray[Any], color: Color) -> NDArray[np.uint8]:
    shape = " x ".join(map(str, image.shape))
    if image.dtype != np.uint8:
        raise InputError(f"an image array holds uint8, 0 to 255; got {image.dtype}. Scale it and use .astype('uint8')")
    if image.ndim == 2 and image.size:
        return np.repeat(image[:, :, None], 3, axis=2)
    if image.ndim != 3 or image.shape[2] != 3 or not image.size:
        raise InputError(
            f"an image array is [height, width, 3], or [height, width] if grey, got {shape}. "
            "Of several images make a list; drop an alpha channel by image[:, :, :3]"
        )
    return np.ascontiguousarray(image[:, :, ::-1]) if color == "bgr" else image
