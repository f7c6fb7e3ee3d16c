"""A limit to the bytes a second, so that an upload leaves room for what else uses the line."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

PIECE = 64 << 10  # bytes sent between two looks at the clock
_AT_ONCE = 0.25  # seconds' worth of bytes that may go in one burst


class Pace:
    """Lets bytes go at a rate, over all threads that share it.

    Args:
        rate: bytes a second; ``None`` for no limit.
        clock: seconds that pass.
        sleep: waits so many seconds.
    """

    def __init__(
        self,
        rate: float | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self.rate = rate
        self._clock, self._sleep = clock, sleep
        self._lock = threading.Lock()
        self._free = clock()  # moment from which on the line is free

    def spend(self, count: int) -> None:
        """Wait until so many bytes may go.

        Args:
            count: bytes about to be sent, or just received.
        """
        if self.rate is None:
            return
        with self._lock:
            now = self._clock()
            self._free = max(self._free, now - _AT_ONCE) + count / self.rate
            wait = self._free - now
        if wait > 0:
            self._sleep(wait)
