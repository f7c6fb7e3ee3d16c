"""The annotated video: right speed also for variable frame rates, whole also after Ctrl-C."""

from __future__ import annotations

import errno
import math
import os
import shutil
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from ptedge.errors import OutputError
from ptedge.files import write_error

from .files import LeftOut, Result
from .lines import taken_away

DEFAULT_FPS = 25.0
SLOWEST_FPS = 1e-3  # a frame in a quarter of an hour: such frames are shown one after the other
MOST_TICKS = 65535  # MPEG-4 has 16 bits for the ticks of a second
MOST_SIDE = 8190  # pixels; MPEG-4 has 13 bits for a side
RESERVE = 16 << 20  # bytes left on the disk when writing stops: OpenCV hides a full disk, and the index comes last
LOOK_EVERY = 10  # frames between two looks at the disk
LONGEST_GAP = 5.0  # seconds of standstill that are shown; a camera silent for an hour does not fill the disk
GAP_FRAMES = 2.5  # and so many frames of a slow source


class VideoSink:
    """``video.mp4``: written under a temporary name that it loses when finished.

    The file has a constant rate. Frames are repeated or left out so that each is shown at its own time; frames without
    a time are shown one after the other. The size is that of the first frame; others are fitted into it.

    Attributes:
        left_out: frames that OpenCV refused.
    """

    def __init__(self, path: Path, fps: float | None) -> None:
        """Prepare; the file is opened with the first frame.

        Args:
            path: ``.mp4`` file.
            fps: frames a second; ``None`` takes 25, and so does what is no rate, see :func:`file_rate`.
        """
        self.path = path
        self.left_out = LeftOut()
        self._fps, self._copies = file_rate(fps)
        self._temporary = path.with_name(f".{path.stem}.{os.getpid()}.tmp{path.suffix}")
        self._writer: cv2.VideoWriter | None = None
        self._size = (0, 0)  # width, height
        self._start = 0.0
        self._written = 0

    def write(self, result: Result) -> None:
        """Add a frame.

        Raises:
            OutputError: the disk is nearly full; :meth:`close` still finishes the file.
        """
        try:
            if self._written % LOOK_EVERY == 0 and shutil.disk_usage(self.path.parent).free < RESERVE:
                raise OSError(errno.ENOSPC, "disk full")
            if self._writer is not None and self._written % LOOK_EVERY == 0 and not self._temporary.exists():
                raise OutputError(taken_away(self.path))
        except OSError as error:
            raise write_error(self.path, error) from None
        try:
            picture = self._picture(result)
        except cv2.error as error:
            self.left_out.add(self.path, str(error).strip())
            return
        assert self._writer is not None
        for _ in range(self._repeats(result.frame.time)):
            self._writer.write(picture)
            self._written += 1

    def close(self) -> None:
        """Finish the file and give it its name; without a frame there is none.

        Raises:
            OutputError: it was not written, for example on a full disk.
        """
        if self._writer is None:
            return
        self._writer.release()
        self._writer = None
        try:
            if not self._temporary.exists():
                raise OutputError(taken_away(self.path))
            if not _opens(self._temporary):
                raise OutputError(f"cannot write {self.path}: the video is not whole. Is the disk full?")
            os.replace(self._temporary, self.path)
        except OSError as error:
            raise write_error(self.path, error) from None
        finally:
            self._temporary.unlink(missing_ok=True)

    def _picture(self, result: Result) -> NDArray[np.uint8]:
        image = np.asarray(cv2.cvtColor(result.annotated, cv2.COLOR_RGB2BGR), np.uint8)
        if self._writer is None:
            self._open(image.shape[1], image.shape[0], result.frame.time)
        return fit(image, *self._size)

    def _open(self, width: int, height: int, time: float | None) -> None:
        _remove_remains(self.path)
        scale = min(1.0, MOST_SIDE / max(width, height))
        width, height = round(width * scale), round(height * scale)
        self._size = (width - width % 2 or 2, height - height % 2 or 2)  # the codec takes even sizes
        self._start = time or 0.0
        writer = cv2.VideoWriter(str(self._temporary), cv2.VideoWriter.fourcc(*"mp4v"), self._fps, self._size)
        if not writer.isOpened():
            raise OutputError(
                f"cannot write {self.path}: OpenCV cannot open a video writer there (disk, or no mp4v codec). "
                "Choose --save jsonl,images"
            )
        self._writer = writer

    def _repeats(self, time: float | None) -> int:
        """How often the next picture goes into the file to be shown at its time."""
        if time is None:
            return self._copies
        due = round((time - self._start) * self._fps) + 1 - self._written
        most = round(max(LONGEST_GAP * self._fps, GAP_FRAMES * self._copies))
        if not -most <= due <= most:  # a jump of the clock: go on from here
            self._start = time - self._written / self._fps
            return self._copies
        return max(due, 0)


def file_rate(fps: float | None) -> tuple[float, int]:
    """A rate that an MP4 with MPEG-4 can hold, as OpenCV writes it, and how often each frame is shown at that rate.

    OpenCV stores a rate as a fraction with a denominator of 1, 10, 100... and stops when it is within 0.001; MPEG-4 has
    room for 65,535 ticks a second. So 211.222 is written as 211.22, and 1/60 as 0.05 with each frame shown three times.

    Args:
        fps: frames a second; ``None``, not finite, below 0.001 or above 65,535 becomes 25.

    Returns:
        (rate of the file, within 0.2 % of a multiple of ``fps``; that multiple).
    """
    if fps is None or not math.isfinite(fps) or not SLOWEST_FPS <= fps <= MOST_TICKS:
        return DEFAULT_FPS, 1
    digits = next(d for d in (3, 2, 1, 0) if round(fps * 10**d) <= MOST_TICKS)
    copies = 1
    while digits == 3 and abs(round(fps * copies, 3) - fps * copies) > 0.002 * fps * copies:
        copies += 1  # ends at a rate of 0.25 at the latest
    return round(fps * copies, digits), copies


def _remove_remains(path: Path) -> None:
    """Remove unfinished videos of runs that were killed; their index is missing, so nothing can read them."""
    for old in path.parent.glob(f".video*.tmp{path.suffix}"):
        number = old.name.split(".")[-3]
        if number.isdecimal() and not _runs(int(number)):
            old.unlink(missing_ok=True)


def _runs(number: int) -> bool:
    """Whether a process exists; outside Unix, where asking is no harmless thing, yes."""
    if os.name != "posix":
        return True
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _opens(path: Path) -> bool:
    """Whether a video file is whole enough to open: an MP4 is unreadable without the index at its end."""
    capture = cv2.VideoCapture(str(path))
    try:
        return capture.isOpened()
    finally:
        capture.release()


def fit(image: NDArray[np.uint8], width: int, height: int) -> NDArray[np.uint8]:
    """An image at another size, aspect kept, black where it does not reach; cut when it is one pixel too large.

    Args:
        image: [H, W, 3] uint8.
        width: pixels wanted.
        height: pixels wanted.

    Returns:
        [height, width, 3] uint8, contiguous.
    """
    if image.shape[0] - height in (0, 1) and image.shape[1] - width in (0, 1):
        return np.ascontiguousarray(image[:height, :width])
    scale = min(width / image.shape[1], height / image.shape[0])
    inner = (max(1, round(image.shape[1] * scale)), max(1, round(image.shape[0] * scale)))
    out = np.zeros((height, width, 3), np.uint8)
    out[: inner[1], : inner[0]] = cv2.resize(image, inner, interpolation=cv2.INTER_AREA)
    return out
