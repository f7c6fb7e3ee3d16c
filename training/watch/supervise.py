"""What watches over an adaptation: reads monitors, rolls back when a limit is crossed, keeps candidates, chooses."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Any

import click
import torch
from torch import Tensor

from ptedge.artifacts.checkpoint import Checkpoint

from .. import distributed
from ..config import OptimConfig
from ..optim import restore_optimizer
from ..run_folder import RunFolder
from ..state import state_of
from .choose import ChoiceConfig, TeacherCandidate, choose, make_candidate, thin
from .guard import Guard, Trip
from .limits import GuardConfig, measures_of

STARVING = 50  # steps in a row without a pseudo box after which it is said


class Supervisor:
    """Holds the last good state and the candidates of one run.

    Args:
        folder: of the run.
        parts: models that change, by name: student, teacher, and what else is put back at a rollback.
        optimizer: put back as well.
        read: signals of the present models, the same in every process.
        checkpoint: step -> the present teacher as a checkpoint.
        guard: limits.
        choice: how model.pt is chosen.
        every: steps between readings.
        candidate_every: steps between candidates, a multiple of ``every``.
    """

    def __init__(
        self,
        folder: RunFolder,
        parts: Mapping[str, torch.nn.Module],
        optimizer: torch.optim.Optimizer,
        read: Callable[[], dict[str, Any]],
        checkpoint: Callable[[int], Checkpoint],
        *,
        guard: GuardConfig,
        choice: ChoiceConfig,
        every: int,
        candidate_every: int,
    ) -> None:
        self.folder = folder
        self.parts = parts
        self.optimizer = optimizer
        self.read = read
        self.checkpoint = checkpoint
        self.guard = Guard(guard)
        self.choice = choice
        self.every = every
        self.candidate_every = candidate_every
        self.candidates: list[TeacherCandidate] = []
        self.hungry = 0  # steps in a row without a pseudo box
        self.hungry_steps = 0  # in all
        self.good: dict[str, Any] = {}
        self.last: TeacherCandidate | None = None  # of the latest reading, wherever it was taken

    @property
    def start(self) -> dict[str, Any]:
        """Signals of the first reading."""
        return self.candidates[0].signals

    def begin(self, resumed: Mapping[str, Any] | None) -> bool:
        """Take the first reading, or take up what last.pt holds.

        Args:
            resumed: last.pt, whose models and optimiser are in place already.

        Returns:
            Whether there is something to do: not when a guard has ended the run, which is said.
        """
        if resumed is not None and "supervisor" in resumed:
            state = resumed["supervisor"]
            self.guard.restore(state["guard"])
            self.candidates = self._judged_anew(state["candidates"])
            self.hungry, self.hungry_steps = state["hungry"], state["hungry_steps"]
            self.good = state["good"] or self._snapshot()
        else:
            signals = self.read()
            self.candidates = [make_candidate(0, signals, signals, self.guard.config)]
            self.good = self._snapshot()
            self.folder.save_candidate(0, self.checkpoint(0))
        self.last = self.candidates[-1]
        self.folder.keep_candidates([candidate.step for candidate in self.candidates], saved=resumed is not None)
        if self.guard.stopped:
            click.echo(
                f"nothing is left to do: {self.guard.trips[-1].sentence}. Adapt anew with another --out and a lower "
                f"optim.lr, or go on without guards: --set guard.enabled=false",
                err=True,
            )
        return not self.guard.stopped

    def scaled(self, optim: OptimConfig) -> OptimConfig:
        """Settings with the learning rates that rollbacks have left."""
        factor = self.guard.lr_factor
        return replace(optim, lr=factor * optim.lr, anchor_lr=factor * optim.anchor_lr) if factor != 1.0 else optim

    def not_finite(self, step: int, note: str) -> Trip | None:
        """A step gave no finite loss or gradient. ``None``: guards are off, nothing was done."""
        return self._follow(self.guard.not_finite(step, note))

    def after_step(self, step: int, grad_norm: float, pseudo_boxes: float | None) -> tuple[dict[str, Any], Trip | None]:
        """Look at the step that was done, and read the monitors when it is time.

        Args:
            step: steps done.
            grad_norm: before clipping.
            pseudo_boxes: that the step learnt from; ``None`` when it learns from none by its settings.

        Returns:
            Signals (empty between readings), and what followed from a crossed limit.
        """
        fed = pseudo_boxes is None or distributed.any_of(pseudo_boxes > 0)  # the same answer in every process
        self.hungry = 0 if fed else self.hungry + 1
        self.hungry_steps += not fed
        trip = self._follow(self.guard.gradient(step, grad_norm))
        if trip is not None or step % self.every:
            return {}, trip
        signals = self.read()
        trip, good = self.guard.judge(step, measures_of(signals, self.start, self.guard.config))
        candidate = make_candidate(step, signals, self.start, self.guard.config)
        if self._follow(trip) is not None:
            return signals, trip
        self.last = candidate
        if good:
            self.guard.good_step = step
            self.good = self._snapshot()
        if self.choice.enabled and step % self.candidate_every == 0 and candidate.sound:
            self.folder.save_candidate(step, self.checkpoint(step))
            self.candidates = thin([*self.candidates, candidate], self.choice.keep)
            self.folder.keep_candidates([c.step for c in self.candidates])
        return signals, None

    @property
    def starving(self) -> bool:
        """Whether it is time to say that there has been no pseudo box for long."""
        return self.hungry > 0 and self.hungry % STARVING == 0

    def present(self, step: int) -> TeacherCandidate:
        """The present teacher as a candidate; read now unless it was."""
        if self.last is None or self.last.step != step:
            self.last = make_candidate(step, self.read(), self.start, self.guard.config)
        return self.last

    def _judged_anew(self, entries: list[dict[str, Any]]) -> list[TeacherCandidate]:
        """Candidates of last.pt by their signals: an earlier version may have scored them otherwise."""
        start = entries[0]["signals"]
        return [make_candidate(entry["step"], entry["signals"], start, self.guard.config) for entry in entries]

    def chosen(self, step: int) -> TeacherCandidate:
        """What model.pt is to be after ``step`` steps."""
        present = self.present(step)
        if not self.choice.enabled:
            return present
        return choose([*(c for c in self.candidates if c.step != step), present], self.choice.tolerance)

    def state(self, step: int) -> dict[str, Any]:
        """For last.pt. The good state is left out when it is the state that last.pt holds anyway."""
        return {
            "guard": self.guard.state(),
            "candidates": [candidate.to_json() for candidate in self.candidates],
            "hungry": self.hungry,
            "hungry_steps": self.hungry_steps,
            "good": None if self.guard.good_step == step else self.good,
        }

    def summary(self, step: int) -> dict[str, Any]:
        """For summary.json, after ``step`` steps."""
        return {
            "last": self.present(step).to_json(),
            "chosen": self.chosen(step).to_json(),
            "guards": [asdict(trip) for trip in self.guard.trips],
            "stopped_by_guard": self.guard.stopped,
            "steps_without_pseudo_boxes": self.hungry_steps,
            "start": self.candidates[0].to_json(),
        }

    def _follow(self, trip: Trip | None) -> Trip | None:
        if trip is not None:
            for name, model in self.parts.items():
                model.load_state_dict(self.good[name])
            restore_optimizer(self.optimizer, copy.deepcopy(self.good["optimizer"]))
        return trip

    def _snapshot(self) -> dict[str, Any]:
        states = {name: state_of(model) for name, model in self.parts.items()}
        return {**states, "optimizer": _on_cpu(self.optimizer.state_dict())}


def _on_cpu(value: Any) -> Any:
    """A copy with every tensor on the CPU."""
    if isinstance(value, Tensor):
        return value.detach().cpu().clone()
    if isinstance(value, dict):
        return {key: _on_cpu(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_on_cpu(entry) for entry in value)
    return copy.copy(value)
