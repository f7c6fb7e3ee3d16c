"""Frames of a video, a folder or a camera, each with what a model finds in it."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from os import PathLike
from types import TracebackType

from ptedge.api.model import Model, load
from ptedge.api.results import ImageDetections
from ptedge.errors import InputError
from ptedge.frames.source import Frame, FrameSource, open_frames
from ptedge.frames.status import LiveOptions, SourceEvent, SourceStatus

log = logging.getLogger("ptedge")
LOUD = ("lost", "stalled", "corrupt")


class Stream:
    """Pairs of a frame and its detections, once through. Use ``with``, or :meth:`close`, to leave a camera early.

    Attributes:
        source: the frames.
        model: what detects.
        dropped: frames of a file that came too late for ``realtime``; of a camera see ``status.dropped``.
    """

    def __init__(self, source: FrameSource, model: Model, min_score: float, paced: bool, opened: ExitStack) -> None:
        self.source = source
        self.model = model
        self.dropped = 0
        self._min_score = min_score
        self._paced = paced
        self._opened = opened

    @property
    def status(self) -> SourceStatus:
        """Counters of the source: frames, drops, faults, reconnections."""
        return self.source.status

    @property
    def skipped(self) -> list[tuple[str, str]]:
        """(name, reason) of what could not be read."""
        return self.source.skipped

    def __iter__(self) -> Iterator[tuple[Frame, ImageDetections]]:
        """Frame and detections; the frame's image is RGB. Leaving the loop closes the stream."""
        with self._opened:
            for frame in self._at_their_time() if self._paced else self.source:
                yield frame, self.model(frame.image, min_score=self._min_score)

    def close(self) -> None:
        """Leave the source, and free the model if it was loaded for this stream alone."""
        self._opened.close()

    def __enter__(self) -> Stream:
        """Itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close."""
        self.close()

    def _at_their_time(self) -> Iterator[Frame]:
        """Frames of a file as a camera would give them: not before their time, and none that is over already."""
        start = None
        waiting = None  # the newest frame whose time has come
        for frame in self.source:
            assert frame.time is not None
            start = time.monotonic() - frame.time if start is None else start
            early = start + frame.time - time.monotonic()
            if early > 0:
                if waiting is not None:
                    yield waiting
                time.sleep(max(0.0, start + frame.time - time.monotonic()))
                waiting = frame
            else:
                self.dropped += waiting is not None
                waiting = frame
        if waiting is not None:
            yield waiting


def stream(
    source: str | PathLike[str] | int,
    model: Model | str | PathLike[str],
    *,
    realtime: bool | None = None,
    start: int = 0,
    stride: int = 1,
    limit: int | None = None,
    rate: float | None = None,
    min_score: float = 0.0,
    live: LiveOptions | None = None,
) -> Stream:
    """Detect on frames one after another: ``for frame, detections in ptedge.stream("rtsp://...", model)``.

    A camera that falls silent or goes away is connected anew; logging's ``ptedge`` logger tells of it.

    Args:
        source: image, folder, glob pattern, list file, video, field folder; or live: a camera's number,
            ``rtsp://``, ``http://``, ``csi://0`` or a GStreamer pipeline.
        model: of :func:`ptedge.api.model.load`, or a path, which is loaded for this stream.
        realtime: drop frames that the model is too slow for, so that none is old; files then play at their own speed.
            ``False`` takes every frame. ``None``: realtime for live sources.
        start: frames to pass over first.
        stride: every so-many-th from there.
        limit: frames at most.
        rate: frames a second at most.
        min_score: leave out detections scored lower, 0 to 1.
        live: how a live source deals with faults; ``newest`` is set by ``realtime``.

    Raises:
        InputError: the source cannot be opened, or has no clock for ``realtime``; while iterating, that it has ended
            for good, or that not one of its frames can be read.
        PtedgeError: as :func:`ptedge.api.model.load`.
    """
    options = replace(live or LiveOptions(on_event=_tell), newest=realtime is not False)
    with ExitStack() as opened:
        frames = open_frames(str(source), start=start, stride=stride, limit=limit, rate=rate, live=options)
        opened.callback(frames.close)
        if realtime and frames.kind not in ("video", "live") and rate is None:
            raise InputError(
                f"realtime needs a video or a live source; {frames.spec} is a {frames.kind} without a clock. "
                "Give it one: rate=10"
            )
        detector = model if isinstance(model, Model) else opened.enter_context(load(model))
        return Stream(frames, detector, min_score, bool(realtime) and frames.kind != "live", opened.pop_all())
    raise AssertionError  # for type checkers: no exit of the stack swallows an error


def _tell(event: SourceEvent) -> None:
    log.log(logging.WARNING if event.kind in LOUD else logging.INFO, "%s", event.text)
