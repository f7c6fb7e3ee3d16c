"""When a run looks at its deployment."""

from __future__ import annotations

import threading

import pytest

from ptedge.errors import StoreError
from ptedge.runtime.deployment import looks
from ptedge.runtime.deployment.looks import LONGEST, Looks


def nothing() -> None:
    pass


def test_pause__spreads_and_grows_while_looks_fail() -> None:
    made = Looks(nothing, nothing, "s3://fleet/north", lambda text: None, 60)
    pauses = [made.pause() for _ in range(200)]
    assert 45 <= min(pauses) < 50 and 70 < max(pauses) <= 75
    for _ in range(2):
        made.fail(StoreError("away"))
    assert 180 <= made.pause() <= 300
    for _ in range(2000):
        made.fail(StoreError("away"))
    assert 0.75 * LONGEST <= made.pause() <= 1.25 * LONGEST
    made.once()
    assert made.pause() <= 75


def test_once__counts_and_tells_of_the_first_failure_and_of_the_end() -> None:
    told: list[str] = []
    left = [StoreError("no route"), RuntimeError("odd")]

    def look() -> None:
        if left:
            raise left.pop(0)

    made = Looks(look, nothing, "north", told.append, 1)
    for _ in range(4):
        made.once()
    assert told == [
        "north cannot be followed; what runs goes on: no route",
        "north is followed again, after 2 looks that failed",
    ]
    assert made.to_json() == {"looks": 4, "failed_looks": 2, "away_since": None}


def test_start__looks_and_does_the_rest_between(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looks, "BETWEEN", 0.001)
    looked, other = threading.Event(), threading.Event()
    made = Looks(looked.set, other.set, "north", lambda text: None, 0.01)
    made.start()
    assert looked.wait(10) and other.wait(10)
    assert made.stop() and made.stopped


def test_stop__does_not_wait_for_a_store_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looks, "LEAVE", 0.01)
    begun, end = threading.Event(), threading.Event()

    def look() -> None:
        begun.set()
        end.wait(10)

    made = Looks(look, nothing, "north", lambda text: None, 0.001)
    made.start()
    assert begun.wait(10)
    assert not made.stop()
    end.set()
