"""``ptedge run --serve``: the live page, its pictures and numbers, and Prometheus' ``/metrics``, over HTTP.

By default only this machine can connect. Any other address needs a token. Nothing can be changed from outside: there is
only GET, of five fixed names.
"""

from __future__ import annotations

import hmac
import json
import socket
import threading
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from typing import Any
from urllib.parse import parse_qs, urlsplit

from ptedge.errors import InputError

from ..options import ServeOptions, is_loopback
from .status import CONTENT_TYPE, RunStatus
from .view import LiveView

CONNECTIONS = 32  # at the same time; more are turned away
IDLE = 15.0  # seconds without a word after which a connection is closed
PICTURE_WAIT = 2.0  # seconds that a request for a picture waits for a newer one

# what a browser may do with the page: run what is in it, ask this server, and nothing else
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class LiveServer:
    """Serves until closed, on threads of its own.

    Attributes:
        address: to open in a browser, without the token.
    """

    def __init__(self, options: ServeOptions, status: RunStatus, view: LiveView, names: Sequence[str]) -> None:
        """Listen.

        Args:
            options: where, and for whom.
            status: of the run.
            view: its pictures.
            names: of the sources.

        Raises:
            InputError: the address is in use or not of this machine.
        """
        keys = {name: name if len(names) > 1 else "" for name in names}
        pages = _Pages(
            status, view, keys, options.token, resources.files(__package__).joinpath("live.html").read_bytes()
        )
        handler = type("Handler", (_Handler,), {"pages": pages})
        try:
            self._server = _server_class(options.host)((options.host, options.port), handler)
        except OSError as error:
            where = f"{options.shown_host}:{options.port}"
            raise InputError(f"cannot serve on {where}: {error.strerror or error}. Choose another port") from None
        self.address = f"http://{options.shown_host}:{self._server.server_address[1]}/"
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.2,), name="ptedge-serve", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """End; open connections are left to die with the process."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True

    def __init__(self, *arguments: Any) -> None:
        self._places = threading.BoundedSemaphore(CONNECTIONS)
        super().__init__(*arguments)

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._places.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A visitor who leaves in the middle is no news."""


def _server_class(host: str) -> type[_Server]:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return type("Server", (_Server,), {"address_family": family})


class _Pages:
    """What there is to see, by path."""

    def __init__(self, status: RunStatus, view: LiveView, keys: dict[str, str], token: str | None, page: bytes) -> None:
        self.status, self.view, self.keys, self.page = status, view, keys, page
        self.token = token.encode("utf-8") if token is not None else None

    def allowed(self, offered: str | None, host: str | None) -> bool:
        """Whether a visitor may come in.

        Without a token, the address in the browser must be this machine: a page from elsewhere may give its own name
        the address 127.0.0.1 and so reach servers that listen there alone.
        """
        if self.token is not None:
            return offered is not None and hmac.compare_digest(offered.encode("utf-8", "replace"), self.token)
        return host is not None and is_loopback(urlsplit(f"//{host}").hostname or "")

    def answer(self, path: str, query: dict[str, list[str]]) -> tuple[int, str, bytes, dict[str, str]]:
        """RunStatus, content type, body and further headers."""
        if path == "/":
            return 200, "text/html; charset=utf-8", self.page, {}
        if path == "/status.json":
            text = json.dumps(self.status.to_json(), ensure_ascii=False)
            return 200, "application/json; charset=utf-8", text.encode("utf-8"), {}
        if path == "/metrics":
            return 200, CONTENT_TYPE, self.status.metrics().encode("utf-8"), {}
        if path == "/frame.jpg":
            return self._picture(query)
        if path == "/favicon.ico":
            return 204, "image/x-icon", b"", {}
        return 404, "text/plain", b"not found\n", {}

    def _picture(self, query: dict[str, list[str]]) -> tuple[int, str, bytes, dict[str, str]]:
        source = query.get("source", [next(iter(self.keys))])[0]
        after = query.get("after", ["-1"])[0]
        if source not in self.keys or not after.removeprefix("-").isdecimal() or len(after) > 18:
            return 404, "text/plain", b"not found\n", {}
        picture = self.view.picture(self.keys[source], int(after), PICTURE_WAIT)
        if picture is None:
            return 204, "image/jpeg", b"", {}
        return 200, "image/jpeg", picture.jpeg, {"X-Frame-Number": str(picture.number)}


class _Handler(BaseHTTPRequestHandler):
    pages: _Pages
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "ptedge", ""
    timeout = IDLE

    def do_GET(self) -> None:
        """Answer."""
        parts = urlsplit(self.path)
        query = parse_qs(parts.query)
        scheme, _, bearer = self.headers.get("Authorization", "").partition(" ")
        offered = bearer if scheme.lower() == "bearer" else query.get("token", [None])[0]
        if not self.pages.allowed(offered, self.headers.get("Host")):
            text = b"a token is needed: open /?token=TOKEN\n" if self.pages.token else b"not for this host name\n"
            self._send(401 if self.pages.token else 403, "text/plain", text, {})
            return
        self._send(*self.pages.answer(parts.path, query))

    def _refuse(self) -> None:
        self.close_connection = True  # a body may follow, which nobody reads
        self._send(405, "text/plain", b"only GET\n", {"Allow": "GET"})

    do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = _refuse  # noqa: N815

    def _send(self, code: int, kind: str, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(code)
        for name, value in {**HEADERS, **headers, "Content-Type": kind, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        if code == 401:
            self.send_header("WWW-Authenticate", "Bearer")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Silence: stderr belongs to the run."""
