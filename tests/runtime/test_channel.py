from __future__ import annotations

import threading
import time
from collections.abc import Callable

from ptedge.runtime.channel import Channel, Lanes


def in_thread(call: Callable[[], object]) -> tuple[threading.Thread, list[object]]:
    answers: list[object] = []
    thread = threading.Thread(target=lambda: answers.append(call()))
    thread.start()
    return thread, answers


def test_channel__in_order_until_its_end() -> None:
    channel: Channel[int] = Channel(3)
    assert [channel.put(i) for i in range(3)] == [True] * 3 and len(channel) == 3
    channel.end()
    assert not channel.put(3)
    assert list(channel) == [0, 1, 2] and channel.get() is None


def test_channel__get_gives_up() -> None:
    assert Channel[int](1).get(0.01) == []


def test_channel__abort_frees_who_waits_for_room() -> None:
    channel: Channel[int] = Channel(1)
    channel.put(0)
    thread, answers = in_thread(lambda: channel.put(1))
    time.sleep(0.02)
    assert thread.is_alive()
    channel.abort()
    thread.join(20)
    assert answers == [False] and channel.get() is None


def test_lanes__served_in_turn() -> None:
    lanes: Lanes[str] = Lanes(3, 4)
    for number, text in ((0, "a"), (0, "b"), (0, "c"), (2, "x")):
        lanes.put(number, text)
    assert lanes.take(3, 0.0) == [(0, "a"), (2, "x"), (0, "b")]
    for number in range(3):
        lanes.end(number)
    assert lanes.take(3, None) == [(0, "c")] and lanes.take(3, None) is None


def test_lanes__newest_replaces_and_counts() -> None:
    lanes: Lanes[int] = Lanes(2, 4, newest=True)
    for i in range(5):
        lanes.put(1, i)
    assert lanes.replaced == [0, 4] and lanes.take(9, 0.0) == [(1, 4)]


def test_lanes__a_group_larger_than_all_lanes_does_not_wait_for_what_cannot_come() -> None:
    lanes: Lanes[int] = Lanes(1, 2)
    lanes.put(0, 0)
    lanes.put(0, 1)
    assert lanes.take(8, None) == [(0, 0), (0, 1)]


def test_lanes__a_group_is_filled_when_frames_come() -> None:
    lanes: Lanes[int] = Lanes(1, 4)
    thread, answers = in_thread(lambda: lanes.take(2, None))
    lanes.put(0, 7)
    lanes.put(0, 8)
    thread.join(20)
    assert answers == [[(0, 7), (0, 8)]]


def test_lanes__pause_ends_with_abort() -> None:
    lanes: Lanes[int] = Lanes(1, 1)
    thread, _ = in_thread(lambda: lanes.pause(60))
    lanes.abort()
    thread.join(20)
    assert not thread.is_alive() and lanes.take(1, None) is None
