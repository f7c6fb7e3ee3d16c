"""Unlabelled frames from anything: image, folder, glob pattern, list file, video, field folder, live source."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Literal

import cv2
import numpy as np

from ptedge.errors import InputError
from ptedge.frames.address import mask_credentials
from ptedge.frames.connections import connect
from ptedge.frames.files import find_files, natural_key
from ptedge.frames.http import OtherContentError
from ptedge.frames.images import printable, read_picture
from ptedge.frames.index import FrameIndex, index_frames
from ptedge.frames.live import LiveStream
from ptedge.frames.login import with_login
from ptedge.frames.sequence import Frame, Thinning, join_rounds
from ptedge.frames.status import LiveOptions, SourceStatus
from ptedge.frames.video_file import open_capture, read_capture

Flip = Literal["horizontal", "vertical", "both"]

_DIM_NAMED = 10
_FLIP_CODES: dict[Flip, int] = {"horizontal": 1, "vertical": 0, "both": -1}


@dataclass
class FrameSource:
    """Frames in order, decoded while iterating. Live sources hold a connection: use ``with``, or :meth:`close`.

    Attributes:
        spec: what the user named, without user name and password.
        kind: ``image``, ``folder``, ``glob``, ``list``, ``field``, ``video`` or ``live``.
        count: frames to come if none is unreadable; ``None`` when unknown. For a video the container's own claim.
        fps: frames a second the container or camera claims, or ``rate``; ``None`` where there is no such number.
        files: image files in order; empty for video and live sources.
        times: seconds recorded for each of them.
        start: see :func:`open_frames`, as for the next five.
        stride: every so-many-th.
        limit: at most.
        loop: begin again at the end.
        rate: frames a second at most.
        flip: mirror.
        live: how a live source deals with faults.
        skipped: (name, reason) of what was left out: unreadable frames, further pictures of a file, what lies in a
            folder and is no image; grows while iterating, in the first round of ``loop``.
        dim: names of the first few image files of 16 bits that use only the lowest twelve, so that they come out
            nearly black; ``status.dim`` counts them all.
        left_out: the part of ``skipped`` that is known before any frame is read.
        address: as the user named it, with user name and password; never to be shown.
        status: counters; of files only ``state``, ``frames``, ``delivered``, ``passed`` and ``corrupt``.
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
    loop: bool = False
    rate: float | None = None
    flip: Flip | None = None
    live: LiveOptions = field(default_factory=LiveOptions)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    dim: list[str] = field(default_factory=list)
    left_out: tuple[tuple[str, str], ...] = ()
    status: SourceStatus = field(default_factory=SourceStatus)
    address: str = field(default="", repr=False)
    _stream: LiveStream | None = field(default=None, repr=False)
    _closed: bool = field(default=False, repr=False)

    def __iter__(self) -> Iterator[Frame]:
        """Frames from the beginning; a second iteration opens the source anew.

        Raises:
            InputError: there are frames, but not one of them can be read; or a live source has ended for good.
        """
        self.skipped[:] = self.left_out
        self.dim.clear()
        if self.limit == 0:
            return
        delivered = 0
        for frame in self._live_frames() if self.kind == "live" else self._file_frames():
            delivered += 1
            yield frame if self.flip is None else _flipped(frame, self.flip)
            if delivered == self.limit:
                return
        unreadable = self.skipped[len(self.left_out) :]
        if not delivered and unreadable:
            name, reason = unreadable[0]
            raise InputError(
                f"{self.spec}: none of its {len(unreadable)} frames can be read; the first is {name} ({reason})"
            )

    def close(self) -> None:
        """Close a live source and end a loop; from any thread. Who waits for a frame of it gets no more."""
        self._closed = True
        if self._stream is not None:
            self._stream.close()

    def __enter__(self) -> FrameSource:
        """Itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close."""
        self.close()

    def connect(self) -> None:
        """Open a live source; nothing for others.

        Raises:
            InputError: it cannot be opened.
            BackendError: this OpenCV lacks GStreamer.
        """
        if self.kind != "live":
            return
        thinning = Thinning(self.start, self.stride, self.rate)
        connector = partial(connect, self.address, self.live, self.rate)
        self._stream = LiveStream(self.address, self.live, self.status, thinning.wants, connector)
        self._stream.open()
        self.fps = self.rate or self._stream.fps

    def _live_frames(self) -> Iterator[Frame]:
        if self._stream is None or self.status.state == "ended":
            self.status.reset()
            self.connect()
        assert self._stream is not None
        try:
            while (frame := self._stream.take()) is not None:
                yield frame
        finally:
            self._stream.close()

    def _file_frames(self) -> Iterator[Frame]:
        """Frames of all rounds at the rate, counted."""
        self._closed = False
        self.status.reset("running")
        thinning = Thinning(0, 1, self.rate)
        for frame in join_rounds(self._rounds(), 1.0 / (self.fps or 25.0)):
            if self._closed:
                break
            self.status.frames += 1
            time = frame.time
            if self.rate is not None:
                if time is None:
                    time = self.status.delivered / self.rate
                elif not thinning.wants(frame.index, time):
                    self.status.passed += 1
                    continue
            self.status.delivered += 1
            self.status.size = (frame.image.shape[1], frame.image.shape[0])
            yield replace(frame, time=time)
        self.status.state = "ended"

    def _rounds(self) -> Iterator[Iterator[Frame]]:
        yield self._round(self.skipped)
        while self.loop:
            yield self._round([])

    def _round(self, skipped: list[tuple[str, str]]) -> Iterator[Frame]:
        if self.files:
            yield from self._image_frames(skipped)
        else:
            for index, time, image in read_capture(self.address, self.start, self.stride, skipped):
                yield Frame(image, index, time, self.spec, None)

    def _image_frames(self, skipped: list[tuple[str, str]]) -> Iterator[Frame]:
        for index in range(self.start, len(self.files), self.stride):
            path = self.files[index]
            name = printable(path)
            try:
                picture = read_picture(path)
            except InputError as error:
                self.status.corrupt += 1
                skipped.append((name, str(error)))
                continue
            if picture.pictures > 1:
                skipped.append((name, f"{name} holds {picture.pictures} pictures; only the first is taken"))
            if picture.brightest is not None:
                self.status.dim += 1
                if len(self.dim) < _DIM_NAMED:
                    self.dim.append(name)
            yield Frame(picture.image, index, self.times[index], self.spec, name)


def open_frames(
    spec: str | Path,
    *,
    start: int = 0,
    stride: int = 1,
    limit: int | None = None,
    loop: bool = False,
    rate: float | None = None,
    flip: Flip | None = None,
    live: bool | LiveOptions = True,
) -> FrameSource:
    """Open a source of frames. Of files nothing is decoded yet, but what is missing or empty is refused now.

    Folders are searched with their sub-folders, hidden names left out, in natural order (``img2`` before ``img10``).
    A list file holds one path a line, relative to the file; blank lines and lines starting with ``#`` do not count.
    A live source is connected now and read from now on; it ends only when closed, or as its options say.

    Args:
        spec: image, folder, glob pattern, ``.txt`` list, video or field folder; with ``live`` also a camera (``0``,
            ``/dev/video0``), ``rtsp://``, ``http://`` (Motion JPEG, single pictures, or a video file), ``csi://0`` or a
            GStreamer pipeline.
        start: frames passed over at the beginning.
        stride: take every so-many-th frame from there.
        limit: at most this many frames; ``None`` for all.
        loop: begin again at the end, for ever or up to ``limit``; not for live sources.
        rate: frames a second at most, by the time of the source; images that have no time get times at this rate.
        flip: mirror left and right (``horizontal``), up and down (``vertical``), or both, which turns by 180 degrees.
        live: accept live sources, and how to deal with their faults.

    Raises:
        InputError: missing, empty, no source of frames, or an option that does not suit it.
        BackendError: this OpenCV cannot open such a live source.
    """
    if start < 0 or stride < 1 or (limit is not None and limit < 0):
        raise InputError(f"start {start}, stride {stride}, limit {limit}: they must be at least 0, 1 and 0")
    if rate is not None and not 0 < rate < math.inf:
        raise InputError(f"rate is {rate}; it must be a number of frames a second above 0")
    if flip is not None and flip not in _FLIP_CODES:
        raise InputError(f"flip is {flip!r}; it must be one of {', '.join(_FLIP_CODES)}")
    text = str(spec)
    found = find_files(text, live is not False)
    kind = found.kind
    shown = printable(mask_credentials(text) if kind == "live" else text)
    source = FrameSource(shown, kind, len(found.files), rate, found.files, found.times, left_out=found.left_out)
    source.start, source.stride, source.limit = start, stride, limit
    source.loop, source.rate, source.flip, source.address = loop, rate, flip, text
    source.live = live if isinstance(live, LiveOptions) else source.live
    if kind == "live":
        source.address = with_login(text, source.live.login_file)
        _connect(source)
    if source.kind == "video":
        with open_capture(source.address) as capture:
            source.count = capture.count
            source.fps = capture.fps if rate is None else min(rate, capture.fps or rate)
    source.count = _count(source)
    return source


def _connect(source: FrameSource) -> None:
    """Open a live source; an address that turns out to be a video file becomes one."""
    try:
        source.connect()
    except OtherContentError:
        source.kind = "video"
        source.status.reset()
        return
    if source.loop:
        source.close()
        raise InputError(f"{source.spec} is a live source: it has no end, so loop does not apply")


def _count(source: FrameSource) -> int | None:
    """Frames to come, from those that there are."""
    count = source.count
    if source.kind == "live" or count is None:
        return source.limit
    if source.start >= count:
        raise InputError(f"{source.spec} has {count} frames, so none is left from number {source.start} on")
    if source.loop or (source.rate is not None and source.kind in ("video", "field")):
        return source.limit
    count = -(-(count - source.start) // source.stride)
    return count if source.limit is None else min(count, source.limit)


def _flipped(frame: Frame, flip: Flip) -> Frame:
    return replace(frame, image=np.asarray(cv2.flip(frame.image, _FLIP_CODES[flip]), np.uint8))


__all__ = [
    "Flip",
    "Frame",
    "FrameIndex",
    "FrameSource",
    "LiveOptions",
    "SourceStatus",
    "index_frames",
    "natural_key",
    "open_frames",
]
