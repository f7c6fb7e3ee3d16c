"""Ctrl-C and SIGTERM: the first asks the loop to end and finish its files, the second ends the process at once."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import FrameType


@dataclass
class Stop:
    """A request to end.

    Attributes:
        event: set when the loop should end.
        signal: number of the signal that asked, 0 for none.
    """

    event: threading.Event = field(default_factory=threading.Event)
    signal: int = 0

    @property
    def exit_status(self) -> int:
        """0, or 128 + signal as a shell reports it (130 after Ctrl-C, 143 after SIGTERM)."""
        return 128 + self.signal if self.signal else 0


@contextlib.contextmanager
def stop_on_signals() -> Iterator[Stop]:
    """Turn SIGINT and SIGTERM into a :class:`Stop` inside the block; outside the main thread nothing is installed."""
    stop = Stop()

    def handle(number: int, frame: FrameType | None) -> None:
        if stop.signal:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        stop.signal = number
        stop.event.set()

    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
