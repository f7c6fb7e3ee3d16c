"""Commands one after another: each in its own process, timed, logged; the first failure ends them."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from ptedge.errors import TrainingError
from ptedge.processes import run_command

Echo = Callable[[str], None]


@dataclass
class Steps:
    """A sequence of named steps.

    Attributes:
        logs: folder for what each command says on stderr.
        echo: told the name, the command and the seconds of each step.
        seconds: what each step took, by name, in order.
    """

    logs: Path
    echo: Echo
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Announce a step, and say what it took."""
        self.echo(f"[{len(self.seconds) + 1}] {name}")
        begin = time.monotonic()
        yield
        self.seconds[name] = round(time.monotonic() - begin, 1)
        self.echo(f"    {self.seconds[name]:.0f} s")

    def ptedge(self, name: str, *arguments: str | Path) -> str:
        """Run ``ptedge ARGUMENTS`` as a step of its own.

        A process apart keeps memory clean, and proves that the parts need nothing from each other but files.

        Returns:
            What it wrote to stdout.

        Raises:
            TrainingError: the command failed; the text holds its own message and the place of its log.
        """
        words = [str(argument) for argument in arguments]
        self.logs.mkdir(parents=True, exist_ok=True)
        log = self.logs / f"{len(self.seconds) + 1:02d}-{words[0]}.txt"
        with self.step(name):
            self.echo(f"    $ {shlex.join(['ptedge', *words])}")
            with open(log, "w", encoding="utf-8") as stderr:
                status, said_on_stdout = run_command([sys.executable, "-m", "ptedge", *words], stderr)
            if status:
                said = [line for line in log.read_text("utf-8", errors="replace").splitlines() if line.strip()]
                reason = said[-1] if said else f"exit status {status}"
                raise TrainingError(f"the demo stopped at {name!r}: {reason} (all it said: {log})")
        return said_on_stdout


__all__ = ["Steps"]
