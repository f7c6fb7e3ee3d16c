"""Pictures over HTTP: Motion JPEG (``multipart/x-mixed-replace``) and cameras that answer with one picture at a time.

Motion JPEG is read here and not by OpenCV's FFmpeg. That one ends the stream at the first damaged picture, at bytes
between pictures and at a wrong length, and its timestamps take every stream for one of 25 frames a second (seen with
OpenCV 5.0). Any other kind of content is left to it.
"""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl
import time
import urllib.error
import urllib.request
from collections import deque
from typing import Any

from ptedge.errors import InputError
from ptedge.frames.address import mask_credentials, split_credentials
from ptedge.frames.multipart import MultipartParser
from ptedge.frames.status import LiveOptions, StreamError

PIECE = 1 << 16  # bytes asked for at a time
SNAPSHOT_EVERY = 0.2  # seconds between two single pictures if no rate is given
LONGEST_SNAPSHOT = 64 << 20

_STATUS = {
    401: "wants another user name or password",
    403: "does not allow it",
    404: "has nothing at this path",
    503: "is busy, perhaps with too many viewers",
}


class HttpStream:
    """One HTTP connection that gives encoded pictures.

    Attributes:
        fps: ``None``: HTTP does not tell.
    """

    fps: float | None = None

    def __init__(self, address: str, options: LiveOptions, rate: float | None = None) -> None:
        """Connect and read the header.

        Args:
            address: ``http://`` or ``https://``, with ``user:password@`` where needed (basic and digest).
            options: how long to wait.
            rate: pictures a second to ask a snapshot address for; ``None`` for 5.

        Raises:
            StreamError: no connection, or no success.
            OtherContentError: the content is of another kind, such as a video file or HLS.
        """
        self._address, self._options = address, options
        self._sockets: list[socket.socket] = []
        self._pictures: deque[bytes] = deque()
        # a slower rate is made by leaving out: a picture now and then shows that the camera is there
        self._every = min(1.0 / rate, options.stall / 2) if rate else SNAPSHOT_EVERY
        self._due = time.monotonic()
        self._opener = _opener(address, self._sockets)
        self._response = self._get()
        kind = self._response.headers.get_content_type()
        self._parser: MultipartParser | None = None
        if kind.startswith("multipart/"):
            self._parser = MultipartParser(self._response.headers.get_boundary())
        elif not kind.startswith("image/"):
            length = self._response.headers.get("Content-Length")
            self.close()
            raise OtherContentError(address, kind, finite=kind.startswith("video/") and length is not None)
        for connected in self._sockets:
            with contextlib.suppress(OSError):
                connected.settimeout(options.stall)

    def read(self) -> bytes:
        """The next picture as it came, encoded.

        Raises:
            StreamError: the connection ended, broke or gave no complete picture in time.
        """
        try:
            return self._next_part(self._parser) if self._parser is not None else self._next_snapshot()
        except TimeoutError:
            raise self._stalled() from None
        except (OSError, http.client.HTTPException, ValueError) as error:  # ValueError: closed meanwhile
            raise StreamError("lost", f"the connection broke: {_reason(error)}") from None

    def interrupt(self) -> None:
        """Make a read in progress end; from any thread."""
        for connected in self._sockets:
            with contextlib.suppress(OSError):
                connected.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the connection."""
        self.interrupt()
        with contextlib.suppress(OSError):
            self._response.close()

    def _next_part(self, parser: MultipartParser) -> bytes:
        deadline = time.monotonic() + self._options.stall
        while not self._pictures:
            if time.monotonic() > deadline:  # bytes come, but no picture gets complete
                raise self._stalled()
            data = self._response.read1(PIECE)
            if not data:
                raise StreamError("lost", "the server ended the stream")
            self._pictures.extend(parser.feed(data))
        return self._pictures.popleft()

    def _next_snapshot(self) -> bytes:
        time.sleep(max(0.0, self._due - time.monotonic()))
        self._due = max(self._due + self._every, time.monotonic())
        if self._response.closed:
            self._sockets.clear()
            self._response = self._get()
        with contextlib.closing(self._response) as response:
            return bytes(response.read(LONGEST_SNAPSHOT))

    def _get(self) -> Any:
        """The response to a request, header read."""
        bare, _, _ = split_credentials(self._address)
        try:
            request = urllib.request.Request(bare, headers={"User-Agent": "ptedge"})
            return self._opener.open(request, timeout=self._options.connect)
        except urllib.error.HTTPError as error:
            error.close()
            what = _STATUS.get(error.code, "refuses")
            raise StreamError("lost", f"the server {what} (HTTP {error.code} {error.reason})") from None
        except TimeoutError:
            raise StreamError("lost", f"no answer in {self._options.connect:g} s") from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise StreamError("lost", _reason(error)) from None

    def _stalled(self) -> StreamError:
        return StreamError("stalled", f"no picture in {self._options.stall:g} s")


class OtherContentError(InputError):
    """An address answers with something else than pictures.

    Attributes:
        finite: it is a video file of known length.
    """

    def __init__(self, address: str, kind: str, finite: bool) -> None:
        super().__init__(f"{mask_credentials(address)} gives {kind}, no pictures one after the other")
        self.finite = finite


def _opener(address: str, sockets: list[socket.socket]) -> urllib.request.OpenerDirector:
    """What sends requests: with user and password of the address, without a proxy, for cameras are near.

    Args:
        address: with credentials or without.
        sockets: gets every socket that is opened.
    """

    class Http(http.client.HTTPConnection):
        def connect(self) -> None:
            super().connect()
            sockets.append(self.sock)

    class Https(http.client.HTTPSConnection):
        def connect(self) -> None:
            super().connect()
            sockets.append(self.sock)

    class HttpHandler(urllib.request.HTTPHandler):
        def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
            return self.do_open(Http, req)

    class HttpsHandler(urllib.request.HTTPSHandler):
        def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
            return self.do_open(Https, req)

    bare, user, password = split_credentials(address)
    passwords = urllib.request.HTTPPasswordMgrWithDefaultRealm()
    if user is not None:
        passwords.add_password(None, bare, user, password or "")
    return urllib.request.build_opener(
        urllib.request.ProxyHandler({}),
        urllib.request.HTTPDigestAuthHandler(passwords),
        urllib.request.HTTPBasicAuthHandler(passwords),
        HttpHandler(),
        HttpsHandler(),
    )


def _reason(error: Exception) -> str:
    cause = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(cause, TimeoutError):
        return "no answer in time"
    if isinstance(cause, ssl.SSLCertVerificationError):
        return (
            f"its certificate is not trusted ({cause.verify_message}). If it is the camera's own, save it as a file "
            "and name that in the environment variable SSL_CERT_FILE"
        )
    text = (cause.strerror or str(cause)) if isinstance(cause, OSError) else str(cause)
    return mask_credentials(text or type(cause).__name__)
