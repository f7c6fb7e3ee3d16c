"""What stands between two threads of the pipeline: bounded, with an end, and never a place to wait for ever.

A stage that fails or has enough *aborts* what it reads from, so that who writes there stops; and *ends* what it writes
to, so that who reads there finishes what waits and stops too. Nothing else is needed to take a pipeline apart.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class Channel(Generic[T]):
    """A queue of up to ``size`` items from one stage to the next."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._items: deque[T] = deque()
        self._ended = False
        self._changed = threading.Condition()

    def __len__(self) -> int:
        return len(self._items)

    def put(self, item: T) -> bool:
        """Wait for room and add an item; False when nobody wants it any more."""
        with self._changed:
            while len(self._items) >= self._size and not self._ended:
                self._changed.wait()
            if self._ended:
                return False
            self._items.append(item)
            self._changed.notify_all()
            return True

    def get(self, timeout: float | None = None) -> list[T] | None:
        """The next item in a list of one; an empty list after ``timeout`` seconds; ``None`` at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._items or self._ended, timeout)
            if self._items:
                item = self._items.popleft()
                self._changed.notify_all()
                return [item]
            return None if self._ended else []

    def __iter__(self) -> Iterator[T]:
        while (got := self.get()) is not None:
            yield from got

    def end(self) -> None:
        """No further item comes; those that wait can still be taken."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def abort(self) -> None:
        """As :meth:`end`, and what waits is thrown away."""
        with self._changed:
            self._ended = True
            self._items.clear()
            self._changed.notify_all()


class Lanes(Generic[T]):
    """Items of several sources on their way to one model: a bounded lane for each, served in turn.

    A fast source can therefore not keep a slow one waiting. With ``newest`` a lane holds one item, which the next one
    replaces; otherwise the source waits for room.

    Attributes:
        replaced: for each lane, items thrown out by a newer one.
    """

    def __init__(self, count: int, size: int, newest: bool = False) -> None:
        """Make empty lanes.

        Args:
            count: number of sources.
            size: items that may wait in a lane; 1 with ``newest``.
            newest: replace instead of waiting.
        """
        self._size = 1 if newest else size
        self._newest = newest
        self._lanes: list[deque[T]] = [deque() for _ in range(count)]
        self._open = set(range(count))
        self._aborted = False
        self._next = 0
        self._changed = threading.Condition()
        self.replaced = [0] * count

    def __len__(self) -> int:
        return sum(len(lane) for lane in self._lanes)

    def put(self, number: int, item: T) -> bool:
        """Add an item to a lane; False when nobody wants it any more."""
        lane = self._lanes[number]
        with self._changed:
            if self._newest:
                self.replaced[number] += len(lane)
                lane.clear()
            while len(lane) >= self._size and not self._aborted:
                self._changed.wait()
            if self._aborted:
                return False
            lane.append(item)
            self._changed.notify_all()
            return True

    def take(self, most: int, fill: float | None, timeout: float | None = None) -> list[tuple[int, T]] | None:
        """Up to ``most`` items in turn from the lanes.

        Args:
            most: items wanted, at least 1.
            fill: seconds to wait for further items once there is one; ``None`` waits until there are ``most`` or all
                sources have ended.
            timeout: seconds to wait for the first item; ``None`` for ever.

        Returns:
            (lane, item) of each, an empty list after ``timeout``, ``None`` when all sources have ended.
        """
        with self._changed:
            self._changed.wait_for(lambda: len(self) or self._closed(), timeout)
            if len(self) and fill != 0:
                self._changed.wait_for(lambda: self._enough(most) or self._closed(), fill)
            taken: list[tuple[int, T]] = []
            while len(taken) < most and len(self):
                if lane := self._lanes[self._next]:
                    taken.append((self._next, lane.popleft()))
                self._next = (self._next + 1) % len(self._lanes)
            if taken:
                self._changed.notify_all()
                return taken
            return None if self._closed() else []

    def pause(self, seconds: float) -> None:
        """Sleep, but no longer than until :meth:`abort`."""
        deadline = time.monotonic() + seconds
        with self._changed:
            while not self._aborted and (left := deadline - time.monotonic()) > 0:
                self._changed.wait(left)

    def end(self, number: int) -> None:
        """No further item comes from a source."""
        with self._changed:
            self._open.discard(number)
            self._changed.notify_all()

    def abort(self) -> None:
        """Throw away what waits; nothing is taken in any more."""
        with self._changed:
            self._aborted = True
            for lane in self._lanes:
                lane.clear()
            self._changed.notify_all()

    def _closed(self) -> bool:
        return self._aborted or not self._open

    def _enough(self, most: int) -> bool:
        # every lane that is still open may be full while their sum is less than wanted: then nothing more can come
        return len(self) >= most or all(len(self._lanes[i]) >= self._size for i in self._open)
