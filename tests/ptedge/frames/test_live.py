"""Live sources over connections made up here: what is counted, told and done after each fault."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from servers.mjpeg_server import jpeg, number_in

from ptedge.errors import BackendError, InputError
from ptedge.frames.live import LiveStream
from ptedge.frames.status import LiveOptions, SourceEvent, SourceStatus, StreamError

QUICK = LiveOptions(newest=False, connect=0.2, stall=0.2, first_wait=0.01, longest_wait=0.04)


class Script:
    """A camera whose connections play a script each: pictures, faults to raise, seconds to sleep, or ``hang``."""

    fps = 25.0

    def __init__(self, *connections: list[Any]) -> None:
        self._scripts = iter(connections)
        self.made: list[float] = []
        self.hanging = threading.Event()

    def connect(self) -> Connection:
        self.made.append(time.monotonic())
        script = next(self._scripts, [StreamError("lost", "refused")])
        if script and isinstance(script[0], Exception):
            raise script[0]
        return Connection(iter(script), self.hanging)


class Connection:
    fps = 25.0

    def __init__(self, script: Iterator[Any], hanging: threading.Event) -> None:
        self._script, self._hanging = script, hanging
        self.closed = False

    def read(self) -> Any:
        step = next(self._script, StreamError("lost", "the stream ended"))
        if isinstance(step, (int, float)):
            time.sleep(step)
            return self.read()
        if isinstance(step, str):
            self._hanging.wait(3)
            raise StreamError("lost", "woke up")
        if isinstance(step, Exception):
            raise step
        return step

    def interrupt(self) -> None:
        pass

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def streams() -> Iterator[Callable[..., LiveStream]]:
    made: list[LiveStream] = []
    scripts: list[Script] = []

    def make(script: Script, options: LiveOptions = QUICK, **more: Any) -> LiveStream:
        made.append(LiveStream("rtsp://user:secret@cam/1", options, SourceStatus(), connector=script.connect, **more))
        scripts.append(script)
        return made[-1]

    yield make
    for script in scripts:
        script.hanging.set()
    for stream in made:
        stream.close()


def picture(number: int, size: tuple[int, int] = (64, 48)) -> np.ndarray:
    return np.full((size[1], size[0], 3), 20 + 4 * number, np.uint8)


def take(stream: LiveStream, count: int) -> list[int]:
    numbers = []
    for _ in range(count):
        frame = stream.take()
        assert frame is not None
        numbers.append(number_in(frame.image))
    return numbers


def test_take__frames_with_times_on_two_clocks(streams: Any) -> None:
    stream = streams(Script([picture(0), 0.05, picture(1), "hang"]))
    before = time.time()
    stream.open()
    first, second = stream.take(), stream.take()
    assert first.time == 0.0 and 0.04 < second.time < 0.5
    assert (first.index, second.index) == (0, 1)
    assert second.arrived - first.arrived == pytest.approx(second.time)
    assert before <= first.wall <= second.wall <= time.time()
    assert first.source == "rtsp://***@cam/1" and stream.fps == 25.0


def test_take__reconnects_and_counts(streams: Any) -> None:
    refused = [StreamError("lost", "refused")]
    script = Script([picture(0)], refused, refused, refused, [picture(1, (32, 32)), "hang"])
    events: list[SourceEvent] = []
    stream = streams(script, replace(QUICK, on_event=events.append))
    stream.open()
    assert take(stream, 2) == [0, 1]
    status = stream._status
    assert (status.frames, status.delivered, status.reconnects, status.failures, status.stalls) == (2, 2, 1, 3, 0)
    assert (status.resizes, status.size) == (1, (32, 32))
    assert [event.kind for event in events] == ["connected", "lost", "reconnected", "resized"]
    assert list(status.events) == events
    assert not any("secret" in event.text for event in events)
    waits = np.diff(script.made)  # 10, 20, 40, then 40 ms again because of the cap
    assert all(wait >= least for wait, least in zip(waits, (0.01, 0.02, 0.04, 0.04), strict=True))
    assert 0.11 < status.outage < 2


def test_take__newest_only(streams: Any) -> None:
    script = Script([picture(0), 0.2, *(picture(n) for n in range(1, 11)), "hang"])
    stream = streams(script, replace(QUICK, newest=True, stall=1.0))
    stream.open()
    assert take(stream, 1) == [0]
    time.sleep(0.4)
    assert take(stream, 1) == [10]
    status = stream._status
    assert (status.frames, status.delivered, status.dropped) == (11, 2, 9)


def test_take__before_anyone_asks_nothing_counts_as_dropped(streams: Any) -> None:
    stream = streams(Script([*(picture(n) for n in range(5)), "hang"]), replace(QUICK, newest=True))
    stream.open()
    while stream._status.frames < 5:
        time.sleep(0.005)
    assert take(stream, 1) == [4]
    assert (stream._status.dropped, stream._status.passed) == (0, 4)


def test_take__a_full_buffer_makes_the_source_wait(streams: Any) -> None:
    stream = streams(Script([*(picture(n) for n in range(20)), "hang"]), replace(QUICK, buffer=3))
    stream.open()
    time.sleep(0.1)
    assert stream._status.frames == 4  # three wait, one is in hand
    assert take(stream, 20) == list(range(20)) and stream._status.dropped == 0


def test_take__corrupt_pictures_are_left_out(streams: Any) -> None:
    good = jpeg(3)
    stream = streams(Script([jpeg(1), good[: len(good) // 2], b"", b"nothing", jpeg(2), "hang"]))
    stream.open()
    assert take(stream, 2) == [1, 2]
    assert (stream._status.corrupt, stream._status.frames, stream._status.delivered) == (3, 5, 2)
    assert [event.kind for event in stream._status.events].count("corrupt") == 1  # not one for each


def test_take__only_corrupt_pictures_are_a_stall(streams: Any) -> None:
    broken: list[Any] = [b"broken", 0.02] * 100
    stream = streams(Script([jpeg(1), *broken], [jpeg(2), "hang"]))
    stream.open()
    assert take(stream, 2) == [1, 2]
    assert (stream._status.stalls, stream._status.reconnects) == (1, 1) and stream._status.corrupt >= 5


def test_take__a_read_that_never_returns_is_left_behind(streams: Any) -> None:
    script = Script([picture(0), "hang"], [picture(1), "hang"], [picture(2), "hang"])
    stream = streams(script)
    stream.open()
    began = time.monotonic()
    assert take(stream, 3) == [0, 1, 2]
    assert time.monotonic() - began < 3  # before the hanging reads end
    assert (stream._status.stalls, stream._status.reconnects) == (2, 2)
    script.hanging.set()  # the old threads wake up and must not disturb the present connection
    time.sleep(0.05)
    assert stream._status.state != "ended"


def test_take__a_connection_that_never_gets_made_is_left_behind(streams: Any) -> None:
    script = Script([picture(0)], [picture(1), "hang"])
    stuck = threading.Event()
    make = script.connect

    def connect() -> Connection:
        if len(script.made) == 1 and not stuck.is_set():
            stuck.set()
            script.hanging.wait(3)
        return make()

    stream = streams(script)
    stream._connector = connect
    stream.open()
    assert take(stream, 2) == [0, 1] and stuck.is_set()
    assert stream._status.failures == 1


def test_take__gives_up_after_so_many_attempts(streams: Any) -> None:
    script = Script([picture(0)])
    stream = streams(script, replace(QUICK, attempts=3))
    stream.open()
    assert take(stream, 1) == [0]
    for _ in range(2):  # it stays so
        with pytest.raises(InputError, match=r"rtsp://\*\*\*@cam/1: no connection in 3 attempts; the last: refused"):
            stream.take()
    assert len(script.made) == 4 and stream._status.state == "ended"


def test_take__connections_without_any_frame_count_as_failed(streams: Any) -> None:
    empty = [StreamError("lost", "ended")]
    script = Script([picture(0)], *([0.0, *empty] for _ in range(5)))
    stream = streams(script, replace(QUICK, attempts=4))
    stream.open()
    assert take(stream, 1) == [0]
    with pytest.raises(InputError, match="4 attempts"):
        stream.take()


def test_open__refused_at_once(streams: Any) -> None:
    stream = streams(Script([StreamError("lost", "http://user:secret@cam/2 says no")]))
    with pytest.raises(InputError, match=r"^rtsp://\*\*\*@cam/1 cannot be opened: http://\*\*\*@cam/2 says no"):
        stream.open()


def test_open__no_answer(streams: Any) -> None:
    script = Script([picture(0)])
    stream = streams(script)
    stream._connector = lambda: script.hanging.wait(3) and script.connect()
    with pytest.raises(InputError, match=r"no connection in 0\.2 s"):
        stream.open()


def test_open__patient(streams: Any) -> None:
    refused = [StreamError("lost", "refused")]
    stream = streams(Script(refused, refused, [picture(7), "hang"]), replace(QUICK, patient=True))
    stream.open()
    assert take(stream, 1) == [7] and stream._status.failures == 2 and stream._status.reconnects == 0


def test_open__what_no_new_attempt_can_repair(streams: Any) -> None:
    stream = streams(Script([BackendError("no GStreamer")]), replace(QUICK, patient=True))
    stream.open()
    with pytest.raises(BackendError, match="no GStreamer"):
        stream.take()


def test_close__wakes_who_waits(streams: Any) -> None:
    stream = streams(Script([picture(0), "hang"]), replace(QUICK, stall=5.0))
    stream.open()
    take(stream, 1)
    threading.Timer(0.05, stream.close).start()
    began = time.monotonic()
    assert stream.take() is None and time.monotonic() - began < 2


def test_accept__thins_before_the_buffer(streams: Any) -> None:
    stream = streams(Script([*(picture(n) for n in range(9)), "hang"]), accept=lambda number, seconds: number % 3 == 1)
    stream.open()
    assert take(stream, 3) == [1, 4, 7] and stream._status.passed >= 5


def test_wait__doubles_up_to_the_cap() -> None:
    options = LiveOptions(first_wait=0.5, longest_wait=30)
    assert [options.wait(n) for n in (1, 2, 3, 6, 7, 8, 10**6)] == [0.5, 1, 2, 16, 30, 30, 30]


@pytest.mark.parametrize("wrong", [{"stall": 0}, {"connect": float("nan")}, {"buffer": 0}, {"attempts": 0}])
def test_options__refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="live source"):
        LiveOptions(**wrong)


def test_status__as_json_has_only_what_others_understand() -> None:
    status = SourceStatus(frames=3, outage=1.23456, arrived=99.0, size=(4, 3))
    assert status.to_json() == {
        "state": "idle",
        "frames": 3,
        "delivered": 0,
        "dropped": 0,
        "corrupt": 0,
        "dim": 0,
        "passed": 0,
        "reconnects": 0,
        "stalls": 0,
        "failures": 0,
        "resizes": 0,
        "outage": 1.235,
        "error": "",
        "size": [4, 3],
    }
