from __future__ import annotations

import contextlib
import http.client
import json
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from browser import Browser, find_browser
from made_page import MODEL, made_counters
from made_page import a_page_result as result
from pipeline_fakes import wait_for
from prometheus_client.parser import text_string_to_metric_families

from ptedge.errors import InputError
from ptedge.frames.images import decode_image
from ptedge.runtime.counters import RunCounters, RunSource
from ptedge.runtime.options import ServeOptions
from ptedge.runtime.page.serve import OPEN, LiveServer
from ptedge.runtime.page.status import RunStatus
from ptedge.runtime.page.view import LiveView

TOKEN = "0123456789abcdef"


@pytest.fixture
def counters() -> RunCounters:
    return made_counters()


@pytest.fixture
def view() -> LiveView:
    return LiveView()


@pytest.fixture
def server(counters: RunCounters, view: LiveView) -> Iterator[LiveServer]:
    yield from serve(counters, view, None)


@pytest.fixture
def locked(counters: RunCounters, view: LiveView) -> Iterator[LiveServer]:
    yield from serve(counters, view, TOKEN)


def serve(counters: RunCounters, view: LiveView, token: str | None) -> Iterator[LiveServer]:
    status = RunStatus(counters, MODEL, True, waiting=lambda: {"decoded": 1, "ready": 0, "raw": 0, "results": 0})
    server = LiveServer(ServeOptions(token=token), status, view, [about.name for about in counters.sources])
    yield server
    view.close()
    server.close()


def ask(
    server: LiveServer, path: str, method: str = "GET", headers: dict[str, str] | None = None
) -> tuple[int, http.client.HTTPMessage, bytes]:
    connection = http.client.HTTPConnection(server.address[7:-1], timeout=20)
    try:
        connection.request(method, path, headers=headers or {})
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


def test_server__port_in_use(server: LiveServer, counters: RunCounters, view: LiveView) -> None:
    port = int(server.address.rpartition(":")[2][:-1])
    with pytest.raises(InputError, match=r"cannot serve on 127\.0\.0\.1"):
        LiveServer(ServeOptions(port=port), RunStatus(counters, MODEL, True), view, ["yard"])


def test_server__status_says_what_was_counted(server: LiveServer) -> None:
    code, headers, body = ask(server, "/status.json")
    status = json.loads(body)
    assert code == 200 and headers["Cache-Control"] == "no-store"
    assert (status["frames"], status["dropped"], status["classes"]) == (9, 3, {"car": 1})
    assert status["age_ms"] == {"p50": 20.0, "p99": 20.0, "max": 20.0}
    assert [about["name"] for about in status["sources"]] == ["yard", "<b>gate</b>"]
    assert not status["drift"]["ready"] and status["collected"] is None


def test_server__metrics_are_read_by_prometheus_own_parser(server: LiveServer) -> None:
    code, headers, body = ask(server, "/metrics")
    assert code == 200 and headers["Content-Type"].startswith("text/plain; version=0.0.4")
    families = {family.name: family for family in text_string_to_metric_families(body.decode())}
    value = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in families.values()
        for sample in family.samples
    }
    assert value["ptedge_frames_dropped_total", ("source", "yard")] == 3
    assert value["ptedge_source_up", ("source", "yard")] == 1
    assert value["ptedge_source_up", ("source", "<b>gate</b>")] == 0
    assert value["ptedge_result_age_seconds_bucket", ("le", "0.01")] == 0
    assert value["ptedge_result_age_seconds_bucket", ("le", "0.025")] == 1
    assert value["ptedge_result_age_seconds_bucket", ("le", "+Inf")] == 1
    assert value["ptedge_result_age_seconds_count",] == 1
    assert value["ptedge_result_age_seconds_sum",] == pytest.approx(0.02)
    assert families["ptedge_frames"].type == "counter" and families["ptedge_inference_seconds"].type == "histogram"
    assert all(family.documentation for family in families.values())


def test_server__picture_is_the_newest_with_its_number(server: LiveServer, view: LiveView) -> None:
    for i in range(3):
        view.write(result(i, "yard"))
    code, headers, body = ask(server, "/frame.jpg?source=yard&after=-1")
    assert (code, headers["X-Frame-Number"], headers["Content-Type"]) == (200, "2", "image/jpeg")
    image = decode_image(body, "answer")
    assert image.shape == (640, 960, 3)  # enlarged, so that labels can be read
    assert np.abs(image[600, 900].astype(int) - (30, 60, 200)).max() < 8
    assert np.abs(image[80 * 2, 160].astype(int) - (30, 60, 200)).max() > 40  # the left side of the box, x 20 times 8


def test_server__picture_waits_for_a_newer_one(server: LiveServer, view: LiveView) -> None:
    view.write(result(0, "yard"))
    timer = threading.Timer(0.2, view.write, [result(1, "yard")])
    timer.start()
    assert ask(server, "/frame.jpg?source=yard&after=0")[1]["X-Frame-Number"] == "1"
    timer.join()


def test_server__no_picture(server: LiveServer, view: LiveView) -> None:
    view.close()
    assert ask(server, "/frame.jpg?source=yard")[0] == 204
    assert ask(server, "/frame.jpg?source=cellar")[0] == 404
    assert ask(server, "/frame.jpg?source=yard&after=x")[0] == 404


@pytest.mark.parametrize("path", ["/../pyproject.toml", "/..%2f..%2fetc/passwd", "/serve.py", "//etc/passwd", "/x"])
def test_server__knows_five_names_only(server: LiveServer, path: str) -> None:
    assert ask(server, path)[0] == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "HEAD", "PATCH"])
def test_server__only_get(server: LiveServer, method: str) -> None:
    code, headers, _ = ask(server, "/status.json", method)
    assert (code, headers["Allow"]) == (405, "GET")


def test_server__other_sites_get_nothing(server: LiveServer) -> None:
    _, headers, _ = ask(server, "/status.json", headers={"Origin": "http://evil.example"})
    assert "Access-Control-Allow-Origin" not in headers
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert ask(server, "/status.json", headers={"Host": "evil.example"})[0] == 403  # a name turned to 127.0.0.1
    assert ask(server, "/status.json", headers={"Host": "localhost:80"})[0] == 200


@pytest.mark.parametrize("path", ["/", "/status.json", "/metrics", "/frame.jpg", "/nothing"])
def test_server__nothing_without_the_token(locked: LiveServer, path: str) -> None:
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Basic {TOKEN}"}):
        code, answer, _ = ask(locked, path, headers=headers)
        assert (code, answer["WWW-Authenticate"]) == (401, "Bearer")
    assert ask(locked, f"{path}?token={TOKEN}x")[0] == 401
    assert ask(locked, f"{path}?token=%ff")[0] == 401


def test_server__token_in_the_address_or_the_header(locked: LiveServer) -> None:
    assert ask(locked, f"/?token={TOKEN}")[0] == 200
    assert ask(locked, "/metrics", headers={"Authorization": f"Bearer {TOKEN}", "Host": "device.lan"})[0] == 200


def connect(server: LiveServer, sent: bytes = b"") -> socket.socket:
    host, _, port = server.address[7:-1].partition(":")
    opened = socket.create_connection((host, int(port)), timeout=20)
    opened.sendall(sent)
    return opened


def last_words(opened: socket.socket) -> bytes:
    """What comes until the server closes the connection."""
    said = b""
    with contextlib.suppress(ConnectionError):
        while data := opened.recv(1 << 16):
            said += data
    return said


GET = b"GET /status.json HTTP/1.1\r\nHost: localhost\r\n"
POLL = b"GET /frame.jpg?source=yard&after=0 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n"


def test_server__many_slow_visitors_leave_it_usable(locked: LiveServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """More of them than connections are kept: some silent, some in the middle of a header, without a token anyway."""
    monkeypatch.setattr("ptedge.runtime.page.serve.HEAD_TIME", 600.0)
    with contextlib.ExitStack() as opened:
        for i in range(OPEN + 44):
            opened.enter_context(contextlib.closing(connect(locked, (b"", b"GET / HT", GET)[i % 3])))
        for _ in range(3):
            assert ask(locked, f"/status.json?token={TOKEN}")[0] == 200
            assert ask(locked, "/status.json")[0] == 401
        wait_for(lambda: locked._door._open <= OPEN)


def test_server__places_are_for_those_who_may_come_in(
    locked: LiveServer, view: LiveView, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ptedge.runtime.page.serve.PLACES", 2)
    monkeypatch.setattr("ptedge.runtime.page.pages.PICTURE_WAIT", 60.0)
    poll = POLL % TOKEN.encode()
    with connect(locked, poll), connect(locked, poll):
        wait_for(lambda: locked._door._answering == 2)
        code, headers, _ = ask(locked, f"/status.json?token={TOKEN}")
        assert (code, headers["Retry-After"]) == (503, "1")
        assert ask(locked, "/status.json")[0] == 401
    view.close()
    wait_for(lambda: ask(locked, f"/status.json?token={TOKEN}")[0] == 200)


def test_server__who_waits_for_silent_cameras_holds_nobody_up(
    counters: RunCounters, view: LiveView, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ptedge.runtime.page.pages.PICTURE_WAIT", 60.0)
    for server in serve(counters, view, TOKEN):
        with contextlib.ExitStack() as opened:
            for _ in range(40):
                opened.enter_context(contextlib.closing(connect(server, POLL % TOKEN.encode())))
            wait_for(lambda at=server: at._door._answering == 40)
            assert len([t for t in threading.enumerate() if t.name.startswith("ptedge-page")]) <= 2
            for _ in range(5):
                assert ask(server, f"/status.json?token={TOKEN}")[0] == 200  # 60 s where waiting takes a thread
        view.close()


def test_server__numbers_of_pictures_tell_who_is_silent(server: LiveServer, view: LiveView) -> None:
    view.write(result(0, "yard"))
    view.write(result(1, "yard"))
    assert json.loads(ask(server, "/status.json")[2])["pictures"] == {"yard": 1, "<b>gate</b>": -1}
    assert ask(server, "/frame.jpg?source=%3Cb%3Egate%3C/b%3E&wait=0")[0] == 204


def test_server__a_header_byte_by_byte_is_given_up(server: LiveServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ptedge.runtime.page.serve.HEAD_TIME", 0.3)
    with connect(server) as slow:
        slow.settimeout(0.05)
        end = time.monotonic() + 20
        with pytest.raises(ConnectionError):
            while time.monotonic() < end:
                slow.sendall(b"G")
                with contextlib.suppress(TimeoutError):
                    if not slow.recv(1):
                        raise ConnectionError
    with connect(server, GET + b"\r\n") as idle:  # the next request has the same time
        assert last_words(idle).count(b"HTTP/1.1 200 OK") == 1


def test_server__an_answer_that_is_not_read_is_given_up(server: LiveServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ptedge.runtime.page.serve.ANSWER_TIME", 0.3)
    monkeypatch.setattr(server._door._pages, "_page", bytes(64 << 20))
    with connect(server, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n") as deaf:
        wait_for(lambda: server._door._answering == 1)
        wait_for(lambda: server._door._open == 0)
        assert len(last_words(deaf)) < 64 << 20
    assert server._door._answering == 0


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (b"GET /" + b"a" * 5000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", 414),
        (GET + b"X: " + b"a" * 40_000 + b"\r\n\r\n", 431),
        (GET + b"X: y\r\n" * 200 + b"\r\n", 431),
        (b"\x16\x03\x01\x02\x00" * 9 + b"\r\n\r\n", 400),
        (GET + b"Content-Length: 5\r\n\r\nhello", 413),
    ],
)
def test_server__what_is_no_request_of_a_page_gets_one_answer(server: LiveServer, sent: bytes, code: int) -> None:
    with connect(server, sent) as opened:
        assert last_words(opened).startswith(b"HTTP/1.1 %d " % code)
    assert ask(server, "/status.json")[0] == 200


def test_server__a_fault_of_ours_is_an_answer(server: LiveServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server._door._pages._status, "waiting", lambda: 1 / 0)
    code, _, body = ask(server, "/status.json")
    assert (code, body) == (500, b"ZeroDivisionError\n")


def test_server__closing_does_not_wait_for_visitors(
    counters: RunCounters, view: LiveView, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ptedge.runtime.page.pages.PICTURE_WAIT", 600.0)
    server = LiveServer(ServeOptions(token=TOKEN), RunStatus(counters, MODEL, True), view, ["yard", "gate"])
    with connect(server), connect(server, b"GET"), connect(server, POLL % TOKEN.encode()) as waiting:
        wait_for(lambda: server._door._answering == 1)
        server.close()
        assert last_words(waiting) == b""
    assert not server._thread.is_alive()


@pytest.mark.skipif(find_browser() is None, reason="no browser: apt install chromium")
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_page__in_a_real_browser(locked: LiveServer, view: LiveView, tmp_path: Path, width: int, dark: bool) -> None:
    view.write(result(0, "yard"))
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile, Browser(Path(profile)) as browser:
        browser.open(f"{locked.address}?token={TOKEN}", width, 800, dark)
        browser.wait("document.querySelector('figure img')?.naturalWidth === 960")
        text = browser.evaluate("document.body.innerText")
        for expected in ("yard (video, running): 9 frames, 3 dropped", "the cable is cut", "20 ms", "64", "car"):
            assert expected in text
        assert "<b>gate</b>" in text  # a name is text, not a part of the page
        assert browser.evaluate("document.querySelector('figcaption b b')") is None
        assert browser.evaluate("document.documentElement.scrollWidth") <= width
        ground = browser.evaluate("getComputedStyle(document.body).backgroundColor")
        assert ground == ("rgb(20, 23, 26)" if dark else "rgb(244, 245, 247)")
        view.write(result(1, "yard"))
        browser.wait("performance.getEntriesByType('resource').filter(e => e.name.includes('after=0')).length > 0")
        browser.screenshot(tmp_path / "page.png")
        assert decode_image((tmp_path / "page.png").read_bytes(), "page").shape == (800, width, 3)


@pytest.mark.skipif(find_browser() is None, reason="no browser: apt install chromium")
def test_page__ten_silent_cameras_leave_room_for_the_numbers_and_for_the_one_that_speaks(
    view: LiveView, tmp_path: Path
) -> None:
    counters = RunCounters([RunSource(f"camera{i}", f"rtsp://cam/{i}", "video") for i in range(11)])
    for server in serve(counters, view, TOKEN):
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile, Browser(Path(profile)) as browser:
            browser.open(f"{server.address}?token={TOKEN}", 1280, 800, False)
            browser.wait("document.querySelectorAll('figure').length === 11")
            counters.sources[3].frames = 4321
            browser.wait("document.body.innerText.includes('4,321 frames')")
            for i in range(3):
                view.write(result(i, "camera7"))
                browser.wait(
                    f"performance.getEntriesByType('resource').some(e => e.name.includes('camera7&after={i}'))"
                )
            browser.wait("document.querySelector('figure img')?.naturalWidth === 960")
            asked = "performance.getEntriesByType('resource').filter(e => e.name.includes('camera1&')).length"
            assert browser.evaluate(asked) == 1  # a camera without a picture is not asked again and again
