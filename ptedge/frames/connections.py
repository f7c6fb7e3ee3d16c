"""Connections to cameras: which code reads which address."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ptedge.frames.address import is_http
from ptedge.frames.http import HttpStream, OtherContentError
from ptedge.frames.status import LiveOptions
from ptedge.frames.video import CaptureStream


class Connection(Protocol):
    """One connection to a camera; :class:`CaptureStream` and :class:`HttpStream` are.

    Attributes:
        fps: frames a second as announced; ``None`` where they are not.
    """

    fps: float | None

    def read(self) -> bytes | NDArray[np.uint8]:
        """The next frame: encoded, or BGR pixels. Raises StreamError."""
        ...

    def interrupt(self) -> None:
        """Make a read in progress end, if that is possible; from any thread."""
        ...

    def close(self) -> None:
        """Close; by the thread that reads."""
        ...


def connect(address: str, options: LiveOptions, rate: float | None = None) -> Connection:
    """Connect with what suits the address.

    Args:
        address: camera, stream address or pipeline.
        options: how long to wait.
        rate: frames a second wanted, for cameras that are asked for every single one.

    Raises:
        StreamError: it cannot be opened.
        BackendError: this OpenCV lacks GStreamer.
        OtherContentError: it is a video file.
    """
    if is_http(address):
        try:
            return HttpStream(address, options, rate)
        except OtherContentError as other:  # such as HLS
            if other.finite:
                raise
    return CaptureStream(address, options)
