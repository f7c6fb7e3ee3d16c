from __future__ import annotations

import base64
import http.client
import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from pipeline_fakes import a_result as result
from pipeline_fakes import wait_for

from ptedge.runtime.options import PushOptions
from ptedge.runtime.sinks.http_post import HttpTransport, origin, retry_after
from ptedge.runtime.sinks.push import open_push
from ptedge.runtime.sinks.transport import LaterError, RefusedError


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A server that answers with the codes given, then 204, and remembers what it got."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr("ptedge.runtime.sinks.push.FIRST_WAIT", 0.01)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self.server.got.append((self.path, dict(self.headers), body))
            code = self.server.codes.pop(0) if self.server.codes else 204
            self.send_response(code, self.server.phrase)
            for name, value in self.server.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server: Any = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.got, server.codes, server.headers, server.phrase = [], [], {}, None
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_http__posts_lines_with_sigma_and_token(web: Any) -> None:
    sink = open_push(PushOptions(f"http://127.0.0.1:{web.server_address[1]}/in", token="the token"), "hash")
    sink.write(result(3))
    sink.close()
    ((path, headers, body),) = web.got
    assert path == "/in" and headers["Authorization"] == "Bearer the token" and headers["X-Ptedge-Model"] == "hash"
    assert headers["Content-Type"] == "application/x-ndjson"
    assert json.loads(body) == result(3).line() and json.loads(body)["detections"][0]["sigma"] == [1, 1, 1, 1]


def test_http__user_and_password(web: Any) -> None:
    HttpTransport(f"http://me:p%40ss@127.0.0.1:{web.server_address[1]}/").send([b"{}"])
    assert web.got[0][1]["Authorization"] == "Basic " + base64.b64encode(b"me:p@ss").decode()


def test_http__what_is_tried_again_and_what_is_not(web: Any) -> None:
    web.codes = [503, 429, 400, 302]
    web.headers = {"Location": "/elsewhere"}
    sink = open_push(PushOptions(f"http://127.0.0.1:{web.server_address[1]}/"), "hash")
    sink.write(result(0))
    wait_for(lambda: sink.refused == 1)
    assert sink.retries == 2 and sink.error == "the server answers 400 Bad Request"
    sink.write(result(1))
    wait_for(lambda: sink.refused == 2)  # a redirection is not followed
    sink.close()
    assert [path for path, _, _ in web.got] == ["/"] * 4


def address(web: Any, login: str = "") -> str:
    return f"http://{login}127.0.0.1:{web.server_address[1]}/in"


@pytest.mark.parametrize("code", [400, 401, 403, 404, 405, 410, 413, 422, 501, 505])
def test_http__what_lasts_is_refused(web: Any, code: int) -> None:
    web.codes = [code]
    with pytest.raises(RefusedError, match=f"the server answers {code} {http.client.responses[code]}"):
        HttpTransport(address(web)).send([b"{}"])


@pytest.mark.parametrize("code", [408, 425, 429, 500, 502, 503, 504])
def test_http__what_passes_is_for_later(web: Any, code: int) -> None:
    web.codes, web.headers = [code], {"Retry-After": "7"}
    with pytest.raises(LaterError, match=f"answers {code}") as caught:
        HttpTransport(address(web)).send([b"{}"])
    assert caught.value.after == 7


def test_retry_after__seconds_and_dates() -> None:
    assert retry_after("120", 0.0) == 120 and retry_after(" 0 ", 0.0) == 0
    assert retry_after("Thu, 01 Jan 1970 00:02:00 GMT", 100.0) == 20
    assert retry_after("Thu, 01 Jan 1970 00:01:00 GMT", 100.0) == 0  # gone by
    assert retry_after("9" * 400, 0.0) == retry_after("Fri, 31 Dec 9999 23:59:59 GMT", 0.0) == 3600
    assert [retry_after(text, 0.0) for text in (None, "", "soon", "-5", "1e9", "inf", "\u0665")] == [0] * 7


@pytest.mark.parametrize("code", [307, 308])
def test_http__a_redirection_within_the_origin_keeps_post_and_login(web: Any, code: int) -> None:
    web.codes, web.headers = [code], {"Location": "/moved"}
    HttpTransport(address(web, "me:secret@")).send([b"{}"])
    (first, _, _), (second, headers, body) = web.got
    assert (first, second, body) == ("/in", "/moved", b"{}\n")
    assert headers["Authorization"] == "Basic " + base64.b64encode(b"me:secret").decode()


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_http__no_login_goes_to_another_origin(web: Any, code: int) -> None:
    other = ThreadingHTTPServer(("127.0.0.1", 0), web.RequestHandlerClass)
    other.got = []  # type: ignore[attr-defined]
    threading.Thread(target=other.serve_forever, args=(0.05,), daemon=True).start()
    elsewhere = f"http://me:secret@127.0.0.1:{other.server_address[1]}/in"
    web.codes, web.headers = [code], {"Location": elsewhere}
    with pytest.raises(RefusedError, match="give that address to --push") as caught:
        HttpTransport(address(web, "me:secret@")).send([b"{}"])
    assert "secret" not in str(caught.value) and f"127.0.0.1:{other.server_address[1]}/in" in str(caught.value)
    other.shutdown()
    other.server_close()
    assert other.got == []  # type: ignore[attr-defined]


def test_http__redirections_in_a_circle_end(web: Any) -> None:
    web.codes, web.headers = [307] * 50, {"Location": "/in"}
    with pytest.raises(RefusedError, match="307"):
        HttpTransport(address(web)).send([b"{}"])
    assert len(web.got) <= 11


def test_origin__scheme_host_and_port() -> None:
    assert origin("https://a/x") == origin("https://A:443/y") == ("https", "a", 443)
    assert len({origin(a) for a in ("http://a", "https://a", "http://b", "http://a:81", "http://a:x")}) == 5


@pytest.mark.parametrize("secret", ["the token of the day", "me:secret word", "bWU6c2VjcmV0IHdvcmQ="])
def test_http__what_a_server_says_is_shown_short_and_without_secrets(web: Any, secret: str) -> None:
    web.codes, web.phrase = [400], f"no {secret} \x1b[31m" + "x" * 5000
    with pytest.raises(RefusedError) as caught:
        HttpTransport(address(web, "me:secret%20word@"), token="the token of the day").send([b"{}"])
    text = str(caught.value)
    assert secret not in text and "secret word" not in text and "\x1b" not in text and len(text) < 400


def test_http__a_path_with_other_letters(web: Any) -> None:
    HttpTransport(f"http://127.0.0.1:{web.server_address[1]}/fl\u00fcsse/%41?a=b&c=[d]").send([b"{}"])
    assert web.got[0][0] == "/fl%C3%BCsse/%41?a=b&c=[d]"


def test_http__tls_faults_have_names() -> None:
    with socket.create_server(("127.0.0.1", 0)) as plain:
        thread = threading.Thread(target=answer_without_tls, args=(plain,))
        thread.start()
        with pytest.raises(OSError, match=r"no TLS connection: .*Does the server speak TLS"):
            HttpTransport(f"https://127.0.0.1:{plain.getsockname()[1]}/").send([b"{}"])
        thread.join()


def answer_without_tls(listener: socket.socket) -> None:
    connection, _ = listener.accept()
    with connection:
        connection.recv(1 << 16)
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


def test_http__nobody_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(OSError, match="Connection refused"):
        HttpTransport(f"http://127.0.0.1:{port}/").send([b"{}"])
