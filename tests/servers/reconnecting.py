"""Waiting for a source to come back."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from ptedge.frames.source import Frame, FrameSource


def after(frames: Iterator[Frame], number: int, source: FrameSource, seconds: float = 5.0) -> Frame:
    """The first frame beyond a count of reconnections; a server that does not come back ends the test in time."""
    guard = threading.Timer(seconds, source.close)
    guard.start()
    try:
        for frame in frames:
            if source.status.reconnects >= number:
                return frame
    finally:
        guard.cancel()
    raise AssertionError(f"no frame after {seconds} s: {source.status}")
