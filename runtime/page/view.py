"""The newest picture of each source, for who looks: drawn and encoded only when asked for, and once for all viewers."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptedge.drawing.draw import draw_detections
from ptedge.drawing.scale import at_shown_width

from ..sinks.files import Result, encode_jpeg

WIDEST, NARROWEST = 1280, 960  # pixels of a picture: larger frames are reduced, smaller ones enlarged for the labels
JPEG_QUALITY = 80


class Picture(NamedTuple):
    """An annotated frame: how many results of its source there were before it, and its JPEG."""

    number: int
    jpeg: bytes


class LiveView:
    """A sink that remembers the newest result of each source.

    Attributes:
        path: what it is, in words.
    """

    path = "live view"

    def __init__(self) -> None:
        self._newest: dict[str, tuple[int, Result]] = {}
        self._encoded: dict[str, Picture] = {}
        self._ended = False
        self._changed = threading.Condition()
        self._encoding = threading.Lock()

    def write(self, result: Result) -> None:
        """Remember a result in place of the one before."""
        name = result.source or ""
        with self._changed:
            number = self._newest[name][0] + 1 if name in self._newest else 0
            self._newest[name] = (number, result)
            self._changed.notify_all()

    def close(self) -> None:
        """No further result comes; who waits gets none."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    @property
    def ended(self) -> bool:
        """No further result comes."""
        return self._ended

    def has_newer(self, source: str, after: int) -> bool:
        """Whether a source has a picture after ``after``; ``source`` is empty where there is only one."""
        with self._changed:
            return source in self._newest and self._newest[source][0] > after

    def numbers(self, keys: Mapping[str, str]) -> dict[str, int]:
        """Number of the newest picture, -1 for none, under each name of ``keys``; their values are names here."""
        with self._changed:
            return {name: self._newest[key][0] if key in self._newest else -1 for name, key in keys.items()}

    def picture(self, source: str, after: int, timeout: float) -> Picture | None:
        """The newest picture of a source, as soon as there is one after ``after``.

        Args:
            source: its name; empty where there is only one.
            after: number of the picture that the caller has; -1 for none.
            timeout: seconds to wait.

        Returns:
            The picture; ``None`` when there is none in time.
        """

        def newer() -> bool:
            return source in self._newest and self._newest[source][0] > after

        with self._changed:
            self._changed.wait_for(lambda: newer() or self._ended, timeout)
            if not newer():
                return None
            number, result = self._newest[source]
        with self._encoding:
            ready = self._encoded.get(source)
            if ready is None or ready.number < number:
                ready = self._encoded[source] = Picture(number, encode_jpeg(_drawn(result), JPEG_QUALITY))
            return ready


def _drawn(result: Result) -> NDArray[np.uint8]:
    """The frame with its detections, drawn at the size that is shown."""
    image, found = result.frame.image, result.detections
    found = found.select(found.scores >= result.draw_score)
    image, found = at_shown_width(image, found, NARROWEST, WIDEST)
    return draw_detections(image, found, result.class_names)
