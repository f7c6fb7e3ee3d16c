"""Signals that ask to end: SIGINT (Ctrl-C), SIGTERM and SIGHUP, for every command and from its first moment.

Until a command has something to finish, the first signal ends the process. Inside :func:`finishing` the first one only
asks, and the second ends the process at once. Nothing depends on what the system does by default: for the first process
of a container that is nothing at all.

Python calls its handlers between two of its own instructions, so not while the main thread waits inside the model or a
driver; and of two equal signals that come meanwhile it sees one. Therefore a thread counts them as well, told by the
interpreter's wake-up descriptor, and ends the process where the main thread does not.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType

SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
HANGUP = getattr(signal, "SIGHUP", None)
FIRST_GRACE = 1.5  # seconds that the main thread has to end by itself when there is nothing to finish
SECOND_GRACE = 0.3  # the same after a second signal

TOLD = "ending: files are being finished. Once more to end at once"


class EndedError(SystemExit):
    """Raised in the main thread when a signal comes and nothing is to be finished.

    Attributes:
        name: of the signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__(128 + number)
        self.name = signal.Signals(number).name


class Stop:
    """A request to end.

    Attributes:
        event: set when the loop should end.
        signal: number of the signal that asked, 0 for none.
    """

    def __init__(self) -> None:
        self.event = threading.Event()
        self.signal = 0

    @property
    def exit_status(self) -> int:
        """0, or 128 + signal as a shell reports it (129 after SIGHUP, 130 after Ctrl-C, 143 after SIGTERM)."""
        return 128 + self.signal if self.signal else 0


def watch() -> None:
    """Take the signals over for the rest of the process; once is enough, and on another thread nothing happens.

    A hang-up that is ignored already, as under ``nohup``, stays ignored.
    """
    if _Watch.current is None and threading.current_thread() is threading.main_thread():
        _Watch.current = _Watch()


def unwatch() -> None:
    """Give the signals back to whom they were taken from."""
    if _Watch.current is not None:
        _Watch.current.close()
        _Watch.current = None


@contextlib.contextmanager
def finishing(told: str = TOLD, again: Callable[[], None] | None = None) -> Iterator[Stop]:
    """A block that has files to finish: the first signal only asks it to end.

    Works alone as well: then the signals are given back after it. On another thread nothing is taken over.

    Args:
        told: said on stderr at the first signal.
        again: called at the second one, right before the process ends: to end other processes, too.

    Yields:
        The request, for the block to look at.
    """
    if threading.current_thread() is not threading.main_thread():
        yield Stop()
        return
    alone = _Watch.current is None
    watch()
    watching = _Watch.current
    assert watching is not None
    watching.blocks.append((told, again))
    try:
        yield watching.stop
    finally:
        watching.blocks.pop()
        if alone:
            unwatch()


class _Watch:
    """Handlers and the counting thread.

    Attributes:
        current: the one that is in place.
        forks: children are taken care of.
        stop: what was asked.
        blocks: that have something to finish, and what they want said and done.
    """

    current: _Watch | None = None
    forks: bool = False  # they are told, once for all: that cannot be taken back

    def __init__(self) -> None:
        self.stop = Stop()
        self.blocks: list[tuple[str, Callable[[], None] | None]] = []
        taken = [n for n in SIGNALS if n != HANGUP or signal.getsignal(n) != signal.SIG_IGN]
        self._before = {number: signal.signal(number, self._handle) for number in taken}
        import socket  # after the handlers, which should come first: a signal before them is lost

        self._ours, self._theirs = socket.socketpair()
        self._theirs.setblocking(False)
        self._woken = signal.set_wakeup_fd(self._theirs.fileno(), warn_on_full_buffer=False)
        self._thread = threading.Thread(target=self._count, name="ptedge-signals", daemon=True)
        self._thread.start()
        if not _Watch.forks and hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=_in_child)
            _Watch.forks = True

    def close(self) -> None:
        """Give everything back."""
        for number, handler in self._before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._woken)
        self._theirs.close()
        self._thread.join()
        self._ours.close()

    def _handle(self, number: int, frame: FrameType | None) -> None:
        first = not self.stop.signal
        if not first:
            self._end(number)
        self.stop.signal = number
        self.stop.event.set()
        if not self.blocks:
            raise EndedError(number)
        _say(f"\n{signal.Signals(number).name}: {self.blocks[-1][0]}\n")

    def _end(self, number: int) -> None:
        """End now, by the signal itself where the system has an action for it."""
        self._call_again()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        os._exit(128 + number)

    def _call_again(self) -> None:
        for _, again in self.blocks:
            if again is not None:
                with contextlib.suppress(Exception):
                    again()

    def _count(self) -> None:
        """End the process a moment after a signal that should have ended it; the moment is for the main thread."""
        seen, last, wait = 0, 0, None
        while True:
            self._ours.settimeout(wait)
            try:
                data = self._ours.recv(1)
            except TimeoutError:
                if seen == 1 and self.blocks:  # the handler came later than the block
                    wait = None
                    continue
                self._call_again()
                os._exit(128 + last)
            if not data:
                return
            if data[0] in self._before:
                seen, last = seen + 1, data[0]
                wait = SECOND_GRACE if seen > 1 else None if self.blocks else FIRST_GRACE


def _in_child() -> None:
    """A fork shares the descriptor, and what reaches the child is not for the parent to count."""
    if _Watch.current is not None:
        _Watch.current = None
        signal.set_wakeup_fd(-1)
        leave_to_parent()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def leave_to_parent(also_term: bool = False) -> None:
    """Ignore, in a worker process, what a terminal sends to the whole group: the main process alone ends the run.

    Args:
        also_term: SIGTERM as well, which a service manager sends to the whole group.
    """
    for number in SIGNALS:
        if also_term or number != signal.SIGTERM:
            signal.signal(number, signal.SIG_IGN)


def _say(text: str) -> None:
    """A line on stderr out of a handler: it may come in the middle of another one, which then goes first."""
    with contextlib.suppress(OSError, ValueError, RuntimeError, AttributeError):
        sys.stderr.write(text)
        sys.stderr.flush()
