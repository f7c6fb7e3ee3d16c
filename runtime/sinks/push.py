"""Detections sent to another machine: on a thread of its own, with a bounded queue, so that the run never waits for it.

What cannot be sent is tried again, longer apart each time; meanwhile the queue drops its oldest lines and counts them.
What the other side refuses is not tried again, and the next lines wait as after a fault. A line may arrive twice (an
answer got lost), never twice in a row without a fault.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from typing import Any

from ptedge.frames.address import mask_credentials

from ..options import PushOptions
from ..push_address import HTTP, parse_push_address
from .files import Result
from .transport import LaterError, RefusedError, Transport

WAITING = 1000  # lines in the queue at most
BATCH, BATCH_BYTES = 50, 512_000  # lines and bytes sent together at most: web servers take 1 MB, few less
FIRST_WAIT, LONGEST_WAIT = 0.5, 30.0  # seconds between attempts
LONGEST_REFUSED = 300.0  # seconds between attempts while the other side refuses
CLOSING = 5.0  # seconds at the end to send what waits
MOST_TOLD = 5  # different faults that are told on the terminal; the report has the last one

FULL, ENDED = "dropped, the queue was full", "dropped, the run ended before they could be sent"


class PushSink:
    """Sends each result as its line of ``detections.jsonl``.

    Attributes:
        path: where to, without credentials.
        sent: lines that the other side took.
        dropped: lines that were never sent: the queue was full, or the run ended.
        refused: lines that the other side refused.
        retries: failed attempts.
        why: what became of lines that did not arrive -> how many.
        error: what went wrong last; empty when nothing.
    """

    def __init__(self, to: str, transport: Transport, tell: Callable[[str], None] = lambda text: None) -> None:
        """Start.

        Args:
            to: address.
            transport: brings lines there.
            tell: told of each new fault once, from any thread.
        """
        self.path = mask_credentials(to)
        self.sent, self.dropped, self.refused, self.retries = 0, 0, 0, 0
        self.why: Counter[str] = Counter()
        self.error = ""
        self._transport, self._tell = transport, tell
        self._told: set[str] = set()
        self._lines: deque[bytes] = deque()
        self._sending: tuple[bytes, ...] = ()
        self._wait = FIRST_WAIT
        self._end: float | None = None  # when closing gives up
        self._given_up = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="ptedge-push", daemon=True)
        self._thread.start()

    def write(self, result: Result) -> None:
        """Queue one result; never waits."""
        with self._changed:
            full = len(self._lines) >= WAITING
            if full:
                self._lines.popleft()
                self._lose(1, FULL)
            self._lines.append(result.text.encode("utf-8"))
            self._changed.notify_all()
        if full:
            self._tell_once("overflow", f"{WAITING} results wait already, so the oldest are dropped")

    def close(self) -> None:
        """Send what waits, for five seconds at most; the rest counts as dropped."""
        with self._changed:
            self._end = time.monotonic() + CLOSING
            self._wait = FIRST_WAIT
            self._changed.notify_all()
        self._thread.join(CLOSING)
        with self._changed:
            self._given_up = True
            self._lose(len(self._lines) + len(self._sending), ENDED)
            self._lines.clear()
            self._sending = ()
            self._changed.notify_all()
        self._transport.close()

    def to_json(self) -> dict[str, Any]:
        """The counters."""
        names = ("sent", "dropped", "refused", "retries", "error")
        numbers = {name: getattr(self, name) for name in names}
        return {"to": self.path, "waiting": len(self._lines), **numbers, "why": dict(self.why)}

    def _run(self) -> None:
        while lines := self._take():
            fault, refused, after = self._attempt(lines)
            with self._changed:
                if self._sending is not lines:  # closed meanwhile
                    return
                if fault:
                    self.retries += 1
                else:
                    self._sending = ()
                    self.sent += 0 if refused else len(lines)
                    self.refused += len(lines) if refused else 0
                if not (fault or refused):
                    self._wait = FIRST_WAIT
                    continue
                self.error = fault or refused
                if refused:
                    self.why[f"refused, {refused}" if len(self.why) < 2 * MOST_TOLD else "refused"] += len(lines)
            self._tell_once(self.error, self.error + ("; not sent again" if refused else "; trying again"))
            if not self._pause(after):
                return
            self._wait = min(2 * self._wait, LONGEST_REFUSED if refused else LONGEST_WAIT)

    def _take(self) -> tuple[bytes, ...]:
        """The lines to send now, those of a failed attempt first; none when the run has ended."""
        with self._changed:
            self._changed.wait_for(lambda: self._lines or self._sending or self._end is not None)
            if not self._sending:
                taken, size = list[bytes](), 0
                while self._lines and len(taken) < BATCH and (not taken or size + len(self._lines[0]) <= BATCH_BYTES):
                    taken.append(self._lines.popleft())
                    size += len(taken[-1])
                self._sending = tuple(taken)
            return self._sending

    def _attempt(self, lines: tuple[bytes, ...]) -> tuple[str, str, float]:
        """Send lines. What went wrong for now, what for good, and the seconds that the other side asks to wait."""
        try:
            self._transport.send(lines)
        except LaterError as error:
            return str(error), "", error.after
        except OSError as error:
            return mask_credentials(str(error) or type(error).__name__), "", 0.0
        except RefusedError as error:
            return "", mask_credentials(str(error)), 0.0
        except Exception as error:  # the same lines would fail the same way again
            return "", mask_credentials(f"{type(error).__name__}: {error}"), 0.0
        return "", "", 0.0

    def _pause(self, after: float) -> bool:
        """Wait before the next attempt: shorter when the run ends meanwhile, but never less than was asked for.

        Returns:
            Whether there is a next attempt.
        """
        began = time.monotonic()
        with self._changed:
            while not self._given_up:
                due = began + max(self._wait, after)  # closing makes the wait the first again
                if self._end is not None and due >= self._end:
                    return False
                if (left := due - time.monotonic()) <= 0:
                    return True
                self._changed.wait(left)
            return False

    def _lose(self, count: int, why: str) -> None:
        if count:
            self.dropped += count
            self.why[why] += count

    def _tell_once(self, about: str, text: str) -> None:
        if about not in self._told and len(self._told) < MOST_TOLD:
            self._told.add(about)
            self._tell(f"push to {self.path}: {text}")


def open_push(options: PushOptions, model_hash: str, tell: Callable[[str], None] = lambda text: None) -> PushSink:
    """Open a push sink.

    Args:
        options: of the user.
        model_hash: sent along in the header ``X-Ptedge-Model`` (HTTP only).
        tell: told of faults.

    Raises:
        MissingExtraError: MQTT without paho-mqtt.
    """
    if parse_push_address(options.to).scheme in HTTP:
        from .http_post import HttpTransport

        return PushSink(options.to, HttpTransport(options.to, options.token, {"X-Ptedge-Model": model_hash}), tell)
    from .mqtt import MqttTransport

    return PushSink(options.to, MqttTransport(options.to), tell)
