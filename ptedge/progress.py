"""How far long work is: on a terminal a line that is written over, elsewhere one line with the expected duration.

Work that ends within seconds shows nothing. A pipe or a log file gets one line, as soon as the pace is known, and not
hundreds; who asks for silence (``-q``) gets none.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Sized
from types import TracebackType
from typing import TypeVar

import click

T = TypeVar("T")
FIRST_SHOWN = 1.0  # seconds before which nothing is shown
WORTH_A_LINE = 5.0  # seconds in all from which the duration is told where there is no terminal
EVERY = 0.2  # seconds between two looks of the line


class Progress:
    """Of one piece of work; close it, or use ``with``, so that what follows begins on a line of its own.

    Attributes:
        done: units so far.
        total: units in all; may be set later.
    """

    def __init__(self, what: str, total: int | None, unit: str = "images") -> None:
        """Begin.

        Args:
            what: that is done, a few words.
            total: units in all; ``None`` where nobody knows.
            unit: what is counted, in the plural.
        """
        self.done = 0
        self.total = total
        self._what, self._unit = what, unit
        self._start = self._looked = time.monotonic()
        self._shown = 0  # characters on the terminal's line
        self._told = False

    def __call__(self, done: int) -> None:
        """Tell how many units are done by now."""
        self.done = done
        now = time.monotonic()
        if now - self._start < FIRST_SHOWN or now - self._looked < EVERY:
            return
        self._looked = now
        if sys.stderr.isatty():
            self._show(self._line(now - self._start))
        elif not self._told and self.total and done and (now - self._start) * self.total / done > WORTH_A_LINE:
            self._told = True
            left = in_words((now - self._start) * (self.total - done) / done)
            click.echo(f"{self._what}: {self.total} {self._unit}, about {left} to go", err=True)

    def close(self) -> None:
        """Leave the line empty."""
        if self._shown:
            click.echo("\r" + " " * self._shown + "\r", err=True, nl=False)
            self._shown = 0

    def __enter__(self) -> Progress:
        """Itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close."""
        self.close()

    def _line(self, seconds: float) -> str:
        if not self.total:
            return f"{self._what}: {self.done} {self._unit} in {in_words(seconds)}"
        line = f"{self._what}: {self.done}/{self.total} {self._unit}, {self.done / self.total:.0%}"
        return f"{line}, {in_words(seconds * (self.total - self.done) / self.done)} left" if self.done else line

    def _show(self, line: str) -> None:
        click.echo("\r" + line + " " * (self._shown - len(line)), err=True, nl=False)
        self._shown = len(line)


def tracked(items: Iterable[T], what: str, unit: str = "images", total: int | None = None) -> Iterator[T]:
    """Items one by one, with progress.

    Args:
        items: to go through.
        what: is done with them, a few words.
        unit: what they are, in the plural.
        total: how many; of what has a length that, else ``None``.
    """
    count = len(items) if total is None and isinstance(items, Sized) else total
    with Progress(what, count, unit) as progress:
        for done, item in enumerate(items):
            progress(done)
            yield item


def in_words(seconds: float) -> str:
    """A duration as people say it: ``40 s``, ``12 min``, ``3 h 20 min``."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02d} min"
