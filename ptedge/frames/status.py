"""What a source of frames tells about itself while it runs, and how a live source deals with faults."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ptedge.errors import InputError
from ptedge.frames.address import mask_credentials

EventKind = Literal["connected", "lost", "stalled", "reconnected", "resized", "corrupt", "ended"]
State = Literal["idle", "connecting", "running", "waiting", "ended"]

EVENTS_KEPT = 100
CORRUPT_EVERY = 10.0  # seconds between two events of this kind


class StreamError(Exception):
    """One connection of a live source cannot be made or cannot go on; caught where connections are made anew.

    Attributes:
        kind: ``lost`` or ``stalled``.
    """

    def __init__(self, kind: Literal["lost", "stalled"], text: str) -> None:
        super().__init__(text)
        self.kind: Literal["lost", "stalled"] = kind


@dataclass(frozen=True)
class SourceEvent:
    """Something happened to a live source.

    Attributes:
        kind: ``connected`` (first time), ``lost`` (connection broke or ended), ``stalled`` (no frame in time),
            ``reconnected``, ``resized`` (frames have another size from here on), ``corrupt`` (frames are
            undecodable and left out; told once in ten seconds at most), ``ended`` (no further frame will come).
        text: one sentence for a log, credentials masked.
        time: Unix seconds.
    """

    kind: EventKind
    text: str
    time: float


@dataclass
class SourceStatus:
    """Counters of one source, updated while frames are taken; safe to read from any thread at any time.

    Every frame that arrived was delivered, dropped or corrupt; one may still wait.

    Attributes:
        state: ``idle`` (not opened yet), ``connecting``, ``running``, ``waiting`` (before the next attempt), ``ended``.
        frames: arrived from the source, whatever became of them.
        delivered: given to who iterates.
        dropped: replaced by a newer frame before anyone took them.
        corrupt: left out because they could not be decoded.
        dim: image files of 16 bits that use only the lowest twelve, so that they come out nearly black.
        passed: passed over because of ``start``, ``stride`` or ``rate``.
        reconnects: connections made after the first.
        stalls: times that no frame came within ``LiveOptions.stall``.
        failures: attempts to connect that failed, all together.
        resizes: times the frame size changed.
        size: (width, height) of the last frame; ``None`` before the first.
        arrived: ``time.monotonic()`` of the last frame; ``None`` before the first.
        outage: seconds without a frame in all losses and stalls so far, each from the last frame before it.
        error: the last fault in one sentence, empty if none so far; credentials masked.
        events: the latest events, oldest first.
    """

    state: State = "idle"
    frames: int = 0
    delivered: int = 0
    dropped: int = 0
    corrupt: int = 0
    dim: int = 0
    passed: int = 0
    reconnects: int = 0
    stalls: int = 0
    failures: int = 0
    resizes: int = 0
    size: tuple[int, int] | None = None
    arrived: float | None = None
    outage: float = 0.0
    error: str = ""
    events: deque[SourceEvent] = field(default_factory=lambda: deque(maxlen=EVENTS_KEPT))

    def reset(self, state: State = "idle") -> None:
        """Begin anew.

        Args:
            state: to begin with.
        """
        vars(self).update(vars(SourceStatus(state=state)))

    def to_json(self) -> dict[str, Any]:
        """The counters for a report, without events and without ``arrived``, which means nothing to others."""
        left_out = {"events", "arrived", "size"}
        counters = {name: value for name, value in vars(self).items() if name not in left_out}
        counters["outage"] = round(self.outage, 3)
        return counters | {"size": list(self.size) if self.size else None}


@dataclass(frozen=True)
class LiveOptions:
    """How a live source is opened, watched and opened again.

    The wait before attempt n after a loss is ``first_wait * 2**(n - 1)`` seconds, at most ``longest_wait``; it starts
    anew with the first frame that arrives.

    Attributes:
        newest: keep only the newest frame for who iterates and count the others as dropped, so that no frame is older
            than the time between two frames. Otherwise up to ``buffer`` frames wait, and a full buffer makes the source
            wait.
        buffer: frames that may wait if not ``newest``.
        connect: seconds to make a connection.
        stall: seconds without a usable frame after which the connection is given up and made anew.
        first_wait: seconds before the first new attempt.
        longest_wait: seconds between attempts at most.
        attempts: attempts in a row that may fail before the source ends with an error; ``None``: it never does.
        patient: treat the very first connection as all later ones. Otherwise a source that cannot be opened at the
            beginning is an error at once: a wrong address should not wait for ever.
        login_file: logins by host (:mod:`ptedge.frames.login`); ``None`` for the one that ``PTEDGE_SOURCE_AUTH_FILE``
            names, if any.
        on_event: called with every event, on the thread that notices it; it must return soon and not raise.
    """

    newest: bool = True
    buffer: int = 8
    connect: float = 10.0
    stall: float = 5.0
    first_wait: float = 0.5
    longest_wait: float = 30.0
    attempts: int | None = None
    patient: bool = False
    login_file: Path | None = None
    on_event: Callable[[SourceEvent], None] | None = None

    def __post_init__(self) -> None:
        """Refuse what makes no sense.

        Raises:
            InputError: a time that is not above 0, or a count below 1.
        """
        for name in ("connect", "stall", "first_wait", "longest_wait"):
            value = getattr(self, name)
            if not 0 < value < math.inf:
                raise InputError(f"live source: {name} is {value}; it must be a number of seconds above 0")
        if self.buffer < 1 or (self.attempts is not None and self.attempts < 1):
            raise InputError(f"live source: buffer {self.buffer}, attempts {self.attempts}: they must be at least 1")

    def wait(self, attempt: int) -> float:
        """Seconds to wait before an attempt.

        Args:
            attempt: 1 for the first after a loss.
        """
        return min(self.longest_wait, self.first_wait * 2.0 ** min(attempt - 1, 60))


class SourceLog:
    """Writes what happens to a source into its status, and tells who listens."""

    def __init__(self, name: str, status: SourceStatus, on_event: Callable[[SourceEvent], None] | None) -> None:
        """Begin.

        Args:
            name: of the source; every text begins with it.
            status: gets counters and events.
            on_event: called with each event.
        """
        self._name, self._status, self._on_event = name, status, on_event
        self._told_of_corrupt = -math.inf

    def tell(self, kind: EventKind, text: str) -> None:
        """Something happened.

        Args:
            kind: of event.
            text: what; credentials in it are masked here.
        """
        event = SourceEvent(kind, mask_credentials(f"{self._name}: {text}"), time.time())
        self._status.events.append(event)
        if self._on_event is not None:
            self._on_event(event)

    def left_out(self, number: int, why: str) -> None:
        """A frame could not be decoded. All are counted; told of are only some, as a bad cable damages thousands."""
        self._status.corrupt += 1
        now = time.monotonic()
        if now - self._told_of_corrupt >= CORRUPT_EVERY:
            self._told_of_corrupt = now
            self.tell("corrupt", f"frame {number} left out: {why} ({self._status.corrupt} so far)")

    def sized(self, width: int, height: int) -> None:
        """A frame of this size was taken."""
        before, self._status.size = self._status.size, (width, height)
        if before is not None and before != (width, height):
            self._status.resizes += 1
            self.tell("resized", f"frames are {width}x{height} now, {before[0]}x{before[1]} before")
