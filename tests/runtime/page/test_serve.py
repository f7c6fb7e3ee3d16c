from __future__ import annotations

import http.client
import json
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from browser import Browser, find_browser
from made_page import MODEL, made_counters
from made_page import a_page_result as result
from prometheus_client.parser import text_string_to_metric_families

from ptedge.errors import InputError
from ptedge.frames.images import decode_image
from ptedge.runtime.counters import RunCounters
from ptedge.runtime.options import ServeOptions
from ptedge.runtime.page.serve import CONNECTIONS, LiveServer
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


def test_server__too_many_visitors_are_turned_away(server: LiveServer) -> None:
    host, _, port = server.address[7:-1].partition(":")
    idle = [http.client.HTTPConnection(host, int(port), timeout=20) for _ in range(CONNECTIONS)]
    for connection in idle:
        connection.request("GET", "/favicon.ico")
        connection.getresponse().read()  # and stays
    with pytest.raises((http.client.HTTPException, OSError)):
        ask(server, "/favicon.ico")
    for connection in idle:
        connection.close()


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
