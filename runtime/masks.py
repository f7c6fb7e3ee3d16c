"""Places that no picture may show: polygons, filled or blurred before anything is written or shown.

Detection sees the whole picture; every sink gets the hidden one, so that neither files, hashes nor the live page hold
what lies under a mask.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from ptedge.config import from_dict, read_toml, require, require_one_of
from ptedge.errors import ConfigError

CELLS = 8  # a blurred place keeps at most so many by so many means
CELL = 8  # pixels of a side of such a cell, at least

Point = tuple[float, float]


@dataclass(frozen=True)
class Mask:
    """One polygon.

    Attributes:
        polygon: corners (x, y), three or more.
        how: ``fill`` with black, or ``blur``.
        source: name of the source that it is for; ``None`` for all.
    """

    polygon: tuple[Point, ...]
    how: str = "fill"
    source: str | None = None

    def __post_init__(self) -> None:
        require_one_of("how", self.how, ("fill", "blur"))
        if len(self.polygon) < 3:
            raise ValueError(f"polygon has {len(self.polygon)} corners; it must have three or more")


@dataclass(frozen=True)
class MaskFile:
    """What a file of masks says.

    Attributes:
        mask: polygons.
        units: ``relative``: shares of the picture's width and height, 0 to 1; or ``pixels``.
        size: (width, height) of the pictures that pixels are of; other sizes get them in proportion.
    """

    mask: tuple[Mask, ...] = ()
    units: str = "relative"
    size: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        require_one_of("units", self.units, ("relative", "pixels"))
        if (self.size is None) != (self.units == "relative"):
            raise ValueError("size = [width, height] belongs to units = 'pixels': give both, or neither")
        if not self.mask:
            raise ValueError("there is no mask; write a table [[mask]] with a polygon")
        for side in self.size or ():
            require("size", side, 1)
        for mask in self.mask:
            for x, y in mask.polygon:
                require("x", x, 0, self.size[0] if self.size else 1)
                require("y", y, 0, self.size[1] if self.size else 1)


@dataclass(frozen=True, eq=False)
class Hidden:
    """The places of pictures of one size.

    Attributes:
        filled: [H, W] bool.
        blurred: (rows, columns) of the rectangle around each blurred polygon, and its pixels in there.
        everywhere: [H, W] bool, all of them.
    """

    filled: NDArray[np.bool_]
    blurred: tuple[tuple[slice, slice, NDArray[np.bool_]], ...]
    everywhere: NDArray[np.bool_]

    def hide(self, image: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """A copy of a picture that shows nothing of them.

        Args:
            image: [H, W, 3] uint8.
        """
        shown: NDArray[np.uint8] = image.copy()
        for rows, columns, inside in self.blurred:
            part = shown[rows, columns]
            height, width = part.shape[:2]
            cells = min(CELLS, max(1, width // CELL)), min(CELLS, max(1, height // CELL))
            means = cv2.resize(part, cells, interpolation=cv2.INTER_AREA)
            part[inside] = cv2.resize(means, (width, height), interpolation=cv2.INTER_LINEAR)[inside]
        shown[self.filled] = 0
        return shown

    def covers(self, boxes: NDArray[np.float32]) -> NDArray[np.bool_]:
        """Which boxes have their middle under a mask.

        Args:
            boxes: [N, 4] xyxy in pixels.

        Returns:
            [N].
        """
        height, width = self.everywhere.shape
        x = np.clip((boxes[:, 0] + boxes[:, 2]) / 2, 0, width - 1).astype(np.intp)
        y = np.clip((boxes[:, 1] + boxes[:, 3]) / 2, 0, height - 1).astype(np.intp)
        return np.asarray(self.everywhere[y, x])


@dataclass
class Masks:
    """The masks of a run.

    Attributes:
        masks: relative to width and height.
    """

    masks: Sequence[Mask]
    _made: dict[str, Hidden | None] = field(default_factory=dict, repr=False)

    def of(self, source: str, image: NDArray[np.uint8]) -> Hidden | None:
        """What is to be hidden in a picture; ``None`` for nothing.

        Args:
            source: name of its source.
            image: [H, W, 3].
        """
        made = self._made.get(source)
        if source not in self._made or (made is not None and made.everywhere.shape != image.shape[:2]):
            own = [mask for mask in self.masks if mask.source in (None, source)]
            made = self._made[source] = _hidden(own, *image.shape[:2]) if own else None
        return made


def read_masks(path: Path, sources: Sequence[str]) -> Masks:
    """Masks from a TOML file.

    Args:
        path: the file.
        sources: names of the run's sources.

    Raises:
        ConfigError: unreadable, an unknown key, a point outside the picture, or a source that is none of the run's.
    """
    found = from_dict(MaskFile, read_toml(path, "masks"), str(path))
    unknown = sorted({mask.source for mask in found.mask if mask.source is not None} - set(sources))
    if unknown:
        raise ConfigError(f"{path}: no source is called {unknown[0]!r}; this run has {', '.join(sources)}")
    width, height = found.size or (1, 1)
    return Masks(
        [Mask(tuple((x / width, y / height) for x, y in mask.polygon), mask.how, mask.source) for mask in found.mask]
    )


def _hidden(masks: Sequence[Mask], height: int, width: int) -> Hidden:
    filled, everywhere = np.zeros((height, width), bool), np.zeros((height, width), bool)
    blurred = []
    for mask in masks:
        inside = _drawn(mask, height, width)
        everywhere |= inside
        if mask.how == "fill":
            filled |= inside
        else:
            y, x = np.nonzero(inside)
            rows, columns = slice(int(y.min()), int(y.max()) + 1), slice(int(x.min()), int(x.max()) + 1)
            blurred.append((rows, columns, inside[rows, columns]))
    return Hidden(filled, tuple(blurred), everywhere)


def _drawn(mask: Mask, height: int, width: int) -> NDArray[np.bool_]:
    """The pixels of a polygon and one more on every side, [H, W]; at least one pixel."""
    corners = np.rint(np.array(mask.polygon) * (width - 1, height - 1)).astype(np.int32)
    canvas = np.zeros((height, width), np.uint8)
    cv2.fillPoly(canvas, [corners], 1)
    return np.asarray(cv2.dilate(canvas, np.ones((3, 3), np.uint8)) > 0)
