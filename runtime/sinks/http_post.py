"""Detections sent over HTTP: POST of JSON Lines (``application/x-ndjson``)."""

from __future__ import annotations

import base64
import email.utils
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from http.client import HTTPException, HTTPMessage
from typing import IO
from urllib.parse import urlsplit

from ptedge.frames.address import MASK, foreign_text, mask_credentials

from ..push_address import parse_push_address
from .faults import fault_text
from .transport import LaterError, RefusedError

TIMEOUT = 10.0  # seconds for one attempt
LATER = frozenset({408, 425, 429})  # of the 4xx answers, those that mean "later"
NEVER = frozenset({501, 505})  # of the 5xx answers, those that do not
LONGEST_AFTER = 3600.0  # seconds of Retry-After that are believed
PORTS = {"http": 80, "https": 443}
HINTS = {
    401: "Look at the login or token",
    403: "Look at the login or token",
    404: "Look at the path",
    405: "Does it take POST there?",
    413: "It takes smaller bodies only",
}


class HttpTransport:
    """A :class:`ptedge.runtime.sinks.transport.Transport` to a web server."""

    def __init__(self, address: str, token: str | None = None, headers: Mapping[str, str] | None = None) -> None:
        """Prepare; nothing is sent yet.

        Args:
            address: ``http://`` or ``https://``, with ``user:password@`` where the server wants that.
            token: for ``Authorization: Bearer``; ``None`` for none.
            headers: further ones.
        """
        parts = parse_push_address(address)
        self._given, self._address, self._token = address, parts.url, token or ""
        self._headers = {"Content-Type": "application/x-ndjson", "User-Agent": "ptedge", **(headers or {})}
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token}"
        elif parts.user is not None:
            pair = base64.b64encode(f"{parts.user}:{parts.password or ''}".encode()).decode("ascii")
            self._headers["Authorization"] = f"Basic {pair}"
        self._opener = urllib.request.build_opener(_SameOrigin)

    def send(self, lines: Sequence[bytes]) -> None:
        """Send lines in one request."""
        body = b"".join(line + b"\n" for line in lines)
        request = urllib.request.Request(self._address, body, self._headers, method="POST")
        try:
            with self._opener.open(request, timeout=TIMEOUT) as answer:
                answer.read1(1 << 16)
        except urllib.error.HTTPError as error:
            with error:
                self._judge(error)
        except (OSError, HTTPException) as error:
            raise OSError(fault_text(error, self._given)) from None

    def close(self) -> None:
        """Nothing is left to do."""

    def _judge(self, error: urllib.error.HTTPError) -> None:
        """Whether an answer means later or never."""
        text = f"the server answers {error.code} {self._shown(str(error.reason))}".rstrip()
        if error.code in LATER or (error.code >= 500 and error.code not in NEVER):
            raise LaterError(text, retry_after(error.headers.get("Retry-After"), time.time()))
        if 300 <= error.code < 400:
            where = self._shown(error.headers.get("Location") or "nowhere")
            raise RefusedError(f"{text}, to {where}. The login is not taken there: give that address to --push")
        raise RefusedError(f"{text}. {HINTS[error.code]}" if error.code in HINTS else text)

    def _shown(self, text: str) -> str:
        shown = foreign_text(mask_credentials(text, self._given), self._given)
        return shown.replace(self._token, MASK) if self._token else shown


class _SameOrigin(urllib.request.HTTPRedirectHandler):
    """Follows 307 and 308, which keep the POST, within one origin; the login goes nowhere else."""

    http_error_308 = urllib.request.HTTPRedirectHandler.http_error_302  # Python 3.10 lacks it

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> urllib.request.Request | None:
        if code not in (307, 308) or origin(newurl) != origin(req.full_url):
            return None
        return urllib.request.Request(newurl, req.data, req.headers, method="POST")


def origin(address: str) -> tuple[str, str | None, int | None] | None:
    """Scheme, host and port of an address (RFC 6454); ``None`` where there is none, or a login with it."""
    try:
        parts = urlsplit(address)
        port = parts.port or PORTS.get(parts.scheme)
    except ValueError:
        return None
    return (parts.scheme, parts.hostname, port) if "@" not in parts.netloc else None


def retry_after(text: str | None, now: float) -> float:
    """Seconds that a server asks to wait: 0 when it does not, or not in a way that can be read; an hour at most.

    Args:
        text: of the header, seconds or a date.
        now: Unix seconds.

    Reference: RFC 9110, section 10.2.3.
    """
    if text is None:
        return 0.0
    text = text.strip()
    if text.isascii() and text.isdecimal():
        return min(float(text[:9]), LONGEST_AFTER)
    try:
        seconds = email.utils.parsedate_to_datetime(text).timestamp() - now
    except (TypeError, ValueError, OverflowError):
        return 0.0
    return min(max(seconds, 0.0), LONGEST_AFTER)
