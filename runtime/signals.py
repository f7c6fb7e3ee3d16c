"""Ctrl-C and SIGTERM: the first asks the run to end and finish its files, the second ends the process at once.

Python calls its handlers between two of its own instructions, so not while the main thread waits inside the model or a
driver; and of two equal signals that come meanwhile it sees one. Therefore a thread counts them as well, told by the
interpreter's wake-up descriptor, and ends the process where the main thread does not.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)
GRACE = 0.3  # seconds


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
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    watcher = threading.Thread(target=_watch, args=(ours,), name="ptedge-signals", daemon=True)
    watcher.start()
    woken = signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
    before = {number: signal.signal(number, handle) for number in SIGNALS}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(woken)
        theirs.close()
        watcher.join()
        ours.close()


def _watch(numbers: socket.socket) -> None:
    """End the process a moment after the second signal; the moment is for the main thread to do so itself."""
    seen = 0
    while data := numbers.recv(1):
        seen += data[0] in SIGNALS
        if seen == 2:
            time.sleep(GRACE)
            os._exit(128 + data[0])
