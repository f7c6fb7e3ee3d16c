"""When a run looks at its deployment: at equal times, less often while that fails, and never all devices at once."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from typing import Any

OF_A_FOLDER, OF_A_BUCKET = 2.0, 60.0  # seconds between two looks
LONGEST = 1800.0  # seconds that a failing look is put off
SPREAD = 0.25  # share of a pause by which it is longer or shorter, so that devices that began together part
BETWEEN = 2.0  # seconds between two looks at what needs nothing of the place
LEAVE = 10.0  # seconds that the last look gets


class Looks:
    """A thread that looks again and again.

    Attributes:
        count: of looks.
        failed: of them, those that failed.
    """

    def __init__(
        self,
        look: Callable[[], None],
        between: Callable[[], None],
        name: str,
        log: Callable[[str], None],
        seconds: float,
    ) -> None:
        """Prepare; nothing happens before :meth:`start`.

        Args:
            look: what is done; it raises where it cannot be done now.
            between: done every two seconds; it asks the place for something at times only.
            name: of what is looked at.
            log: told when it cannot be, and when it can again.
            seconds: between two looks.
        """
        self._look, self._between = look, between
        self._name, self._log, self._seconds = name, log, seconds
        self.count = self.failed = 0
        self._in_row = 0
        self._since: float | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ptedge-deployment", daemon=True)

    @property
    def stopped(self) -> bool:
        """Whether it was told to stop."""
        return self._stop.is_set()

    def start(self) -> None:
        """Look from now on."""
        self._thread.start()

    def stop(self) -> bool:
        """Look no more.

        Returns:
            Whether the last look is over; one that waits for a store is left alone, as the program must end.
        """
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join(LEAVE)
        return not self._thread.is_alive()

    def once(self) -> None:
        """Look, and count."""
        self.count += 1
        try:
            self._look()
        except Exception as error:  # what runs goes on, whatever becomes of the place
            self.fail(error)
        else:
            if self._since is not None:
                self._log(f"{self._name} is followed again, after {self._in_row} looks that failed")
            self._in_row, self._since = 0, None

    def fail(self, error: Exception) -> None:
        """Note a look that failed; the first one in a row is told.

        Args:
            error: why.
        """
        self.failed += 1
        self._in_row += 1
        if self._since is None:
            self._since = time.time()
            self._log(f"{self._name} cannot be followed; what runs goes on: {error}")

    def to_json(self) -> dict[str, Any]:
        """``looks``, ``failed_looks``, and ``away_since`` in Unix seconds, ``None`` unless the last look failed."""
        since = round(self._since, 3) if self._since is not None else None
        return {"looks": self.count, "failed_looks": self.failed, "away_since": since}

    def pause(self) -> float:
        """Seconds until the next look."""
        longest = max(LONGEST, self._seconds)
        return min(self._seconds * 2.0 ** min(self._in_row, 20), longest) * random.uniform(1 - SPREAD, 1 + SPREAD)

    def _run(self) -> None:
        while not self.stopped:
            end = time.monotonic() + self.pause()
            while (left := end - time.monotonic()) > 0:
                if self._stop.wait(min(left, BETWEEN)):
                    return
                try:
                    self._between()
                except Exception as error:
                    self.fail(error)
            self.once()
