from __future__ import annotations

import base64
import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pytest
from pipeline_fakes import ONE

from ptedge.errors import InputError
from ptedge.frames.source import Frame
from ptedge.runtime.sinks.files import Result
from ptedge.runtime.sinks.push import WAITING, HttpTransport, PushSink, RefusedError, open_push

NAMES = ["car"]


def result(index: int) -> Result:
    return Result(Frame(np.zeros((4, 4, 3), np.uint8), index, index / 10, "here", None), ONE, NAMES)


def wait_for(condition: Callable[[], bool], seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


class Memory:
    """A transport that fails as told."""

    def __init__(self, *faults: Exception | None) -> None:
        self.faults, self.lines, self.closed = list(faults), [], 0
        self.gate = threading.Event()
        self.gate.set()

    def send(self, lines: Sequence[bytes]) -> None:
        assert self.gate.wait(20)
        fault = self.faults.pop(0) if self.faults else None
        if fault is not None:
            raise fault
        self.lines += [json.loads(line)["frame"] for line in lines]

    def close(self) -> None:
        self.closed += 1


def test_push__sends_all_in_order() -> None:
    transport = Memory()
    sink = PushSink("http://me:secret@x/y", transport)
    for i in range(120):
        sink.write(result(i))
    sink.close()
    assert transport.lines == list(range(120)) and transport.closed == 1
    assert sink.to_json() == {
        **{"to": "http://***@x/y", "waiting": 0, "sent": 120, "dropped": 0, "refused": 0, "retries": 0, "error": ""}
    }


def test_push__tries_again_after_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ptedge.runtime.sinks.push.FIRST_WAIT", 0.01)
    transport = Memory(OSError("no route"), OSError("no route"))
    sink = PushSink("http://x", transport)
    sink.write(result(0))
    wait_for(lambda: sink.sent == 1)
    sink.close()
    assert (transport.lines, sink.retries, sink.dropped, sink.error) == ([0], 2, 0, "no route")


def test_push__refused_lines_are_not_tried_again() -> None:
    transport = Memory(RefusedError("403"))
    sink = PushSink("http://x", transport)
    sink.write(result(0))
    wait_for(lambda: sink.refused == 1)
    sink.write(result(1))
    sink.close()
    assert (transport.lines, sink.sent, sink.retries) == ([1], 1, 0)


def test_push__never_waits_and_drops_the_oldest() -> None:
    transport = Memory()
    transport.gate.clear()
    sink = PushSink("http://x", transport)
    sink.write(result(0))
    wait_for(lambda: len(sink._sending) == 1)
    for i in range(1, WAITING + 6):
        sink.write(result(i))
    assert sink.dropped == 5
    transport.gate.set()
    sink.close()
    assert transport.lines == [0, *range(6, WAITING + 6)]


def test_push__the_end_of_the_run_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ptedge.runtime.sinks.push.CLOSING", 0.05)
    transport = Memory()
    transport.gate.clear()
    sink = PushSink("http://x", transport)
    for i in range(7):
        sink.write(result(i))
    sink.close()
    assert sink.dropped == 7 and sink.sent == 0
    transport.gate.set()
    sink._thread.join()
    assert sink.dropped == 7


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
            self.send_response(code)
            if code == 302:
                self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server: Any = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.got, server.codes = [], []
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_http__posts_lines_with_sigma_and_token(web: Any) -> None:
    sink = open_push(f"http://127.0.0.1:{web.server_address[1]}/in", "the token", "hash")
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
    sink = open_push(f"http://127.0.0.1:{web.server_address[1]}/", None, "hash")
    sink.write(result(0))
    wait_for(lambda: sink.refused == 1)
    assert sink.retries == 2 and sink.error == "the server answers 400 Bad Request"
    sink.write(result(1))
    wait_for(lambda: sink.refused == 2)  # a redirection is not followed
    sink.close()
    assert [path for path, _, _ in web.got] == ["/"] * 4


@pytest.mark.parametrize(
    "to", ["ftp://x/y", "somewhere", "http://", "mqtt://host", "http://host:port/", "mqtt://host/"]
)
def test_open_push__other_addresses(to: str) -> None:
    with pytest.raises(InputError, match="no address to push to"):
        open_push(to, None, "hash")


class Broker:
    """As much of MQTT 3.1.1 as one publisher needs; closes the first connections after ``patience`` messages."""

    def __init__(self, *patience: int) -> None:
        self.messages: list[tuple[str, bytes]] = []
        self.connections = 0
        self._patience = list(patience)
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()

    def _run(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self.connections += 1
            with connection, connection.makefile("rb") as stream:
                self._serve(connection, stream, self._patience.pop(0) if self._patience else 1 << 30)

    def _serve(self, connection: socket.socket, stream: Any, patience: int) -> None:
        while head := stream.read(1):
            length, shift = 0, 0
            while True:
                (byte,) = stream.read(1)
                length |= (byte & 127) << shift
                shift += 7
                if byte < 128:
                    break
            body, kind = stream.read(length), head[0] >> 4
            if kind == 1:  # CONNECT
                connection.sendall(b"\x20\x02\x00\x00")
            elif kind == 3:  # PUBLISH, QoS 1
                (size,) = struct.unpack_from(">H", body)
                topic, number = body[2 : 2 + size].decode(), body[2 + size : 4 + size]
                if patience == 0:
                    return
                patience -= 1
                self.messages.append((topic, body[4 + size :]))
                connection.sendall(b"\x40\x02" + number)
            elif kind == 12:  # PINGREQ
                connection.sendall(b"\xd0\x00")
            elif kind == 14:  # DISCONNECT
                return


def test_mqtt__a_message_a_frame_also_after_a_lost_connection() -> None:
    pytest.importorskip("paho.mqtt.client")
    broker = Broker(3)
    sink = open_push(f"mqtt://127.0.0.1:{broker.port}/site/cars", None, "hash")
    for i in range(10):
        sink.write(result(i))
    wait_for(lambda: sink.sent == 10)
    sink.close()
    broker.close()
    assert broker.connections == 2
    assert {topic for topic, _ in broker.messages} == {"site/cars"}
    assert sorted({json.loads(text)["frame"] for _, text in broker.messages}) == list(range(10))
    assert json.loads(broker.messages[0][1]) == result(0).line()


def test_mqtt__without_a_broker_the_run_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("paho.mqtt.client")
    monkeypatch.setattr("ptedge.runtime.sinks.push.CLOSING", 0.1)
    monkeypatch.setattr("ptedge.runtime.sinks.mqtt.TIMEOUT", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    sink = open_push(f"mqtt://127.0.0.1:{port}/cars", None, "hash")
    sink.write(result(0))
    wait_for(lambda: sink.retries > 0)
    sink.close()
    assert sink.dropped == 1 and "no connection to the broker" in sink.error
