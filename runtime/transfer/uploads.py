"""A few uploads beside the work that prepares them."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")
_LOOK = 0.1  # seconds between two looks at whether an upload failed


class Uploads(Generic[T, R]):
    """Hands things to threads that send them. Leaving it waits for what is under way, after an error too, so that who
    tries again does not meet it; a signal alone waits for nothing, and what is half sent then is no object anywhere.

    Args:
        send: sends one thing.
        at_once: threads; as many things are under way, and one more waits.

    Attributes:
        sent: what ``send`` gave back, in the order in which they ended.
    """

    def __init__(self, send: Callable[[T], R], at_once: int) -> None:
        self.sent: list[R] = []
        self._send = send
        self._waiting: queue.Queue[T | None] = queue.Queue(maxsize=1)
        self._error: BaseException | None = None
        # they end with the program: a signal must not wait for a slow line
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(at_once)]
        for thread in self._threads:
            thread.start()

    def give(self, thing: T | None) -> None:
        """Hand over a thing, as soon as there is room.

        Args:
            thing: to send.

        Raises:
            Exception: what went wrong with an earlier one.
        """
        while True:
            if self._error is not None:
                raise self._error
            try:
                self._waiting.put(thing, timeout=_LOOK)
                return
            except queue.Full:
                continue

    def __enter__(self) -> Uploads[T, R]:
        """Itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Wait for all that was given, or after an error for what is under way."""
        if kind is None:
            with contextlib.suppress(Exception):  # of an earlier thing: told below
                for _thread in self._threads:
                    self.give(None)
        else:
            self._error = self._error or RuntimeError("left")  # threads take nothing more
        if kind is None or issubclass(kind, Exception):
            for thread in self._threads:
                while thread.is_alive():
                    thread.join(_LOOK)
        if kind is None and self._error is not None:
            raise self._error

    def _work(self) -> None:
        while self._error is None:
            try:
                thing = self._waiting.get(timeout=_LOOK)
            except queue.Empty:
                continue
            if thing is None:
                return
            try:
                self.sent.append(self._send(thing))
            except BaseException as error:  # told by the thread that gives
                self._error = self._error or error
