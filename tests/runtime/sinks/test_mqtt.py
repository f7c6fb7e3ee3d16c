"""MQTT against a broker of a few lines."""

from __future__ import annotations

import gc
import json
import socket
import struct
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from pipeline_fakes import a_result as result
from pipeline_fakes import wait_for

from ptedge.runtime.options import PushOptions
from ptedge.runtime.sinks.mqtt import MOST_HANGUPS, MqttTransport
from ptedge.runtime.sinks.push import open_push
from ptedge.runtime.sinks.transport import RefusedError

pytest.importorskip("paho.mqtt.client")


class Broker:
    """As much of MQTT 3.1.1 as one publisher needs; closes the first connections after ``patience`` messages.

    It answers CONNECT with ``answer``, and remembers what was connected with.
    """

    def __init__(self, *patience: int, answer: int = 0) -> None:
        self.answer = answer
        self.logins: list[bytes] = []
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
                self.logins.append(body)
                connection.sendall(bytes((0x20, 2, 0, self.answer)))
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
    broker = Broker(3)
    sink = open_push(PushOptions(f"mqtt://127.0.0.1:{broker.port}/site/cars"), "hash")
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
    monkeypatch.setattr("ptedge.runtime.sinks.push.CLOSING", 0.1)
    monkeypatch.setattr("ptedge.runtime.sinks.mqtt.TIMEOUT", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    sink = open_push(PushOptions(f"mqtt://127.0.0.1:{port}/cars"), "hash")
    sink.write(result(0))
    wait_for(lambda: sink.retries > 0)
    sink.close()
    assert sink.dropped == 1 and "no connection to the broker" in sink.error


@pytest.fixture
def broker() -> Iterator[Broker]:
    opened = Broker()
    yield opened
    opened.close()


@pytest.mark.parametrize("topic", ["/lead/x", "a//b", "a/", "/", "a?q=1", "fl\u00fcsse/ x", "$aws/rules/x"])
def test_mqtt__a_topic_is_published_to_as_given(broker: Broker, topic: str) -> None:
    transport = MqttTransport(f"mqtt://127.0.0.1:{broker.port}/{topic}")
    transport.send([b"{}"])
    transport.close()
    assert broker.messages == [(topic, b"{}")]


def test_mqtt__user_and_password(broker: Broker) -> None:
    transport = MqttTransport(f"mqtt://me:p%23s#s@127.0.0.1:{broker.port}/x")
    transport.send([b"{}"])
    transport.close()
    assert broker.logins[0].endswith(b"\x00\x02me\x00\x05p#s#s")


@pytest.mark.parametrize(("answer", "says"), [(4, "Bad user name or password"), (5, "Not authorized")])
def test_mqtt__a_login_that_is_not_let_in_is_told_and_not_tried_for_ever(
    answer: int, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ptedge.runtime.sinks.push.CLOSING", 1.5)
    broker, said = Broker(answer=answer), list[str]()
    sink = open_push(PushOptions(f"mqtt://me:secret@127.0.0.1:{broker.port}/x"), "hash", said.append)
    for i in range(120):
        sink.write(result(i))
    sink.close()
    broker.close()
    assert said == [
        f"push to mqtt://***@127.0.0.1:{broker.port}/x: the broker answers: {says}. Look at the login; not sent again"
    ]
    assert 1 <= broker.connections <= 5 and sink.refused + sink.dropped == 120


def test_mqtt__a_broker_that_is_busy_is_for_later() -> None:
    broker = Broker(answer=3)
    transport = MqttTransport(f"mqtt://127.0.0.1:{broker.port}/x")
    with pytest.raises(OSError, match="Server unavailable"):
        transport.send([b"{}"])
    transport.close()
    broker.close()


def test_mqtt__a_topic_at_which_the_broker_hangs_up_is_refused() -> None:
    """As brokers do that do not let this login write there: MQTT 3.1.1 has no answer for it."""
    broker = Broker(*[0] * 10)
    transport = MqttTransport(f"mqtt://127.0.0.1:{broker.port}/x")
    for _ in range(MOST_HANGUPS - 1):
        with pytest.raises(OSError, match="closed the connection"):
            transport.send([b"{}"])
    with pytest.raises(RefusedError, match="May this login write"):
        transport.send([b"{}"])
    transport.close()
    broker.close()
    assert broker.connections == MOST_HANGUPS


@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)  # paho leaves the socket to the collector
def test_mqtt__tls_faults_have_names() -> None:
    def answer_without_tls() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(1 << 16)
            connection.sendall(b"\x20\x02\x00\x00\x00\x00\x00\x00")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=answer_without_tls)
        thread.start()
        transport = MqttTransport(f"mqtts://127.0.0.1:{listener.getsockname()[1]}/x")
        with pytest.raises(OSError, match=r"no connection to the broker: no TLS connection: .*"):
            transport.send([b"{}"])
        transport.close()
        thread.join()
    gc.collect()
