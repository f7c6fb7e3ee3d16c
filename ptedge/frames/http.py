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
import threading
import time
import urllib.error
from collections import deque
from typing import Any

from ptedge.errors import InputError
from ptedge.frames.address import foreign_text, mask_credentials, parse_address
from ptedge.frames.http_client import make_opener, request, same_origin
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
        self._opener = make_opener(address, self._sockets)
        self._response = self._get()
        kind = self._response.headers.get_content_type()
        self._parser: MultipartParser | None = None
        if kind.startswith("multipart/"):
            self._parser = MultipartParser(self._response.headers.get_boundary())
        elif not kind.startswith("image/"):
            length = self._response.headers.get("Content-Length")
            self.close()
            raise OtherContentError(
                address, foreign_text(kind, address), finite=kind.startswith("video/") and length is not None
            )
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
            raise StreamError("lost", f"the connection broke: {_reason(error, self._address)}") from None

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
        deadline, data = time.monotonic() + self._options.stall, bytearray()
        with contextlib.closing(self._response) as response:
            while piece := response.read1(PIECE):
                data += piece
                if time.monotonic() > deadline:  # bytes come, but the picture does not get complete
                    raise self._stalled()
                if len(data) > LONGEST_SNAPSHOT:
                    raise StreamError("lost", f"a picture is longer than {LONGEST_SNAPSHOT >> 20} MiB")
        return bytes(data)

    def _get(self) -> Any:
        """The response to a request, header read."""
        # the limit of a socket counts from the last byte: one that sends its header byte by byte would never reach it
        late = threading.Event()

        def end() -> None:
            late.set()
            self.interrupt()

        watch = threading.Timer(self._options.connect, end)
        watch.daemon = True
        watch.start()
        try:
            return self._opener.open(request(self._address), timeout=self._options.connect)
        except urllib.error.HTTPError as error:
            error.close()
            what = _STATUS.get(error.code, "refuses")
            if error.code == 401 and error.url is not None and not same_origin(error.url, self._address):
                what += f" after it sent us on to another server. Give that address: {mask_credentials(error.url)}"
            said = foreign_text(str(error.reason), self._address)
            raise StreamError(
                "lost", f"the server {what} (HTTP {error.code} {said}){parse_address(self._address).hint}"
            ) from None
        except TimeoutError:
            raise StreamError("lost", f"no answer in {self._options.connect:g} s") from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            if late.is_set() and not isinstance(error, urllib.error.URLError):
                raise StreamError("lost", f"no answer in {self._options.connect:g} s") from None
            raise StreamError("lost", _reason(error, self._address) + parse_address(self._address).hint) from None
        finally:
            watch.cancel()

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


def _reason(error: Exception, address: str) -> str:
    if parse_address(address).doubtful:  # its host may be a part of a password
        return "it cannot be reached"
    cause = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(cause, TimeoutError):
        return "no answer in time"
    if isinstance(cause, ssl.SSLCertVerificationError):
        return (
            f"its certificate is not trusted ({cause.verify_message}). If it is the camera's own, save it as a file "
            "and name that in the environment variable SSL_CERT_FILE"
        )
    text = (cause.strerror or str(cause)) if isinstance(cause, OSError) else str(cause)
    return foreign_text(text or type(cause).__name__, address)
