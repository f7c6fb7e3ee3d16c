"""An MJPEG camera over HTTP for tests: its faults are switched on while it runs."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import http.server
import socket
import ssl
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Any

import cv2
import numpy as np

BOUNDARY = "frame"


def jpeg(number: int, size: tuple[int, int] = (64, 48)) -> bytes:
    """A picture of one grey, by which frames can be told apart: 4 for each number, from 20, again after 50 numbers."""
    grey = 20 + 4 * (number % 50)
    ok, data = cv2.imencode(".jpg", np.full((size[1], size[0], 3), grey, np.uint8))
    assert ok
    return data.tobytes()


def number_in(image: Any) -> int:
    """The number that :func:`jpeg` wrote, modulo 50."""
    return round((float(image.mean()) - 20) / 4)


class MjpegServer:
    """A camera on 127.0.0.1.

    Attributes:
        port: where it listens; kept over :meth:`stop` and :meth:`start`.
        every: seconds between frames.
        size: (width, height) of the pictures.
        sent: frames sent so far, over all connections.
        requests: requests so far.
        stalled: while set, connections stay open and nothing is sent.
        corrupt: every so-many-th picture is cut in half, its length being right; 0 for none.
        garbage: every so-many-th part is bytes of no meaning instead, without a head; 0 for none.
        trickle: send one byte of a picture every so many seconds; 0 for whole pictures.
        wrong_length: add to the announced length.
        with_length: announce a length.
        announced: boundary as the header names it.
        login: (user, password) to ask for; with ``digest`` hashed.
        frames: end the stream after so many in a connection; ``None`` for never.
        moved: where requests for /moved are sent on to; ``None`` for 404.
        logins: what each request gave as ``Authorization``; empty where nothing.
        certificate: PEM file with certificate and key, for ``https://``; ``None`` for ``http://``.
    """

    def __init__(self, port: int = 0, **settings: Any) -> None:
        self.port = port
        self.every, self.size = 0.02, (64, 48)
        self.sent, self.requests = 0, 0
        self.stalled = False
        self.corrupt, self.garbage, self.trickle, self.wrong_length, self.with_length = 0, 0, 0.0, 0, True
        self.announced = BOUNDARY
        self.login: tuple[str, str] | None = None
        self.digest = False
        self.frames: int | None = None
        self.certificate: Path | None = None
        self.moved: str | None = None
        self.logins: list[str] = []
        for name, value in settings.items():
            assert hasattr(self, name), name
            setattr(self, name, value)
        self._open: list[socket.socket] = []
        self._server: http.server.ThreadingHTTPServer | None = None
        self._running = False

    @property
    def url(self) -> str:
        """Address of the stream."""
        return f"http{'s' if self.certificate else ''}://127.0.0.1:{self.port}/stream"

    def __enter__(self) -> MjpegServer:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def start(self) -> None:
        """Listen, at the same port as before."""
        camera = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                camera.requests += 1
                camera._open.append(self.connection)
                camera.logins.append(self.headers.get("Authorization", ""))
                try:
                    if camera._admits(self):
                        camera._answer(self)
                except OSError:
                    self.close_connection = True

            def log_message(self, format: str, *args: object) -> None:
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            block_on_close = False

            def handle_error(self, request: Any, client_address: Any) -> None:
                pass

        self._server = Server(("127.0.0.1", self.port), Handler)
        self.port = self._server.server_address[1]
        if self.certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self.certificate)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._running = True
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def stop(self) -> None:
        """As a power cut: connections break, and nothing listens."""
        if self._server is None:
            return
        self._running = False
        self._server.shutdown()
        self._server.server_close()
        self._server = None
        while self._open:
            connection = self._open.pop()
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()

    def _answer(self, handler: http.server.BaseHTTPRequestHandler) -> None:
        if handler.path.startswith("/picture"):
            data = jpeg(self.sent, self.size)
            self.sent += 1
            self._head(handler, "image/jpeg", len(data))
            self._send(handler, data)
        elif handler.path == "/moved" and self.moved is not None:
            handler.send_response(302)
            handler.send_header("Location", self.moved)
            handler.send_header("Content-Length", "0")
            handler.end_headers()
        elif handler.path == "/text":
            self._head(handler, "text/html", 2)
            handler.wfile.write(b"hi")
        elif handler.path.startswith("/stream"):
            self._head(handler, f"multipart/x-mixed-replace; boundary={self.announced}", None)
            self._stream(handler)
        else:
            handler.send_error(404)

    def _stream(self, handler: http.server.BaseHTTPRequestHandler) -> None:
        count = 0
        while self._running and count != self.frames:
            if self.stalled:
                time.sleep(0.01)
                continue
            data, damaged = jpeg(self.sent, self.size), self._due(self.corrupt)
            if self._due(self.garbage):
                handler.wfile.write(bytes(range(256)) * 4)
            else:
                data = data[: len(data) // 2] if damaged else data
                length = f"Content-Length: {len(data) + self.wrong_length}\r\n" if self.with_length else ""
                handler.wfile.write(f"--{BOUNDARY}\r\nContent-Type: image/jpeg\r\n{length}\r\n".encode())
                self._send(handler, data)
                handler.wfile.write(b"\r\n")
            self.sent += 1
            count += 1
            time.sleep(self.every)
        handler.close_connection = True

    def _send(self, handler: http.server.BaseHTTPRequestHandler, data: bytes) -> None:
        position = 0
        while position < len(data) and self._running:
            step = 1 if self.trickle else len(data)
            handler.wfile.write(data[position : position + step])
            position += step
            time.sleep(self.trickle)

    def _due(self, every: int) -> bool:
        return every > 0 and self.sent % every == every - 1

    def _head(self, handler: http.server.BaseHTTPRequestHandler, kind: str, length: int | None) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", kind)
        if length is not None:
            handler.send_header("Content-Length", str(length))
        handler.end_headers()

    def _admits(self, handler: http.server.BaseHTTPRequestHandler) -> bool:
        if self.login is None:
            return True
        user, password = self.login
        given = handler.headers.get("Authorization", "")
        if self.digest:
            wanted, challenge = self._digest(given), 'Digest realm="camera", nonce="abc", qop="auth"'
        else:
            wanted = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
            challenge = 'Basic realm="camera"'
        if given and given == wanted:
            return True
        handler.send_response(401)
        handler.send_header("WWW-Authenticate", challenge)
        handler.send_header("Content-Length", "0")
        handler.end_headers()
        return False

    def _digest(self, given: str) -> str:
        """The header as it came if its response is the right one, else nothing."""
        assert self.login is not None
        fields = dict(part.strip().split("=", 1) for part in given.removeprefix("Digest ").split(",") if "=" in part)
        fields = {name: value.strip('"') for name, value in fields.items()}

        def md5(text: str) -> str:
            return hashlib.md5(text.encode()).hexdigest()

        first = md5(f"{self.login[0]}:camera:{self.login[1]}")
        second = md5(f"GET:{fields.get('uri')}")
        expected = md5(f"{first}:abc:{fields.get('nc')}:{fields.get('cnonce')}:auth:{second}")
        return given if fields.get("response") == expected else ""
