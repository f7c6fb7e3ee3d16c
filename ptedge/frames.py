"""Unlabelled frames from anything: image, folder, glob pattern, list file, video, field folder, live source."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from ptedge.errors import InputError
from ptedge.frame_files import find_files, natural_key
from ptedge.images import decode_image, read_image
from ptedge.video import open_capture, read_capture

_VIDEO_QUALITY = 95  # JPEG quality of kept video frames: no visible loss, a tenth of the memory of raw pixels


@dataclass(frozen=True)
class Frame:
    """One frame.

    Attributes:
        image: [H, W, 3] uint8 RGB.
        index: position in the source, from 0, before ``start``, ``stride`` or unreadable files thin it out.
        time: seconds as the source tells them (container timestamp, or what the field folder recorded); ``None`` where
            it does not.
        source: what the user named.
        file: image file; ``None`` for video and live sources.
    """

    image: NDArray[np.uint8]
    index: int
    time: float | None
    source: str
    file: str | None


@dataclass
class FrameSource:
    """Frames in order, decoded while iterating.

    Attributes:
        spec: what the user named.
        kind: ``image``, ``folder``, ``glob``, ``list``, ``field``, ``video`` or ``live``.
        count: frames to come if none is unreadable; ``None`` when unknown. For a video the container's own claim.
        fps: frames a second the container claims; ``None`` where there is no such number.
        skipped: (name, reason) of frames left out as unreadable; grows while iterating.
        files: image files in order; empty for video and live sources.
    """

    spec: str
    kind: str
    count: int | None
    fps: float | None
    files: tuple[Path, ...] = ()
    times: tuple[float | None, ...] = ()
    start: int = 0
    stride: int = 1
    limit: int | None = None
    skipped: list[tuple[str, str]] = field(default_factory=list)

    def __iter__(self) -> Iterator[Frame]:
        """Frames from the beginning; a second iteration opens the source anew.

        Raises:
            InputError: there are frames, but not one of them can be read.
        """
        self.skipped.clear()
        if self.limit == 0:
            return
        delivered = 0
        for frame in self._frames_of_files() if self.files else self._frames_of_video():
            delivered += 1
            yield frame
            if delivered == self.limit:
                return
        if not delivered and self.skipped:
            name, reason = self.skipped[0]
            raise InputError(
                f"{self.spec}: none of its {len(self.skipped)} frames can be read; the first is {name} ({reason})"
            )

    def _frames_of_files(self) -> Iterator[Frame]:
        for index in range(self.start, len(self.files), self.stride):
            path = self.files[index]
            try:
                image = read_image(path)
            except InputError as error:
                self.skipped.append((str(path), str(error)))
                continue
            yield Frame(image, index, self.times[index], self.spec, str(path))

    def _frames_of_video(self) -> Iterator[Frame]:
        for index, time, image in read_capture(self.spec, self.start, self.stride, self.skipped):
            yield Frame(image, index, time, self.spec, None)


def open_frames(
    spec: str | Path, *, start: int = 0, stride: int = 1, limit: int | None = None, live: bool = True
) -> FrameSource:
    """Open a source of frames; nothing is decoded yet, but what is missing or empty is refused now.

    Folders are searched with their sub-folders, hidden names left out, in natural order (``img2`` before ``img10``).
    A list file holds one path a line, relative to the file; blank lines and lines starting with ``#`` do not count.

    Args:
        spec: image, folder, glob pattern, ``.txt`` list, video or field folder; with ``live`` also a camera index,
            ``rtsp://``, ``http://``, ``csi://`` or a GStreamer pipeline.
        start: frames passed over at the beginning.
        stride: take every so-many-th frame from there.
        limit: at most this many frames; ``None`` for all.
        live: accept live sources.

    Raises:
        InputError: missing, empty, or no source of frames.
        BackendError: this OpenCV cannot open such a live source.
    """
    if start < 0 or stride < 1 or (limit is not None and limit < 0):
        raise InputError(f"start {start}, stride {stride}, limit {limit}: they must be at least 0, 1 and 0")
    text = str(spec)
    kind, files, times = find_files(text, live)
    count: int | None = len(files)
    fps: float | None = None
    if not files:
        with open_capture(text) as capture:
            count, fps = capture.count, capture.fps
    if count is not None:
        if start >= count:
            raise InputError(f"{text} has {count} frames, so none is left from number {start} on")
        count = -(-(count - start) // stride)
        if limit is not None:
            count = min(count, limit)
    return FrameSource(text, kind, count, fps, files, times, start, stride, limit)


class FrameIndex:
    """Unlabelled frames by number, for training: image files are read when asked, video frames are kept as JPEG.

    Args:
        spec: what the user named.
        entries: image files, or encoded frames with their names.
    """

    def __init__(self, spec: str, entries: Sequence[Path | tuple[str, bytes]]) -> None:
        self.spec = spec
        self._entries = tuple(entries)

    def __len__(self) -> int:
        return len(self._entries)

    def name(self, i: int) -> str:
        """Path of the image file, or ``video#000123`` with the number of the frame in the video."""
        entry = self._entries[i]
        return str(entry) if isinstance(entry, Path) else entry[0]

    def read(self, i: int) -> NDArray[np.uint8]:
        """Decode one frame.

        Returns:
            [H, W, 3] uint8 RGB.

        Raises:
            InputError: the file is missing or corrupt.
        """
        entry = self._entries[i]
        return read_image(entry) if isinstance(entry, Path) else decode_image(entry[1], entry[0])


def index_frames(spec: str | Path, max_video_frames: int = 2000) -> FrameIndex:
    """Make frames readable in any order.

    A video is decoded once, in order, because seeking is slow and wrong in many containers; evenly spaced frames of it
    are kept in memory as JPEG of quality 95 (about 0.2 MB each at 1280 x 720).

    Args:
        spec: as :func:`open_frames`, live sources excepted.
        max_video_frames: at most so many frames of a video.

    Raises:
        InputError: missing, empty, unreadable, or a live source.
    """
    text = str(spec)
    if max_video_frames < 1:
        raise InputError(f"max_video_frames is {max_video_frames}; it must be at least 1")
    kind, files, _ = find_files(text, live=False)
    return FrameIndex(text, files if kind != "video" else _encoded_frames(text, max_video_frames))


def _encoded_frames(spec: str, most: int) -> list[tuple[str, bytes]]:
    """Evenly spaced frames as JPEG, whether or not the container's frame count is true."""
    with open_capture(spec) as capture:
        stride = max(1, (capture.count or 0) // most)
    kept: list[tuple[str, bytes]] = []
    step = 1  # of the frames read, every so-many-th is kept
    for number, (index, _, image) in enumerate(read_capture(spec, 0, stride, [])):
        if number % step:
            continue
        bgr = cv2.cvtColor(image, cv2.COLOR_RGB2BGR)
        _, data = cv2.imencode(".jpg", bgr, [cv2.IMWRITE_JPEG_QUALITY, _VIDEO_QUALITY])
        kept.append((f"{spec}#{index:06d}", data.tobytes()))
        if len(kept) >= 2 * most:  # the container claimed too few frames: thin out and go on
            kept, step = kept[::2], step * 2
    chosen = np.linspace(0, len(kept) - 1, min(most, len(kept))).round().astype(int)
    return [kept[i] for i in chosen]


__all__ = ["Frame", "FrameIndex", "FrameSource", "index_frames", "natural_key", "open_frames"]
