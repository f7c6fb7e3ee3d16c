"""MQTT against a broker of a few lines."""

from __future__ import annotations

import json
import socket
import struct
import threading
from typing import Any

import pytest
from pipeline_fakes import a_result as result
from pipeline_fakes import wait_for

from ptedge.runtime.options import PushOptions
from ptedge.runtime.sinks.push import open_push


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
    pytest.importorskip("paho.mqtt.client")
    monkeypatch.setattr("ptedge.runtime.sinks.push.CLOSING", 0.1)
    monkeypatch.setattr("ptedge.runtime.sinks.mqtt.TIMEOUT", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    sink = open_push(PushOptions(f"mqtt://127.0.0.1:{port}/cars"), "hash")
    sink.write(result(0))
    wait_for(lambda: sink.retries > 0)
    sink.close()
    assert sink.dropped == 1 and "no connection to the broker" in sink.error
