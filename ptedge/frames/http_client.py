"""What sends requests to cameras: the login goes to its own origin only, and every socket can be shut from outside."""

from __future__ import annotations

import contextlib
import http.client
import socket
import urllib.request
from typing import Any
from urllib.parse import urlsplit

from ptedge.frames.address import parse_address

_PORTS = {"http": 80, "https": 443}


def request(address: str) -> urllib.request.Request:
    """A GET of an address, without its login.

    Raises:
        ValueError: it is no address.
    """
    return urllib.request.Request(parse_address(address).bare, headers={"User-Agent": "ptedge"})


def same_origin(first: str, second: str) -> bool:
    """Whether two addresses have the same scheme, host and port (RFC 6454)."""
    try:
        return _origin(first) == _origin(second)
    except ValueError:
        return False


def make_opener(address: str, sockets: list[socket.socket]) -> urllib.request.OpenerDirector:
    """What sends requests: with user and password of the address, without a proxy, for cameras are near.

    It follows redirections to http and https, up to ten, and knows no other kind of address. The login (basic or
    digest) is given to whoever asks for it at the origin of the address, also after a redirection there, and to nobody
    else: not to another host or port, nor to the same host without TLS.

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

    login = _OneLogin(address)
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.UnknownHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPRedirectHandler(),
        urllib.request.HTTPErrorProcessor(),
        _Digest(login),
        _Basic(login),
        HttpHandler(),
        HttpsHandler(),
    ):
        opener.add_handler(handler)
    return opener


class _Digest(urllib.request.HTTPDigestAuthHandler):
    def http_error_auth_reqed(self, auth_header: str, host: str, req: Any, headers: Any) -> Any:
        with contextlib.suppress(ValueError):  # asked for in another way: then it is a refusal like any other
            return super().http_error_auth_reqed(auth_header, host, req, headers)


class _Basic(urllib.request.HTTPBasicAuthHandler):
    def http_error_auth_reqed(self, authreq: str, host: str, req: Any, headers: Any) -> Any:
        with contextlib.suppress(ValueError):
            return super().http_error_auth_reqed(authreq, host, req, headers)


class _OneLogin(urllib.request.HTTPPasswordMgr):
    """The login of one address, for all of its origin."""

    def __init__(self, address: str) -> None:
        super().__init__()
        parts = parse_address(address)
        self._address, self._user, self._password = parts.bare, parts.user, parts.password

    def find_user_password(self, realm: str, authuri: str) -> tuple[str | None, str | None]:
        if self._user is None or not same_origin(authuri, self._address):
            return None, None
        return self._user, self._password or ""


def _origin(address: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(parse_address(address).bare)
    return parts.scheme, parts.hostname, parts.port or _PORTS.get(parts.scheme)
