from __future__ import annotations

import pytest

from ptedge.runtime.page.request import BadRequestError, parse_request


def head(line: str = "GET / HTTP/1.1", *headers: str, host: str | None = "localhost:80") -> bytes:
    given = [line, *([f"Host: {host}"] if host is not None else []), *headers]
    return ("\r\n".join(given) + "\r\n\r\n").encode("latin-1")


def test_parse_request__parts() -> None:
    request = parse_request(head("GET /frame.jpg?source=a%20b&after=3&token=x%2By HTTP/1.1", "X-Y:  z "))
    assert (request.method, request.path, request.host, request.stays) == ("GET", "/frame.jpg", "localhost", True)
    assert request.query == {"source": ["a b"], "after": ["3"], "token": ["x+y"]}
    assert request.headers["x-y"] == "z" and request.offered == "x+y"


@pytest.mark.parametrize(
    ("headers", "query", "offered"),
    [
        (["Authorization: Bearer abc"], "", "abc"),
        (["authorization: bEARER  abc "], "?token=other", "abc"),
        (["Authorization: Basic abc"], "?token=in+address", "in address"),
        ([], "?token=", None),
        ([], "", None),
        ([], "?token=first&token=second", "first"),
    ],
)
def test_parse_request__the_token_offered(headers: list[str], query: str, offered: str | None) -> None:
    request = parse_request(head(f"GET /{query} HTTP/1.1", *headers))
    assert request.offered == offered
    assert offered is None or offered not in repr(request)  # it is never shown


def test_parse_request__whether_another_may_follow() -> None:
    assert not parse_request(head("GET / HTTP/1.0")).stays
    assert not parse_request(head("GET / HTTP/1.1", "Connection: Close")).stays
    assert not parse_request(head("POST / HTTP/1.1")).stays


@pytest.mark.parametrize(
    ("host", "name"), [("127.0.0.1", "127.0.0.1"), ("[::1]:8080", "::1"), ("LocalHost:1", "localhost")]
)
def test_parse_request__host(host: str, name: str) -> None:
    assert parse_request(head(host=host)).host == name


@pytest.mark.parametrize(
    "host",
    [None, "", "a b", "evil@127.0.0.1", "127.0.0.1/x", "127.0.0.1:80:80", "127.0.0.1#", "[::1", "localhost:x", "a,b"],
)
def test_parse_request__no_host(host: str | None) -> None:
    with pytest.raises(BadRequestError, match="no host") as caught:
        parse_request(head(host=host))
    assert caught.value.code == 400


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("GET http://127.0.0.1/ HTTP/1.1", 400),
        ("GET * HTTP/1.1", 400),
        ("GET /\xff HTTP/1.1", 400),
        ("GET /\t HTTP/1.1", 400),
        ("GET / HTTP/1.1 x", 400),
        ("GET  / HTTP/1.1", 400),
        ("GET /", 400),
        ("", 400),
        ("G(T / HTTP/1.1", 400),
        ("GET / http/1.1", 400),
        ("PRI * HTTP/2.0", 505),
        ("GET / HTTP/0.9", 505),
        ("GET /" + "a" * 4096 + " HTTP/1.1", 414),
        ("GET /?" + "&".join(f"a{i}=b" for i in range(40)) + " HTTP/1.1", 400),
    ],
)
def test_parse_request__first_lines_that_are_refused(line: str, code: int) -> None:
    with pytest.raises(BadRequestError) as caught:
        parse_request(head(line))
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        (["X"], 400),
        ([" X: y"], 400),
        (["X : y"], 400),
        (["X: a\nb"], 400),
        (["X: a\0b"], 400),
        (["Host: other"], 400),
        (["Authorization: Bearer a", "authorization: Bearer b"], 400),
        (["Content-Length: 1"], 413),
        (["Content-Length: 0", "Content-Length: 0"], 400),
        (["Transfer-Encoding: chunked"], 413),
        (["X: y"] * 100, 431),
    ],
)
def test_parse_request__headers_that_are_refused(headers: list[str], code: int) -> None:
    with pytest.raises(BadRequestError) as caught:
        parse_request(head("GET / HTTP/1.1", *headers))
    assert caught.value.code == code
