"""Detections sent to another machine: on a thread of its own, with a bounded queue, so that the run never waits for it.

What cannot be sent is tried again, longer apart each time; meanwhile the queue drops its oldest lines and counts them.
A line may arrive twice (an answer got lost), never twice in a row without a fault.
"""

from __future__ import annotations

import base64
import threading
import urllib.error
import urllib.request
from collections import deque
from collections.abc import Mapping, Sequence
from http.client import HTTPException, HTTPMessage
from typing import IO, Any, Protocol
from urllib.parse import urlsplit

from ptedge.frames.address import mask_credentials, split_credentials

from ..options import PushOptions
from .files import Result

WAITING = 1000  # lines in the queue at most
BATCH = 50  # lines sent together at most
TIMEOUT = 10.0  # seconds for one attempt
FIRST_WAIT, LONGEST_WAIT = 0.5, 30.0  # seconds between attempts
CLOSING = 5.0  # seconds at the end to send what waits
AGAIN = frozenset({408, 425, 429})  # of the 4xx answers, those that mean "later"


class RefusedError(Exception):
    """The other side does not want these lines, now or later."""


class Transport(Protocol):
    """Brings lines somewhere."""

    def send(self, lines: Sequence[bytes]) -> None:
        """Send lines.

        Args:
            lines: JSON documents; the same object again after a failed attempt.

        Raises:
            OSError: not now; try again.
            RefusedError: not these.
        """
        ...

    def close(self) -> None:
        """End the connection."""
        ...


class PushSink:
    """Sends each result as its line of ``detections.jsonl``.

    Attributes:
        path: where to, without credentials.
        sent: lines that the other side took.
        dropped: lines that were never sent: the queue was full, or the run ended.
        refused: lines that the other side refused.
        retries: failed attempts.
        error: what went wrong last; empty when nothing.
    """

    def __init__(self, to: str, transport: Transport) -> None:
        self.path = mask_credentials(to)
        self.sent, self.dropped, self.refused, self.retries = 0, 0, 0, 0
        self.error = ""
        self._transport = transport
        self._lines: deque[bytes] = deque()
        self._sending: tuple[bytes, ...] = ()
        self._closing = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="ptedge-push", daemon=True)
        self._thread.start()

    def write(self, result: Result) -> None:
        """Queue one result; never waits."""
        with self._changed:
            if len(self._lines) >= WAITING:
                self._lines.popleft()
                self.dropped += 1
            self._lines.append(result.text.encode("utf-8"))
            self._changed.notify_all()

    def close(self) -> None:
        """Send what waits, for five seconds at most; the rest counts as dropped."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join(CLOSING)
        with self._changed:
            self.dropped += len(self._lines) + len(self._sending)
            self._lines.clear()
            self._sending = ()
        self._transport.close()

    def to_json(self) -> dict[str, Any]:
        """The counters."""
        names = ("sent", "dropped", "refused", "retries", "error")
        return {"to": self.path, "waiting": len(self._lines), **{name: getattr(self, name) for name in names}}

    def _run(self) -> None:
        wait = FIRST_WAIT
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._lines or self._sending or self._closing)
                if not self._sending:
                    self._sending = tuple(self._lines.popleft() for _ in range(min(BATCH, len(self._lines))))
                if not self._sending:
                    return
                lines = self._sending
            sent, refused = 0, 0
            try:
                self._transport.send(lines)
                sent, wait = len(lines), FIRST_WAIT
            except RefusedError as error:
                refused, self.error = len(lines), mask_credentials(str(error))
            except (OSError, HTTPException) as error:
                self.retries += 1
                self.error = mask_credentials(str(error) or type(error).__name__)
            with self._changed:
                if self._sending is not lines:  # closed meanwhile
                    return
                if sent or refused:
                    self.sent, self.refused, self._sending = self.sent + sent, self.refused + refused, ()
                    continue
                self._changed.wait_for(lambda: self._closing, wait)
                wait = min(wait * 2, LONGEST_WAIT) if not self._closing else FIRST_WAIT


class HttpTransport:
    """POST of JSON Lines (``application/x-ndjson``)."""

    def __init__(self, address: str, token: str | None = None, headers: Mapping[str, str] | None = None) -> None:
        """Prepare; nothing is sent yet.

        Args:
            address: ``http://`` or ``https://``, with ``user:password@`` where the server wants that.
            token: for ``Authorization: Bearer``; ``None`` for none.
            headers: further ones.
        """
        self._address, user, password = split_credentials(address)
        self._headers = {"Content-Type": "application/x-ndjson", **(headers or {})}
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token}"
        elif user is not None:
            pair = base64.b64encode(f"{user}:{password or ''}".encode()).decode("ascii")
            self._headers["Authorization"] = f"Basic {pair}"
        # a redirected POST would become a GET, and credentials would go to whoever the answer names
        self._opener = urllib.request.build_opener(_NoRedirect)

    def send(self, lines: Sequence[bytes]) -> None:
        """Send lines in one request."""
        body = b"".join(line + b"\n" for line in lines)
        request = urllib.request.Request(self._address, body, self._headers, method="POST")
        try:
            with self._opener.open(request, timeout=TIMEOUT) as answer:
                answer.read(1 << 16)
        except urllib.error.HTTPError as error:  # an OSError too: 5xx is tried again
            error.close()
            if error.code < 500 and error.code not in AGAIN:
                raise RefusedError(f"the server answers {error.code} {error.reason}") from None
            raise

    def close(self) -> None:
        """Nothing is left to do."""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> None:
        return None


def open_push(options: PushOptions, model_hash: str) -> PushSink:
    """Open a push sink.

    Args:
        options: of the user.
        model_hash: sent along in the header ``X-Ptedge-Model`` (HTTP only).

    Raises:
        MissingExtraError: MQTT without paho-mqtt.
    """
    if urlsplit(options.to).scheme in ("http", "https"):
        return PushSink(options.to, HttpTransport(options.to, options.token, {"X-Ptedge-Model": model_hash}))
    from .mqtt import MqttTransport

    return PushSink(options.to, MqttTransport(options.to))
