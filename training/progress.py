"""What the user sees during a run: a bar with the losses on a terminal, plain lines elsewhere; how fast it is."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from types import TracebackType

import click
import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from ptedge.progress import WORTH_A_LINE, in_words

PACE_KNOWN = 2.0  # seconds after which steps are timed well enough
CLOSE = 0.25  # share by which a first guess may be off before it is told anew


def _short(name: str) -> str:
    return name.replace("target_", "t-").replace("labelled_", "l-").removesuffix("_cls").replace("_", " ")


class TrainingProgress:
    """A progress bar on stderr.

    Args:
        name: what runs.
        steps: in all.
        first_step: already done.
    """

    def __init__(self, name: str, steps: int, first_step: int) -> None:
        self.console = Console(stderr=True, soft_wrap=True)
        self.steps = steps
        self.bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[text]}"),
            console=self.console,
            disable=not self.console.is_terminal,
        )
        self.begun: tuple[int, float] | None = None  # steps done, and when
        self.guess: float | None = None  # seconds from the first step to the end, at the first step's pace
        self.told = False
        self.task = self.bar.add_task(name, total=steps, completed=first_step, text="")

    def __enter__(self) -> TrainingProgress:
        self.bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.bar.stop()

    def step(self, done: int) -> None:
        """Move the bar; where there is none, say how long the run will take, as soon as the pace is known."""
        self.bar.update(self.task, completed=done)
        if self.begun is None:  # the first step starts workers, too, and tells nothing of the pace
            self.begun = (done, time.monotonic())
        first, start = self.begun
        seconds = time.monotonic() - start
        if self.told or self.console.is_terminal or seconds < PACE_KNOWN or done == first:
            return
        self.told = True
        left = seconds * (self.steps - done) / (done - first)
        if left >= WORTH_A_LINE and not self._as_guessed(left + seconds):
            click.echo(f"{self.steps} steps, about {in_words(left)} to go", err=True)

    def _as_guessed(self, whole: float) -> bool:
        """Whether a duration from the first step on is within a quarter of the one that was told already."""
        return self.guess is not None and abs(whole - self.guess) <= CLOSE * whole

    def _tell_first(self, done: int, values: dict[str, float]) -> None:
        """Say at the first step how long the run will take; waiting for its data, which starts workers, left out."""
        if self.guess is not None or self.told or "step_seconds" not in values:
            return
        self.guess = values["step_seconds"] * (1 - values.get("data_wait", 0.0)) * (self.steps - done)
        if self.guess >= WORTH_A_LINE:
            click.echo(f"{self.steps} steps, about {in_words(self.guess)} to go by the first one's pace", err=True)

    def note(self, text: str) -> None:
        """Show a line above the bar."""
        self.console.print(text, style="yellow", markup=False, highlight=False)  # a path may hold brackets

    def log(self, done: int, values: dict[str, float], extra: str = "") -> None:
        """Show losses."""
        parts = [f"{_short(name)} {value:.3f}" for name, value in values.items() if name.endswith(("_cls", "_box"))]
        text = (
            f"loss {values['loss']:.3f} ({', '.join(parts)}) {extra}".rstrip() if "loss" in values else "no finite loss"
        )
        self.bar.update(self.task, text=text)
        self.step(done)
        if not self.console.is_terminal:
            click.echo(f"step {done}/{self.steps}  {text}", err=True)
            self._tell_first(done, values)


class Stopwatch:
    """How fast steps are, how much of that is waiting for data, and the GPU memory they take.

    Args:
        images: a step, of all streams and processes.
        device: that trains.
    """

    def __init__(self, images: int, device: torch.device) -> None:
        self.images = images
        self.device = device
        self.begin = time.perf_counter()
        self.waited = 0.0
        self.last_step = 0
        # over the whole run: readings after the first, in which workers start and a GPU looks for its kernels
        self.steps, self.seconds, self.waiting_seconds = 0, 0.0, 0.0
        self.first: dict[str, float] = {}

    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        """Count the time inside as waiting."""
        start = time.perf_counter()
        yield
        self.waited += time.perf_counter() - start

    def read(self, done: int) -> dict[str, float]:
        """Speed since the last reading; starts anew.

        Args:
            done: steps since the stopwatch was made.

        Returns:
            ``step_seconds``, ``data_wait`` (share of time) and ``images_per_second``; on a GPU also ``gpu_memory_mib``,
            the highest so far.
        """
        seconds, steps = max(time.perf_counter() - self.begin, 1e-9), max(done - self.last_step, 1)
        if self.last_step:
            self.steps, self.seconds = self.steps + steps, self.seconds + seconds
            self.waiting_seconds += self.waited
        values = self._values(steps, seconds, self.waited)
        self.first = self.first or values
        self.begin, self.waited, self.last_step = time.perf_counter(), 0.0, done
        return values

    def summary(self) -> dict[str, float]:
        """Speed over all readings but the first; the first where there is no other."""
        return self._values(self.steps, self.seconds, self.waiting_seconds) if self.steps else self.first

    def _values(self, steps: int, seconds: float, waited: float) -> dict[str, float]:
        values = {
            "step_seconds": round(seconds / steps, 4),
            "data_wait": round(waited / seconds, 4),
            "images_per_second": round(self.images * steps / seconds, 2),
        }
        if self.device.type == "cuda":
            values["gpu_memory_mib"] = round(torch.cuda.max_memory_allocated(self.device) / 2**20, 1)
        return values
