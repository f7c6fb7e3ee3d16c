"""The RUN folder: model.pt, last.pt, config.toml, metrics.jsonl, summary.json, and of an adaptation also last_model.pt
and checkpoints/. Every file is whole or absent.

Of several processes that train together the first one writes; the others only read.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click
import tomli_w
import torch

from ptedge.artifacts.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from ptedge.config import to_dict
from ptedge.errors import ArtifactError, OutputError
from ptedge.files import atomic_write, make_output_folder, write_error, write_json

from . import distributed
from .curves.events import EventLog
from .state import write_state


class RunFolder:
    """One run on disk.

    Args:
        path: the folder.
        resume: continue what is there; otherwise a folder that already holds a run is refused. A run that was broken
            off before its first last.pt begins anew.
        curves: write TensorBoard events and plots too.

    Raises:
        OutputError: not writable, or it holds a run and ``resume`` is off.
        ArtifactError: nothing to resume.
    """

    def __init__(self, path: Path, *, resume: bool, curves: bool = False) -> None:
        self.path = make_output_folder(path)
        self.curves = curves
        self.events: EventLog | None = None
        self.resume = resume and self.last.exists()
        if resume and not self.resume:
            if not (path / "config.toml").exists():
                raise ArtifactError(f"{path} holds no last.pt to resume from. Leave out --resume to start a new run")
            click.echo(f"{path} was broken off before its first checkpoint: it begins anew", err=True)
        if distributed.is_main():
            for left in path.rglob(".*.tmp"):  # of a process that was killed while it wrote
                left.unlink(missing_ok=True)
        if not resume and (self.last.exists() or self.model.exists()):
            raise OutputError(f"{path} already holds a run. Choose another --out, or continue it with --resume")

        self._wanted: set[int] = set()  # candidates by step
        self._saved: set[int] = set()  # those that last.pt speaks of: a run that is killed now goes on with them

    @property
    def model(self) -> Path:
        """The checkpoint to deploy."""
        return self.path / "model.pt"

    @property
    def last(self) -> Path:
        """The state to resume from."""
        return self.path / "last.pt"

    @property
    def last_model(self) -> Path:
        """The teacher of the last step, which model.pt may or may not be."""
        return self.path / "last_model.pt"

    def candidate(self, step: int) -> Path:
        """The teacher of an earlier step; step 0 is the model that adaptation began with."""
        return self.path / "checkpoints" / f"step_{step:06d}.pt"

    def write_config(self, config: Any) -> None:
        """Write config.toml with every key."""
        if not distributed.is_main():
            return
        with atomic_write(self.path / "config.toml", "w") as file:
            file.write(tomli_w.dumps(to_dict(config)))

    def start_metrics(self, first_step: int) -> None:
        """Begin metrics.jsonl, or cut off lines from steps that will be repeated, and a torn last line."""
        if not distributed.is_main():
            return
        path = self.path / "metrics.jsonl"
        kept = []
        if first_step and path.exists():
            for line in path.read_text("utf-8").splitlines():
                try:
                    if json.loads(line)["step"] <= first_step:
                        kept.append(line + "\n")
                except (json.JSONDecodeError, KeyError):
                    continue
        with atomic_write(path, "w") as file:
            file.writelines(kept)
        self.events = EventLog(self.path, first_step, self.curves)

    def log(self, values: dict[str, Any]) -> None:
        """Append one line to metrics.jsonl, and to the events."""
        if not distributed.is_main():
            return
        path = self.path / "metrics.jsonl"
        try:
            with open(path, "a", encoding="utf-8") as file:
                file.write(json.dumps(values) + "\n")
        except OSError as error:
            raise write_error(path, error) from None
        if self.events is not None:
            self.events.log(values)

    def save(self, checkpoint: Checkpoint, state: dict[str, Any], chosen: int | None = None) -> None:
        """Write model.pt and then last.pt.

        Args:
            checkpoint: of this step.
            state: everything needed to go on: tensors and plain values.
            chosen: step of the candidate that becomes model.pt, which may be this step's own; ``checkpoint`` becomes
                last_model.pt as well. ``None`` for a run without candidates.

        Raises:
            OutputError: not writable, or the disk is full; what was there before is untouched.
            ArtifactError: the chosen candidate's file is gone.
        """
        if chosen is None:
            save_checkpoint(self.model, checkpoint)
        else:
            save_checkpoint(self.last_model, checkpoint)
            _copy(self.last_model if chosen == state["step"] else self.candidate(chosen), self.model)
        write_state(self.last, state)
        self._saved = set(self._wanted)
        self._remove_candidates()

    def save_candidate(self, step: int, checkpoint: Checkpoint) -> None:
        """Write the checkpoint of a step beside the others.

        Raises:
            OutputError: not writable, or the disk is full.
        """
        if distributed.is_main():
            self._wanted.add(step)
            save_checkpoint(self.candidate(step), checkpoint)

    def keep_candidates(self, steps: Iterable[int], *, saved: bool = False) -> None:
        """Remove all candidates but these and those that last.pt speaks of.

        Args:
            steps: to keep.
            saved: last.pt speaks of these.
        """
        self._wanted = set(steps)
        if saved:
            self._saved = set(self._wanted)
        self._remove_candidates()

    def _remove_candidates(self) -> None:
        if distributed.is_main():
            kept = {self.candidate(step) for step in self._wanted | self._saved}
            for path in (self.path / "checkpoints").glob("step_*.pt"):
                if path not in kept:
                    path.unlink(missing_ok=True)

    def finish_curves(self) -> None:
        """End the events and draw RUN/plots; what goes wrong is said and changes nothing else."""
        if self.events is not None:
            self.events.close()
        if self.curves and distributed.is_main():
            from .curves.plots import plot_run_safely

            plot_run_safely(self.path)

    def restore_start(self, model: torch.nn.Module) -> None:
        """Make a model what the adaptation began with, where the run has kept that.

        Raises:
            ArtifactError: unreadable, or of another model.
        """
        path = self.candidate(0)
        if path.exists():
            try:
                model.load_state_dict(load_checkpoint(path).state)
            except RuntimeError:
                raise ArtifactError(f"{path} is of another model. Start a new run with another --out") from None

    def read_summary(self) -> dict[str, Any]:
        """summary.json as it is; empty when there is none or it is broken."""
        return read_summary(self.path)

    def write_summary(self, summary: dict[str, Any]) -> None:
        """Write summary.json."""
        if distributed.is_main():
            write_json(self.path / "summary.json", summary)


def read_summary(folder: Path) -> dict[str, Any]:
    """summary.json of a RUN folder as it is; empty when there is none or it is broken."""
    try:
        summary = json.loads((folder / "summary.json").read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return summary if isinstance(summary, dict) else {}


def _copy(source: Path, target: Path) -> None:
    if not source.exists():
        raise ArtifactError(
            f"{source} is gone, and model.pt was to become it. Set choice.enabled=false to go on without"
        )
    with atomic_write(target) as file, open(source, "rb") as original:
        shutil.copyfileobj(original, file)
