"""What happens when a limit on the monitors is crossed. No models here: measures in, verdicts out."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from .limits import LIMITS, GuardConfig, Measure, worst

GOOD = 0.75  # a state is worth going back to when no limit is used up further than this, or it would soon trip again
HISTORY = 64  # gradient norms that a new one is compared with
ENOUGH = 16  # of them, before it is


@dataclass(frozen=True)
class Trip:
    """A limit that was crossed, and what followed.

    Attributes:
        step: steps done.
        name: of the limit in ``[guard]``, or ``finite``.
        value: what was measured; ``None`` when not finite.
        limit: what is allowed; ``None`` when not finite.
        action: ``rollback`` or ``stop``.
        back_to: step of the state that was put back.
        lr_factor: on the configured learning rates from here on.
        note: what was not finite.
    """

    step: int
    name: str
    value: float | None
    limit: float | None
    action: str
    back_to: int
    lr_factor: float
    note: str = ""

    @property
    def sentence(self) -> str:
        """For the screen."""
        if self.value is None or self.limit is None:
            what = self.note
        else:
            side = "below" if LIMITS[self.name].side == "lower" else "above"
            what = f"{self.name} is {self.value:.3g}, {side} its limit {self.limit:.3g}"
        where = "the start" if self.back_to == 0 else f"step {self.back_to}"
        done = f"guard at step {self.step}: {what}; back to the model of {where}"
        if self.action == "stop":
            return f"{done}, and stopped there"
        return f"{done}, learning rate from here x {self.lr_factor:g}"


@dataclass
class Guard:
    """Counts crossings and decides. Everything it remembers is plain values, for last.pt.

    Attributes:
        config: limits.
        good_step: step of the last good state.
        strikes: readings in a row over a limit.
        jolts: steps in a row with an exploding gradient.
        norms: the last gradient norms.
        rollbacks: so far.
        trips: so far.
    """

    config: GuardConfig
    good_step: int = 0
    strikes: int = 0
    jolts: int = 0
    norms: list[float] = field(default_factory=list)
    rollbacks: int = 0
    trips: list[Trip] = field(default_factory=list)

    @property
    def lr_factor(self) -> float:
        """On the configured learning rates."""
        return float(self.config.lr_factor**self.rollbacks)

    @property
    def stopped(self) -> bool:
        """Whether the run has come to its end."""
        return self.config.enabled and bool(self.trips) and self.trips[-1].action == "stop"

    def judge(self, step: int, measures: list[Measure]) -> tuple[Trip | None, bool]:
        """Look at one reading of the monitors.

        Returns:
            What follows, if anything, and whether the present state is a good one.
        """
        if not self.config.enabled or not measures:
            return None, self.config.enabled
        measure = worst(measures)
        if measure.strain <= 1.0:
            self.strikes = 0
            return None, measure.strain <= GOOD
        self.strikes += 1
        if self.strikes < self.config.patience:
            return None, False
        return self._trip(step, measure.name, measure.value, measure.limit), False

    def gradient(self, step: int, norm: float) -> Trip | None:
        """Look at the gradient norm of one step."""
        if not self.config.enabled or not math.isfinite(norm):  # fp16 leaves such a step out by itself
            return None
        usual = statistics.median(self.norms) if len(self.norms) >= ENOUGH else 0.0
        if usual > 0.0 and norm > self.config.max_gradient_ratio * usual:
            self.jolts += 1
            if self.jolts >= self.config.patience:
                return self._trip(step, "max_gradient_ratio", norm / usual, self.config.max_gradient_ratio)
            return None
        self.jolts = 0
        self.norms = [*self.norms, norm][-HISTORY:]
        return None

    def not_finite(self, step: int, note: str) -> Trip | None:
        """A loss or gradient that is not finite; nothing when guards are off."""
        return self._trip(step, "finite", None, None, note) if self.config.enabled else None

    def _trip(self, step: int, name: str, value: float | None, limit: float | None, note: str = "") -> Trip:
        over = self.config.action == "stop" or self.rollbacks >= self.config.max_rollbacks
        if not over:
            self.rollbacks += 1
        self.strikes, self.jolts, self.norms = 0, 0, []
        action = "stop" if over else "rollback"
        trip = Trip(step, name, value, limit, action, self.good_step, self.lr_factor, note)
        self.trips.append(trip)
        return trip

    def state(self) -> dict[str, Any]:
        """Plain values for last.pt."""
        return {
            "good_step": self.good_step,
            "strikes": self.strikes,
            "jolts": self.jolts,
            "norms": list(self.norms),
            "rollbacks": self.rollbacks,
            "trips": [asdict(trip) for trip in self.trips],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take back what :meth:`state` gave."""
        for name, value in state.items():
            setattr(self, name, [Trip(**trip) for trip in value] if name == "trips" else value)
