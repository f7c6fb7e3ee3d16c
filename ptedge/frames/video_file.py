"""Video files through OpenCV: frames with the container's own timestamps, where it has some."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from ptedge.errors import InputError
from ptedge.files import open_regular
from ptedge.frames.address import is_http, mask_credentials, parse_address
from ptedge.frames.images import printable
from ptedge.frames.video import claimed_fps, to_rgb

# how far a container's frame count may be off before the file counts as cut short: it is often duration times rate
_COUNT_SLACK = 0.05
_LONGEST_GAP = 86_400_000.0  # milliseconds between two frames; more is a damaged timestamp
_MOST_FRAMES = 1 << 40


@dataclass(frozen=True)
class Capture:
    """An open video file.

    Attributes:
        device: OpenCV's object.
        count: frames the container claims; ``None`` when it claims none.
        fps: frames a second it claims; ``None`` when it claims none.
    """

    device: cv2.VideoCapture
    count: int | None
    fps: float | None


@contextlib.contextmanager
def open_capture(path: str) -> Iterator[Capture]:
    """Open a video file; it is released at the end.

    Args:
        path: file, or ``http://`` address of one.

    Raises:
        InputError: OpenCV cannot open it, or it is none.
    """
    shown = printable(mask_credentials(path))
    if is_http(path):
        name = parse_address(path).full
    else:
        _require_video(path, shown)
        # with its folders: FFmpeg takes what stands before a colon for a protocol
        name = os.path.abspath(path)
    # FFmpeg alone: other parts of OpenCV try an address as well, and print it with its password; and they take the
    # name of a file for the first of a numbered sequence
    device = cv2.VideoCapture(name, cv2.CAP_FFMPEG if is_http(path) or _has_ffmpeg() else cv2.CAP_ANY)
    try:
        if not device.isOpened():
            raise InputError(f"{shown} is no image, list or video that OpenCV can open, or it is cut short")
        yield Capture(device, _count(device), claimed_fps(device))
    finally:
        device.release()


def _require_video(path: str, shown: str) -> None:
    """Refuse what is no file, is empty, or only names other files, which may be anywhere. Raises InputError."""
    try:
        with open_regular(Path(path)) as file:
            start = file.read(16)
    except OSError as error:
        raise InputError(f"video {shown} cannot be read: {error.strerror}") from None
    if not start:
        raise InputError(f"video {shown} is empty. Replace or remove it")
    if start.lstrip().startswith((b"#EXTM3U", b"ffconcat", b"<?xml", b"<MPD")):
        raise InputError(f"{shown} is no video but a playlist, which names other files. Give those, or the address")


def read_capture(
    path: str, start: int, stride: int, skipped: list[tuple[str, str]]
) -> Iterator[tuple[int, float | None, NDArray[np.uint8]]]:
    """Frames of a video file in order.

    Args:
        path: video file, or ``http://`` address of one.
        start: frames passed over first.
        stride: every so-many-th from there.
        skipped: gets an entry when the file clearly ends before the time it claims.

    Yields:
        Index, seconds as :class:`VideoClock` tells them (``None`` for all frames of a file without timestamps),
        [H, W, 3] uint8 RGB.

    Raises:
        InputError: it cannot be opened, or not one frame can be decoded.
    """
    shown = printable(mask_credentials(path))
    with open_capture(path) as capture:
        device, index, clock = capture.device, 0, VideoClock(capture.fps)
        held: list[
            tuple[int, float, object]
        ] = []  # the first frame waits for the second, which tells whether time runs
        while device.grab():
            # before retrieve: OpenCV's timestamp is that of the frame grabbed last
            milliseconds = float(device.get(cv2.CAP_PROP_POS_MSEC))
            wanted = index >= start and (index - start) % stride == 0
            image = _retrieved(device, f"{shown} frame {index}", skipped) if wanted else None
            held.append((index, milliseconds, image))
            index += 1
            if index == 1:
                continue
            if index == 2:
                clock.begin(held[0][1], held[1][1])
            yield from _timed(held, clock)
            held.clear()
        if index == 0:
            raise InputError(f"video {shown} holds no frame that can be decoded. It is empty or cut short")
        if index == 1:
            clock.begin(held[0][1], None)
        yield from _timed(held, clock)
        missing = _missing(capture, index, clock.last)
        if missing:
            skipped.append((shown, missing))


def _retrieved(device: cv2.VideoCapture, name: str, skipped: list[tuple[str, str]]) -> object:
    ok, image = device.retrieve()
    if ok and image is not None:
        return image
    skipped.append((name, f"{name} cannot be decoded"))
    return None


def _timed(
    held: list[tuple[int, float, object]], clock: VideoClock
) -> Iterator[tuple[int, float | None, NDArray[np.uint8]]]:
    for index, milliseconds, image in held:
        seconds = clock.tell(milliseconds)
        if image is not None:
            yield index, seconds, to_rgb(image)


class VideoClock:
    """Seconds of the frames of a video: the container's timestamps, where they advance.

    OpenCV gives 0 for a frame without a timestamp, as all frames of a raw H.264 file are, and the last ones of H.264 in
    AVI; older versions give nonsense. Such a frame comes one frame after the one before it. Where time never advances
    there is no time at all: the rate of such a file is FFmpeg's guess.

    Attributes:
        last: seconds of the last frame; ``None`` while time has not advanced.
    """

    def __init__(self, fps: float | None) -> None:
        """Begin.

        Args:
            fps: frames a second as the container claims; ``None`` where it does not.
        """
        self.last: float | None = None
        self._step = None if fps is None else 1.0 / fps
        self._before = -1.0  # milliseconds; a time has to be later

    def begin(self, first: float, second: float | None) -> None:
        """Look at the timestamps of the first two frames, in milliseconds; ``None``: there is no second."""
        if second is not None and not (_is_time(first) and first < second):
            self._before = max(0.0, first) if _is_time(first) else 0.0

    def tell(self, milliseconds: float) -> float | None:
        """Seconds of the next frame, later than the one before; ``None`` while there are no times.

        Args:
            milliseconds: its timestamp as OpenCV gives it.
        """
        if _is_time(milliseconds) and self._before < milliseconds <= max(self._before, 0.0) + _LONGEST_GAP:
            self._before = milliseconds
            self.last = milliseconds / 1000.0
        elif self.last is None or self._step is None:
            return None
        else:
            self.last += self._step
            self._before = max(self._before, 1000.0 * self.last)
        return self.last


def _is_time(milliseconds: float) -> bool:
    return math.isfinite(milliseconds) and milliseconds >= 0


def _missing(capture: Capture, read: int, last: float | None) -> str | None:
    """What to say when a file ends before the time it claims; None where it does not.

    Reference: OpenCV computes the number of frames as duration times rate where the container does not store it
    (Matroska, WebM, FLV, TS), which is wrong for variable rates; so the time of the last frame decides, if it has one.
    """
    count, fps = capture.count, capture.fps
    if count is None or read >= count * (1 - _COUNT_SLACK) - 1:
        return None
    if last is None or fps is None:
        return f"it ends after {read} of {count} frames; the file seems to be cut short"
    if last + 1.5 / fps >= count / fps * (1 - _COUNT_SLACK):
        return None
    return f"it ends after {read} of {count} frames ({last:.1f} of {count / fps:.1f} s); the file seems to be cut short"


def _count(device: cv2.VideoCapture) -> int | None:
    """Frames as claimed; ``None`` where nothing is, which OpenCV tells by 0 or a nonsense number."""
    count = float(device.get(cv2.CAP_PROP_FRAME_COUNT))
    return int(count) if 0 < count < _MOST_FRAMES else None


def _has_ffmpeg() -> bool:
    return cv2.CAP_FFMPEG in cv2.videoio_registry.getStreamBackends()
