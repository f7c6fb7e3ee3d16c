"""Uploads beside the work that prepares them."""

from __future__ import annotations

import threading

import pytest

from ptedge.errors import StoreError
from ptedge.runtime.transfer.uploads import Uploads


def test_uploads__all_are_sent_before_it_is_left() -> None:
    with Uploads(lambda number: 10 * number, 3) as uploads:
        for number in range(20):
            uploads.give(number)
    assert sorted(uploads.sent) == [10 * number for number in range(20)]


def test_uploads__an_error_is_told_by_the_next_thing_or_at_the_end() -> None:
    def send(number: int) -> int:
        if number == 1:
            raise StoreError("refused")
        return number

    for count in (2, 50):
        with pytest.raises(StoreError, match="refused"), Uploads(send, 2) as uploads:
            for number in range(count):
                uploads.give(number)
        assert set(uploads.sent) <= set(range(50)) - {1} and len(uploads.sent) < 50


def test_uploads__after_an_error_what_is_under_way_has_ended() -> None:
    begun, free = threading.Event(), threading.Event()

    def send(number: int) -> int:
        begun.set()
        free.wait(10.0)
        return number

    with pytest.raises(ValueError, match="elsewhere"), Uploads(send, 1) as uploads:
        uploads.give(1)
        begun.wait(10.0)
        threading.Timer(0.05, free.set).start()
        raise ValueError("elsewhere")
    assert uploads.sent == [1]


def test_uploads__a_signal_waits_for_nothing() -> None:
    begun, free = threading.Event(), threading.Event()

    def send(number: int) -> int:
        begun.set()
        free.wait(10.0)
        return number

    with pytest.raises(KeyboardInterrupt), Uploads(send, 1) as uploads:
        uploads.give(1)
        begun.wait(10.0)
        raise KeyboardInterrupt
    assert uploads.sent == []
    free.set()
