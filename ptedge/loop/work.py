"""What every step works with: its round, the commands it may run, and what they answer."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ptedge.errors import PtedgeError
from ptedge.files import parse_json
from ptedge.processes import run_command

from .rounds import Round
from .settings import Place

MOST_ANSWER = 64 << 20  # characters of a document
MOST_SAID = 65536  # bytes at the end of a log that are looked at


class StepFailedError(PtedgeError):
    """A step could not be done; the next call tries again."""


@dataclass(frozen=True)
class Answer:
    """What a command came to.

    Attributes:
        status: exit status.
        document: that it printed; empty where there was none.
        said: the last line on stderr.
        log: file of all it said.
    """

    status: int
    document: Mapping[str, Any]
    said: str
    log: Path

    def needed(self) -> Mapping[str, Any]:
        """The document of a command that must have succeeded.

        Raises:
            StepFailedError: it failed.
        """
        if self.status or not self.document:
            raise StepFailedError(f"{self.said or f'exit status {self.status}'} (all it said: {self.log})")
        return self.document


@dataclass
class Work:
    """A round at work.

    Attributes:
        place: of the site.
        round: that is at work.
        echo: told what happens.
        lock: descriptor of the site's lock, which commands inherit; ``None`` for none.
        commands: that the present step has run.
    """

    place: Place
    round: Round
    echo: Callable[[str], None]
    lock: int | None = None
    commands: list[tuple[str, ...]] = field(default_factory=list)

    def ptedge(self, step: str, *words: str | Path) -> Answer:
        """Run ``ptedge WORDS --json`` to its end.

        A process apart keeps memory clean, and proves that the parts need nothing of each other but files. The site's
        lock is held until the last of them ends, should this process be killed.

        Args:
            step: of :data:`~ptedge.loop.settings.COMMANDS`, which may have a command of its own.
            words: name of the command and arguments.

        Raises:
            StepFailedError: it cannot be started.
            SystemExit: a signal came; the command has finished its files.
        """
        command = (*self._program(step), *map(str, words), "--json")
        self.commands.append(command)
        log = self.round.folder / "logs" / f"{step}.txt"
        log.parent.mkdir(parents=True, exist_ok=True)
        start = log.stat().st_size if log.exists() else 0
        with open(log, "ab") as stderr:
            try:
                keep = () if self.lock is None else (self.lock,)
                status, said = run_command(command, stderr, folder=self.place.home, keep=keep)
            except OSError as error:
                raise StepFailedError(
                    f"{command[0]} cannot be started: {error.strerror}. See commands.{step}"
                ) from None
        return Answer(status, _document(said), _last_line(log, start), log)

    def _program(self, step: str) -> tuple[str, ...]:
        return self.place.site.commands.get(step) or (sys.executable, "-m", "ptedge")


def _document(text: str) -> dict[str, Any]:
    try:
        values = parse_json(text) if len(text) <= MOST_ANSWER else None
    except ValueError:
        return {}
    return values if isinstance(values, dict) else {}


def _last_line(log: Path, start: int) -> str:
    """The last sentence of ptedge in a log beyond a place, or else the last line: a launcher adds its own report."""
    with open(log, "rb") as file:
        file.seek(max(start, file.seek(0, os.SEEK_END) - MOST_SAID))
        lines = [line for line in file.read().decode("utf-8", "replace").splitlines() if line.strip()]
    ours = [line for line in lines if line.startswith("ptedge: ")] or lines
    return ours[-1].removeprefix("ptedge: ") if ours else ""
