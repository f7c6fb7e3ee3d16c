from __future__ import annotations

import http.client
import json
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import Browser, find_browser
from pipeline_fakes import ONE
from prometheus_client.parser import text_string_to_metric_families

from ptedge.detections import Detections
from ptedge.errors import InputError
from ptedge.frames.images import decode_image
from ptedge.frames.source import Frame
from ptedge.runtime.page.serve import CONNECTIONS, LiveServer, is_loopback, parse_address
from ptedge.runtime.page.status import Status
from ptedge.runtime.page.view import LiveView
from ptedge.runtime.sinks.files import Result
from ptedge.runtime.stats import SourceStats, Stats

TOKEN = "0123456789abcdef"
MODEL = {
    "hash": "ab" * 32,
    "classes": ["car", 'a "b"\n\\'],
    "backend": "cpu",
    "reason": "asked for",
    "input_size": [64, 96],
    "precision": "fp32",
}
BOX = Detections(
    np.array([[20, 10, 60, 40]], np.float32),
    np.array([0.9], np.float32),
    np.array([0]),
    np.array([[4, 2, 4, 2]], np.float32),
    np.zeros(1, np.float32),
)


def result(index: int = 0, source: str | None = None, width: int = 120) -> Result:
    image = np.full((width * 2 // 3, width, 3), (30, 60, 200), np.uint8)
    return Result(Frame(image, index, None, "here", None), BOX, MODEL["classes"], 0.3, source)


@pytest.fixture
def stats() -> Stats:
    stats = Stats([SourceStats("yard", "rtsp://***@cam/1", "video"), SourceStats("<b>gate</b>", "gate.mp4", "video")])
    stats.sources[0].read, stats.sources[0].frames, stats.sources[0].replaced = 12, 9, 3
    stats.sources[1].error, stats.sources[1].ended = "the cable is cut", True
    stats.detected(ONE, MODEL["classes"], 0.02)
    stats.infer.add(0.004)
    return stats


@pytest.fixture
def view() -> LiveView:
    return LiveView()


@pytest.fixture
def server(stats: Stats, view: LiveView) -> Iterator[LiveServer]:
    yield from serve(stats, view, None)


@pytest.fixture
def locked(stats: Stats, view: LiveView) -> Iterator[LiveServer]:
    yield from serve(stats, view, TOKEN)


def serve(stats: Stats, view: LiveView, token: str | None) -> Iterator[LiveServer]:
    status = Status(stats, MODEL, True, waiting=lambda: {"decoded": 1, "ready": 0, "raw": 0, "results": 0})
    server = LiveServer("127.0.0.1", 0, token, status, view, [about.name for about in stats.sources])
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


@pytest.mark.parametrize(
    ("text", "token", "expected"),
    [
        ("8080", None, ("127.0.0.1", 8080)),
        (":8080", None, ("127.0.0.1", 8080)),
        ("localhost:0", None, ("localhost", 0)),
        ("[::1]:80", None, ("::1", 80)),
        ("0.0.0.0:8080", TOKEN, ("0.0.0.0", 8080)),
    ],
)
def test_parse_address__forms(text: str, token: str | None, expected: tuple[str, int]) -> None:
    assert parse_address(text, token) == expected


@pytest.mark.parametrize(
    ("text", "token", "match"),
    [
        ("0.0.0.0:8080", None, "needs a token"),
        ("[::]:8080", None, "needs a token"),
        ("camera.local:8080", None, "needs a token"),
        ("0.0.0.0:8080", "short", "at least 16"),
        ("8080x", None, "give a port"),
        ("70000", None, "give a port"),
        ("127.0.0.1", None, "give a port"),
    ],
)
def test_parse_address__refused(text: str, token: str | None, match: str) -> None:
    with pytest.raises(InputError, match=match):
        parse_address(text, token)


def test_is_loopback__names_and_numbers() -> None:
    assert is_loopback("127.8.8.8") and is_loopback("::1") and is_loopback("LOCALHOST")
    assert not is_loopback("192.168.1.1") and not is_loopback("127.0.0.1.example.com")


def test_server__port_in_use(server: LiveServer, stats: Stats, view: LiveView) -> None:
    port = int(server.address.rpartition(":")[2][:-1])
    with pytest.raises(InputError, match=r"cannot serve on 127\.0\.0\.1"):
        LiveServer("127.0.0.1", port, None, Status(stats, MODEL, True), view, ["yard"])


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


def test_metrics__labels_are_escaped(stats: Stats) -> None:
    stats.classes[MODEL["classes"][1]] = 5
    families = list(text_string_to_metric_families(Status(stats, MODEL, True).metrics()))
    labels = [sample.labels.get("class") for family in families for sample in family.samples]
    assert 'a "b"\n\\' in labels


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


def test_view__draws_only_for_who_looks_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[Any] = []
    monkeypatch.setattr("ptedge.runtime.page.view.encode_jpeg", lambda image, quality: encoded.append(image) or b"x")
    view = LiveView()
    for i in range(5):
        view.write(result(i, width=1600))
    assert not encoded
    first, second = view.picture("", -1, 0), view.picture("", -1, 0)
    assert first is second and len(encoded) == 1 and encoded[0].shape == (853, 1280, 3)
    assert view.picture("", 4, 0.01) is None


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
