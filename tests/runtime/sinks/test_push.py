from __future__ import annotations

import json
import threading
import time
from collections.abc import Sequence

import pytest
from pipeline_fakes import a_result as result
from pipeline_fakes import wait_for

from ptedge.runtime.sinks.push import BATCH_BYTES, WAITING, PushSink
from ptedge.runtime.sinks.transport import LaterError, RefusedError


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
        **{"to": "http://***@x/y", "waiting": 0, "sent": 120, "dropped": 0, "refused": 0, "retries": 0, "error": ""},
        "why": {},
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
    transport, said = Memory(), list[str]()
    transport.gate.clear()
    sink = PushSink("http://x", transport, said.append)
    sink.write(result(0))
    wait_for(lambda: len(sink._sending) == 1)
    for i in range(1, WAITING + 6):
        sink.write(result(i))
    assert sink.dropped == 5 and sink.why == {"dropped, the queue was full": 5}
    assert said == ["push to http://x: 1000 results wait already, so the oldest are dropped"]
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
    assert sink.why == {"dropped, the run ended before they could be sent": 7}
    transport.gate.set()
    sink._thread.join()
    assert sink.dropped == 7


class Down:
    """A transport to nowhere that counts its attempts."""

    def __init__(self, fault: Exception) -> None:
        self.fault, self.attempts = fault, 0

    def send(self, lines: Sequence[bytes]) -> None:
        self.attempts += 1
        raise self.fault

    def close(self) -> None:
        pass


FAULTS = [OSError("down"), LaterError("busy"), RefusedError("401"), ValueError("a line break in a header")]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: type(fault).__name__)
@pytest.mark.parametrize("lines", [1, 120])
def test_push__a_handful_of_attempts_at_the_end(fault: Exception, lines: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ptedge.runtime.sinks.push.CLOSING", 1.5)
    transport = Down(fault)
    sink = PushSink("http://x", transport)
    for i in range(lines):
        sink.write(result(i))
    sink.close()
    assert 1 <= transport.attempts <= 5  # thousands where closing knows no back-off
    assert sink.dropped + sink.refused == lines == sum(sink.why.values()) and sink.sent == 0


def test_push__closing_shortens_a_long_wait_but_not_below_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    transport = Memory(OSError("down"))
    sink = PushSink("http://x", transport)
    sink._wait = 600.0  # as after hours of faults
    sink.write(result(0))
    wait_for(lambda: sink.retries == 1)
    sink.close()
    assert (sink.sent, sink.retries) == (1, 1)


def test_push__the_time_that_a_server_asks_for_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ptedge.runtime.sinks.push.FIRST_WAIT", 0.01)
    times: list[float] = []

    class Busy(Down):
        def send(self, lines: Sequence[bytes]) -> None:
            times.append(time.monotonic())
            if len(times) == 1:
                raise self.fault

    sink = PushSink("http://x", Busy(LaterError("busy", 0.5)))
    sink.write(result(0))
    wait_for(lambda: sink.sent == 1)
    assert times[1] - times[0] >= 0.5
    sink.close()


def test_push__closing_does_not_wait_for_a_time_that_it_does_not_have() -> None:
    transport = Down(LaterError("busy", 3600.0))
    sink = PushSink("http://x", transport)
    sink.write(result(0))
    wait_for(lambda: sink.retries == 1)
    began = time.monotonic()
    sink.close()
    assert time.monotonic() - began < 4  # of CLOSING
    assert transport.attempts == 1 and sink.dropped == 1


def test_push__a_refusal_is_told_once_and_the_next_lines_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ptedge.runtime.sinks.push.CLOSING", 0.1)
    transport, said = Down(RefusedError("the server answers 401 Unauthorized")), list[str]()
    sink = PushSink("http://x", transport, said.append)
    for i in range(20):
        sink.write(result(i))
        time.sleep(0.01)
    sink.close()
    assert transport.attempts <= 3 and sink.refused >= 1
    assert said == ["push to http://x: the server answers 401 Unauthorized; not sent again"]
    assert sink.why["refused, the server answers 401 Unauthorized"] == sink.refused


def test_push__few_of_many_faults_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ptedge.runtime.sinks.push.FIRST_WAIT", 0.0)
    transport, said = Memory(*(OSError(f"fault {i}") for i in range(50))), list[str]()
    sink = PushSink("http://x", transport, said.append)
    sink.write(result(0))
    wait_for(lambda: sink.sent == 1)
    sink.close()
    assert said == [f"push to http://x: fault {i}; trying again" for i in range(5)]


def test_push__a_request_is_not_larger_than_servers_take() -> None:
    sizes: list[int] = []

    class Scales(Memory):
        def send(self, lines: Sequence[bytes]) -> None:
            super().send(lines)
            sizes.append(sum(map(len, lines)))

    transport = Scales()
    transport.gate.clear()
    sink = PushSink("http://x", transport)
    for i in range(20):
        one = result(i)
        one.text = one.text + " " * 100_000
        sink.write(one)
    transport.gate.set()
    sink.close()
    assert transport.lines == list(range(20)) and max(sizes) <= BATCH_BYTES
