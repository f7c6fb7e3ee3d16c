"""What the first bytes of an image file tell before anything is decoded; read by a module for each kind of file."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray


class HeaderError(ValueError):
    """The bytes are not what the format asks for, or end too soon."""


@dataclass(frozen=True)
class Header:
    """An image file, undecoded.

    Attributes:
        kind: ``JPEG``, ``PNG``, ``TIFF``...
        width: as stored, in pixels.
        height: as stored, in pixels.
        orientation: 1 to 8 as in EXIF: how the stored picture has to be turned; 5 to 8 swap the sides.
        bits: a sample.
        white: the sample value of white where it is not the largest of so many bits; ``None`` where it is.
        samples: stored a pixel.
        pictures: in the file.
        inverted: 0 is white.
        refusal: why it should not be decoded, as an ending of "it is ..."; empty where nothing speaks against it.
    """

    kind: str
    width: int
    height: int
    orientation: int = 1
    bits: int = 8
    white: int | None = None
    samples: int = 3
    pictures: int = 1
    inverted: bool = False
    refusal: str = ""

    @property
    def size(self) -> tuple[int, int]:
        """(width, height) of the upright picture."""
        return (self.height, self.width) if self.orientation >= 5 else (self.width, self.height)


def take(file: IO[bytes], count: int) -> bytes:
    """So many bytes from where the file stands.

    Raises:
        HeaderError: there are fewer.
    """
    data = file.read(count)
    if len(data) < count:
        raise HeaderError("the data end within the header")
    return data


def unpack(file: IO[bytes], form: str) -> tuple[Any, ...]:
    """Numbers from where the file stands.

    Args:
        file: stands before them.
        form: a format of the standard module struct, byte order first.

    Raises:
        HeaderError: the file ends before.
    """
    return struct.unpack(form, take(file, struct.calcsize(form)))


def turned(image: NDArray[np.uint8], orientation: int) -> NDArray[np.uint8]:
    """A picture turned upright.

    Args:
        image: [H, W, ...] as stored.
        orientation: 1 to 8 as in EXIF.

    Returns:
        [H, W, ...], or [W, H, ...] for 5 to 8; contiguous.
    """
    if orientation in (2, 3, 7, 8):
        image = image[:, ::-1]
    if orientation in (3, 4, 6, 7):
        image = image[::-1]
    if orientation >= 5:
        # 5: transposed; 6 and 8 were mirrored before, which makes a turn; 7: both
        image = image.swapaxes(0, 1)
    return np.ascontiguousarray(image)
