"""The supervisor of a run, step by step: what it keeps, what it puts back, what it counts."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from ptedge.training.config import OptimConfig
from ptedge.training.watch.choose import ChoiceConfig
from ptedge.training.watch.limits import GuardConfig
from ptedge.training.watch.supervise import Supervisor

START: dict[str, Any] = {
    "boxes": 5.0,
    "objects": 1.0,
    "entropy": 0.4,
    "sigma": 0.1,
    "histogram_distance": 0.0,
    "source_coverage": 1.0,
    "width_ratio": 1.0,
    "height_ratio": 1.0,
    "student_agreement": 1.0,
    "consistency": 0.4,
}
BAD, USED_UP = {"source_coverage": 0.1}, {"source_coverage": 0.3}  # limit 0.2; good down to 0.4


class Folder:
    """Notes which candidates are on disk."""

    def __init__(self) -> None:
        self.saved: list[int] = []
        self.kept: list[int] = []

    def save_candidate(self, step: int, checkpoint: Any) -> None:
        assert checkpoint == f"teacher of step {step}"
        self.saved.append(step)

    def keep_candidates(self, steps: list[int], *, saved: bool = False) -> None:
        self.kept = list(steps)


class Made:
    """A supervisor of one weight, which is the number of steps done, with monitors that say what they are told."""

    def __init__(self, enabled: bool = True, choice: ChoiceConfig | None = None, every: int = 1, at: int = 1) -> None:
        self.model = torch.nn.Linear(1, 1, bias=False)
        torch.nn.init.zeros_(self.model.weight)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1.0, momentum=0.5)
        self.signals, self.reads, self.folder = dict(START), 0, Folder()
        self.supervisor = Supervisor(
            self.folder,  # type: ignore[arg-type]
            {"student": self.model},
            self.optimizer,
            self.read,
            lambda step: f"teacher of step {step}",  # type: ignore[arg-type, return-value]
            guard=GuardConfig(enabled=enabled, lr_factor=0.5),
            choice=choice or ChoiceConfig(),
            every=every,
            candidate_every=at,
        )
        assert self.supervisor.begin(None)

    def read(self) -> dict[str, Any]:
        self.reads += 1
        return dict(self.signals)

    def step(self, number: int, changes: dict[str, Any] | None = None, pseudo_boxes: float | None = 1.0) -> Any:
        """Make the weight and its momentum the step's number, in place, and tell the supervisor."""
        self.signals = {**START, **(changes or {})}
        with torch.no_grad():
            self.model.weight.fill_(number)
        state = self.optimizer.state[self.model.weight]
        state.setdefault("momentum_buffer", torch.zeros(1, 1)).fill_(number)
        return self.supervisor.after_step(number, 1.0, pseudo_boxes)

    @property
    def stands_at(self) -> tuple[float, float]:
        """Weight and momentum."""
        return float(self.model.weight.detach()), float(self.optimizer.state[self.model.weight]["momentum_buffer"])


def test_after_step__a_trip_puts_back_the_last_good_state() -> None:
    made = Made()
    made.step(1)
    assert made.step(2, USED_UP)[1] is None  # within its limits, but not worth going back to
    signals, trip = made.step(3, BAD)
    assert signals["source_coverage"] == 0.1
    assert (trip.action, trip.back_to) == ("rollback", 1) and made.stands_at == (1.0, 1.0)
    # what is put back is a copy: steps that follow do not wear it out
    assert made.step(4, BAD)[1].back_to == 1 and made.stands_at == (1.0, 1.0)


def test_not_finite__puts_back_too_unless_guards_are_off() -> None:
    made = Made()
    made.step(1)
    made.step(2, USED_UP)
    assert made.supervisor.not_finite(3, "no loss") is not None and made.stands_at == (1.0, 1.0)
    off = Made(enabled=False)
    off.step(1)
    assert off.supervisor.not_finite(2, "no loss") is None and off.stands_at == (1.0, 1.0)


def test_scaled__both_learning_rates_after_each_rollback() -> None:
    made, optim = Made(), OptimConfig(lr=0.1, anchor_lr=0.8)
    assert made.supervisor.scaled(optim) == optim
    made.step(1, BAD)
    made.step(2, BAD)
    scaled = made.supervisor.scaled(optim)
    assert (scaled.lr, scaled.anchor_lr) == pytest.approx((0.025, 0.2))


def test_after_step__candidates_are_sound_and_at_their_steps() -> None:
    made = Made(enabled=False, every=2, at=4)
    for step in range(1, 17):
        made.step(step, BAD if step == 8 else {"consistency": 0.4 + step / 100})
    assert made.folder.saved == [0, 4, 12, 16] and made.folder.kept == [0, 4, 12, 16]
    assert made.reads == 1 + 8


def test_after_step__no_more_candidates_than_are_kept() -> None:
    made = Made(choice=ChoiceConfig(keep=2))
    for step, consistency in enumerate((0.5, 0.7, 0.6, 0.8), 1):
        made.step(step, {"consistency": consistency})
    assert made.folder.saved == [0, 1, 2, 3, 4] and made.folder.kept == [0, 2, 4]
    off = Made(choice=ChoiceConfig(enabled=False))
    off.step(1)
    assert off.folder.saved == [0]


def test_chosen__of_the_candidates_and_the_present() -> None:
    made = Made(choice=ChoiceConfig(tolerance=0.1))
    made.step(1, {"consistency": 0.9})
    made.step(2, {"consistency": 0.85})
    assert made.supervisor.chosen(2).step == 2  # within the tolerance
    made.step(3, {"consistency": 0.7})
    assert made.reads == 4 and made.supervisor.chosen(3).step == 2
    assert made.reads == 4  # the last reading is of this step: not asked again
    assert made.supervisor.present(4).step == 4 and made.reads == 5
    off = Made(choice=ChoiceConfig(enabled=False))
    off.step(1, {"consistency": 0.1})
    assert off.supervisor.chosen(1).step == 1


def test_starving__counts_steps_in_a_row_and_in_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ptedge.training.watch.supervise.STARVING", 2)
    made, told = Made(), []
    for step, boxes in enumerate((0.0, 1.0, 0.0, 0.0, 0.0, 0.0, None, 0.0), 1):
        made.step(step, pseudo_boxes=boxes)
        told.append(made.supervisor.starving)
    assert told == [False, False, False, True, False, True, False, False]
    assert made.supervisor.hungry_steps == 6 and made.supervisor.hungry == 1


def test_state__what_a_resumed_run_takes_up() -> None:
    made = Made(choice=ChoiceConfig(keep=1))
    made.step(1, pseudo_boxes=0.0)
    assert made.supervisor.state(1)["good"] is None  # last.pt holds it anyway
    made.step(2, USED_UP)
    state = made.supervisor.state(2)
    assert float(state["good"]["student"]["weight"]) == 1.0 and state["hungry_steps"] == 1
    again = Made()
    assert again.supervisor.begin({"supervisor": state})
    assert [c.step for c in again.supervisor.candidates] == [0, 2] and again.folder.kept == [0, 2]
    assert again.supervisor.guard.good_step == 1 and again.reads == 1  # nothing is read anew
    again.step(3, BAD)
    assert again.stands_at == (1.0, 1.0)


def test_begin__an_ended_run_stays_ended(capsys: pytest.CaptureFixture[str]) -> None:
    made = Made()
    for step in range(1, 5):
        made.step(step, BAD)
    assert made.supervisor.guard.stopped and made.supervisor.summary(4)["stopped_by_guard"]
    assert not Made().supervisor.begin({"supervisor": made.supervisor.state(4)})
    assert "nothing is left to do: guard at step 4: min_source_coverage" in capsys.readouterr().err
