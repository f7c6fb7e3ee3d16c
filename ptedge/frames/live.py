"""A live source that does not end: read on a thread of its own, watched, and connected anew after every fault."""

from __future__ import annotations

import atexit
import math
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ptedge.errors import InputError, PtedgeError
from ptedge.frames.address import mask_credentials
from ptedge.frames.connections import Connection, connect
from ptedge.frames.formats.jpeg import jpeg_has_end
from ptedge.frames.images import decode_image
from ptedge.frames.sequence import Frame
from ptedge.frames.status import LiveOptions, SourceLog, SourceStatus, StreamError
from ptedge.frames.video import to_rgb


@dataclass(frozen=True)
class _Waiting:
    """A frame as it came: its number over all connections, when (monotonic and Unix seconds), and what."""

    number: int
    arrived: float
    wall: float
    picture: bytes | NDArray[np.uint8]


FREE_AFTER = 0.5  # seconds that closing waits for the thread that reads


class LiveStream:
    """Frames of a live source, whatever happens to its connections.

    A thread connects, reads, and after a fault waits and connects again. Who takes frames watches it: a thread that is
    stuck inside a driver is left behind and replaced by another.
    """

    def __init__(
        self,
        address: str,
        options: LiveOptions,
        status: SourceStatus,
        accept: Callable[[int, float], bool] = lambda number, seconds: True,
        connector: Callable[[], Connection] | None = None,
    ) -> None:
        """Prepare; :meth:`open` connects.

        Args:
            address: camera, stream address or pipeline.
            options: how to deal with faults.
            status: kept up to date.
            accept: tells from its number and its seconds since the first whether a frame is wanted.
            connector: makes connections; by default :func:`connect` to the address.
        """
        self.fps: float | None = None
        self._name, self._options, self._status, self._accept = mask_credentials(address), options, status, accept
        self._log = SourceLog(self._name, status, options.on_event)
        self._connector = connector or (lambda: connect(address, options))
        self._changed = threading.Condition()
        self._waiting: deque[_Waiting] = deque()
        self._generation = 0  # of the reading thread; older ones end when they notice
        self._connection: Connection | None = None
        self._connected = False  # once at least
        self._taking = False  # once at least
        self._failed = 0  # attempts in a row without a frame
        self._fruitless = True  # no frame came over the present connection
        self._first: float | None = None  # arrival of the first frame
        self._alive = 0.0  # the last sign of life: connecting, connected, usable frame
        self._lost_at: float | None = None
        self._fatal: Exception | None = None
        self._threads: list[threading.Thread] = []

    def open(self) -> None:
        """Start; unless ``options.patient`` wait for the first connection.

        Raises:
            InputError: it cannot be opened.
            BackendError: this OpenCV lacks GStreamer.
        """
        # a thread still inside OpenCV when the interpreter ends would abort the process
        atexit.register(self._wait_for_threads, _grace(self._options.stall))
        self._start(0.0)
        if self._options.patient:
            return
        with self._changed:
            self._changed.wait_for(
                lambda: self._connected or self._status.state == "ended", _grace(self._options.connect)
            )
            if not self._connected and self._fatal is None:
                self._end(self._refused(f"no connection in {self._options.connect:g} s"))
        if self._fatal is not None:
            self.close()
            raise self._fatal

    def take(self) -> Frame | None:
        """The next frame: waits for it; ``None`` when no other will come.

        Raises:
            InputError: no connection after as many attempts as ``options.attempts`` allows.
        """
        began = time.monotonic()
        while (waiting := self._next(began)) is not None:
            try:
                picture = waiting.picture
                image = decode_image(picture, "a frame") if isinstance(picture, bytes) else to_rgb(picture)
            except InputError as error:
                self._log.left_out(waiting.number, str(error).partition(". ")[0])
                continue
            self._alive = time.monotonic()
            height, width = image.shape[:2]
            self._log.sized(width, height)
            self._status.delivered += 1
            assert self._first is not None
            time_of = waiting.arrived - self._first
            return Frame(image, waiting.number, time_of, self._name, None, waiting.arrived, waiting.wall)
        return None

    def close(self) -> None:
        """End; from any thread. Who waits in :meth:`take` gets ``None``.

        The camera is free again on return, unless it is just not answering: then it takes up to ``options.stall``.
        """
        self._wait_for_threads(FREE_AFTER)

    def _wait_for_threads(self, seconds: float) -> None:
        """End, and give the threads time to notice."""
        with self._changed:
            if self._status.state != "ended":
                self._end(None)
        until = time.monotonic() + seconds
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(max(0.0, until - time.monotonic()))
        if not any(thread.is_alive() for thread in self._threads):
            atexit.unregister(self._wait_for_threads)

    def _next(self, began: float) -> _Waiting | None:
        """What waits, first come first; meanwhile watch the thread that reads."""
        with self._changed:
            self._taking = True
            while True:
                if self._waiting:
                    self._changed.notify_all()
                    return self._waiting.popleft()
                if self._status.state == "ended":
                    if self._fatal is not None:
                        raise self._fatal
                    return None
                limit = math.inf
                if self._status.state != "waiting":
                    patience = self._options.connect if self._status.state == "connecting" else self._options.stall
                    limit = max(self._alive, began) + _grace(patience)
                if time.monotonic() >= limit:
                    self._leave_behind()
                    began = time.monotonic()
                    continue
                self._changed.wait(min(1.0, max(0.0, limit - time.monotonic())))

    def _leave_behind(self) -> None:
        """Replace a thread that neither gives a usable frame nor reports a fault."""
        if self._connection is not None:
            self._connection.interrupt()
        connecting = self._status.state == "connecting"
        seconds = self._options.connect if connecting else self._options.stall
        wait = self._lost(StreamError("stalled", f"no {'answer' if connecting else 'usable frame'} in {seconds:g} s"))
        if wait is not None:
            self._start(wait)

    def _start(self, wait: float) -> None:
        with self._changed:
            self._generation += 1
            self._connection = None
            self._alive = time.monotonic()
            self._status.state = "waiting" if wait else "connecting"
            thread = threading.Thread(target=self._run, args=(self._generation, wait), daemon=True, name="live source")
        self._threads = [*(other for other in self._threads if other.is_alive()), thread]
        thread.start()

    def _run(self, generation: int, wait: float | None) -> None:
        """Connect and read until the source ends or another thread takes over."""
        while wait is not None:
            with self._changed:
                if self._changed.wait_for(lambda: not self._in_charge(generation), wait):
                    return
                self._status.state, self._alive = "connecting", time.monotonic()
            try:
                self._read(generation)
                wait = None
            except StreamError as fault:
                with self._changed:
                    wait = self._lost(fault) if self._in_charge(generation) else None
            except Exception as error:  # crosses to who takes frames
                with self._changed:
                    if self._in_charge(generation):
                        self._end(error)
                return

    def _read(self, generation: int) -> None:
        """One connection from beginning to end.

        Raises:
            StreamError: it could not be made, or broke.
        """
        connection = self._connector()
        try:
            with self._changed:
                if not self._in_charge(generation):
                    return
                self._open_again(connection)
            while self._in_charge(generation):
                picture = connection.read()
                with self._changed:
                    if not self._in_charge(generation):
                        return
                    self._arrive(generation, picture)
        finally:
            connection.close()

    def _open_again(self, connection: Connection) -> None:
        self._connection, self.fps = connection, connection.fps
        self._status.state, self._alive = "running", time.monotonic()
        self._status.reconnects += self._connected
        if self._connected:
            self._log.tell("reconnected", "connected again")
        else:
            self._log.tell("connected", "connected")
        self._connected = self._fruitless = True
        self._changed.notify_all()

    def _arrive(self, generation: int, picture: bytes | NDArray[np.uint8]) -> None:
        now, status = time.monotonic(), self._status
        if self._first is None:
            self._first = now
        if self._lost_at is not None:
            status.outage += now - self._lost_at
            self._lost_at = None
        waiting = _Waiting(status.frames, now, time.time(), picture)
        status.frames += 1
        status.arrived = now
        self._failed, self._fruitless = 0, False
        if isinstance(picture, bytes) and _is_cut(picture):  # seen here, lest a newer frame hides it
            self._log.left_out(waiting.number, "its data is cut short")
            return
        if not self._accept(waiting.number, now - self._first):
            status.passed += 1
            self._alive = now
            return
        if self._options.newest:
            if self._waiting:
                self._waiting.clear()
                status.dropped += self._taking
                status.passed += not self._taking  # nobody has asked for frames yet
        else:
            full = self._options.buffer
            self._changed.wait_for(lambda: len(self._waiting) < full or not self._in_charge(generation))
        self._waiting.append(waiting)
        self._changed.notify_all()

    def _lost(self, fault: StreamError) -> float | None:
        """Take note of a fault. Returns seconds to wait before the next attempt; None when there is to be none."""
        status, text = self._status, str(fault)
        if status.state == "connecting":
            status.failures += 1
            self._failed += 1
        else:
            status.stalls += fault.kind == "stalled"
            self._failed += self._fruitless
            self._log.tell(fault.kind, text)
            if self._lost_at is None:
                self._lost_at = status.arrived or time.monotonic()
        status.error = mask_credentials(text)
        most = self._options.attempts
        if not self._connected and not self._options.patient:
            self._end(self._refused(text))
            return None
        if most is not None and self._failed >= most:
            self._end(InputError(f"{self._name}: no connection in {most} attempts; the last: {status.error}"))
            return None
        status.state, self._connection = "waiting", None
        return self._options.wait(self._failed + 1)

    def _end(self, error: Exception | None) -> None:
        if error is not None and not isinstance(error, PtedgeError):
            self._status.error = mask_credentials(str(error))
        self._fatal = error
        self._status.state = "ended"
        self._log.tell("ended", str(error).removeprefix(f"{self._name}: ") if error is not None else "closed")
        if self._connection is not None:
            self._connection.interrupt()
        self._changed.notify_all()

    def _refused(self, text: str) -> InputError:
        return InputError(f"{self._name} cannot be opened: {mask_credentials(text)}")

    def _in_charge(self, generation: int) -> bool:
        return generation == self._generation and self._status.state != "ended"


def _grace(seconds: float) -> float:
    """How long to wait for a thread that ought to report by itself after so many seconds."""
    return 1.25 * seconds + 0.25


def _is_cut(data: bytes) -> bool:
    return not data or (data[:2] == b"\xff\xd8" and not jpeg_has_end(data))
