from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable

import pytest

from ptedge.progress import Progress, in_words, tracked


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def wait(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Lets seconds pass on a clock of this test."""
    now = [50.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])

    def wait(seconds: float) -> None:
        now[0] += seconds

    return wait


def work(wait: Callable[[float], None], total: int | None, each: float, count: int) -> None:
    with Progress("scoring", total) as progress:
        for done in range(1, count + 1):
            wait(each)
            progress(done)


def test_progress__terminal_line_is_written_over_and_left_empty(
    monkeypatch: pytest.MonkeyPatch, wait: Callable[[float], None]
) -> None:
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    work(wait, 4, 30.0, 4)
    lines = [line.rstrip() for line in stream.getvalue().split("\r") if line.strip()]
    assert lines == [
        "scoring: 1/4 images, 25%, 2 min left",
        "scoring: 2/4 images, 50%, 60 s left",
        "scoring: 3/4 images, 75%, 30 s left",
        "scoring: 4/4 images, 100%, 1 s left",
    ]
    assert stream.getvalue().endswith(" \r") and "\n" not in stream.getvalue()


def test_progress__elsewhere_one_line_with_the_duration(
    capsys: pytest.CaptureFixture[str], wait: Callable[[float], None]
) -> None:
    work(wait, 100, 1.0, 100)
    assert capsys.readouterr() == ("", "scoring: 100 images, about 2 min to go\n")  # after 1 s: 99 s


def test_progress__short_work_shows_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], wait: Callable[[float], None]
) -> None:
    work(wait, 4, 1.1, 4)  # 4.4 s, not worth a line in a log
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    work(wait, 100, 0.005, 100)
    assert capsys.readouterr() == ("", "") and stream.getvalue() == ""


def test_progress__unknown_total(monkeypatch: pytest.MonkeyPatch, wait: Callable[[float], None]) -> None:
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    work(wait, None, 2.0, 2)
    assert "scoring: 2 images in 4 s" in stream.getvalue()


def test_tracked__gives_all_and_closes_when_left(
    monkeypatch: pytest.MonkeyPatch, wait: Callable[[float], None]
) -> None:
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    assert list(tracked("abc", "reading", "letters")) == ["a", "b", "c"]
    assert list(tracked(iter("ab"), "reading")) == ["a", "b"]
    for letter in tracked("abcd", "reading", "letters"):
        wait(5.0)
        if letter == "c":
            break
    assert "reading: 2/4 letters, 50%, 10 s left" in stream.getvalue()
    assert stream.getvalue().endswith("\r")


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.2, "1 s"), (89, "89 s"), (90, "2 min"), (3600, "60 min"), (5400, "1 h 30 min"), (36300, "10 h 05 min")],
)
def test_in_words(seconds: float, words: str) -> None:
    assert in_words(seconds) == words
