"""A request of a visitor, read strictly: whatever is not plain HTTP/1.1 is refused, not guessed at."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qs

LONGEST_HEAD = 16384  # bytes of request line and headers
LONGEST_LINE = 4096  # bytes of the request line
MOST_HEADERS = 64

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::\d{1,5})?")


class BadRequestError(Exception):
    """A request that is not answered.

    Attributes:
        code: HTTP status.
    """

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


@dataclass(frozen=True)
class Request:
    """What was asked.

    Attributes:
        method: as sent.
        path: as sent, without the query.
        query: names and values.
        headers: by name in small letters.
        host: that the visitor believes to speak to, without port and brackets, in small letters.
        stays: another request may come over the same connection.
    """

    method: str
    path: str
    query: Mapping[str, list[str]] = field(repr=False)  # it may hold the token
    headers: Mapping[str, str] = field(repr=False)
    host: str
    stays: bool

    @property
    def offered(self) -> str | None:
        """The token that came with it, in a header or in the address."""
        scheme, _, bearer = self.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return bearer.strip().encode("latin-1").decode("utf-8", "replace")
        return self.query["token"][0] if "token" in self.query else None


def parse_request(head: bytes) -> Request:
    """Read request line and headers.

    Args:
        head: up to and with the empty line.

    Raises:
        BadRequestError: with the status to answer.

    Reference: RFC 9112, sections 2, 3 and 6.
    """
    line, *rest = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    if len(line) > LONGEST_LINE:
        raise BadRequestError(414, f"the first line may have {LONGEST_LINE} bytes")
    method, target, version = _words(line)
    headers = _headers(rest)
    if "transfer-encoding" in headers or headers.get("content-length", "0") != "0":
        raise BadRequestError(405 if method != "GET" else 413, "only GET, without a body")
    named = _HOST.fullmatch(headers.get("host", "" if version == "HTTP/1.1" else "none"))
    if named is None:
        raise BadRequestError(400, "no host that can be one")
    path, _, query = target.partition("?")
    try:
        asked = parse_qs(query, max_num_fields=16)
    except ValueError:
        raise BadRequestError(400, "too many values") from None
    stays = version == "HTTP/1.1" and "close" not in headers.get("connection", "").lower() and method == "GET"
    return Request(method, path, asked, headers, named[1].strip("[]").lower(), stays)


def _words(line: str) -> tuple[str, str, str]:
    words = line.split(" ")
    if len(words) != 3 or not _TOKEN.fullmatch(words[0]) or not words[2].startswith("HTTP/"):
        raise BadRequestError(400, "no request")
    if words[2] not in ("HTTP/1.0", "HTTP/1.1"):
        raise BadRequestError(505, "only HTTP/1.1")
    if not words[1].startswith("/") or not all("!" <= character <= "~" for character in words[1]):
        raise BadRequestError(400, "no path")
    return words[0], words[1], words[2]


def _headers(lines: list[str]) -> dict[str, str]:
    if len(lines) > MOST_HEADERS:
        raise BadRequestError(431, f"a request may have {MOST_HEADERS} headers")
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        key, value = name.lower(), value.strip(" \t")
        if not colon or not _TOKEN.fullmatch(name) or any(c in value for c in "\r\n\0"):
            raise BadRequestError(400, "no header")
        if key in headers and key in ("host", "content-length", "authorization", "transfer-encoding"):
            raise BadRequestError(400, "a header twice")
        headers[key] = value
    return headers
