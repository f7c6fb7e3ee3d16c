from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from pipeline_fakes import a_result as result
from pipeline_fakes import wait_for

from ptedge.runtime.options import PushOptions
from ptedge.runtime.sinks.push import WAITING, HttpTransport, PushSink, RefusedError, open_push


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
