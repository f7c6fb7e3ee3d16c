"""TensorBoard events of a run: every number of every logged line, without doubles after a break."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import click

from .read import scalars, trip_of
from .terms import heading

NO_TENSORBOARD = 'tensorboard is not installed, so no events are written. Install it with: pip install "ptedge[train]"'


class EventLog:
    """Writes RUN/events as lines are logged. Whatever goes wrong here is said once and never ends the run.

    Args:
        run: RUN folder.
        first_step: steps already done; events of later steps, from before a break, are purged.
        enabled: ``False`` writes nothing.
    """

    def __init__(self, run: Path, first_step: int, enabled: bool = True) -> None:
        self.folder = run / "events"
        self.last_step = first_step
        self.writer: Any = None
        if not enabled:
            return
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            click.echo(NO_TENSORBOARD, err=True)
            return
        self._open_class = SummaryWriter
        try:
            known = first_step > 0 and any(self.folder.glob("events.*"))
            if not known:
                shutil.rmtree(self.folder, ignore_errors=True)
            self._open(first_step + 1 if known else None)
            if first_step and not known:  # begun where tensorboard was missing: catch up
                self._catch_up(run / "metrics.jsonl")
        except OSError as error:
            self._give_up(error)

    def __enter__(self) -> EventLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def log(self, line: Mapping[str, Any]) -> None:
        """Add a logged line.

        Args:
            line: as in metrics.jsonl, with ``step``.
        """
        if self.writer is None:
            return
        try:
            step = int(line["step"])
            if step <= self.last_step:  # a guard went back: what came after that state is history no more
                self.writer.close()
                self._open(step)
            self._add(line)
            self.writer.flush()  # lines are rare; a killed run loses none
        except (OSError, ValueError) as error:
            self._give_up(error)

    def close(self) -> None:
        """End the file."""
        if self.writer is not None:
            with contextlib.suppress(OSError):
                self.writer.close()
            self.writer = None

    def _open(self, purge_step: int | None) -> None:
        self.writer = self._open_class(str(self.folder), purge_step=purge_step, max_queue=1000, flush_secs=600)

    def _add(self, line: Mapping[str, Any]) -> None:
        step = int(line["step"])
        for key, value in scalars(line).items():
            self.writer.add_scalar(tag_of(key), value, step)
        shapes = line.get("anchors")
        for i, (width, height) in enumerate(shapes if isinstance(shapes, list) else []):
            self.writer.add_scalar(f"anchors/{i}_width", width, step)
            self.writer.add_scalar(f"anchors/{i}_height", height, step)
        trip = trip_of(line)
        if trip is not None:
            self.writer.add_text("guards", trip.text, step)
        self.last_step = step

    def _catch_up(self, metrics: Path) -> None:
        for text in metrics.read_text("utf-8").splitlines():
            self._add(json.loads(text))

    def _give_up(self, error: Exception) -> None:
        click.echo(f"no more events are written to {self.folder}: {error}", err=True)
        self.close()


def tag_of(key: str) -> str:
    """The name of a number in TensorBoard, under the heading it belongs to."""
    return key if "/" in key else f"{heading(key)}/{key}"
