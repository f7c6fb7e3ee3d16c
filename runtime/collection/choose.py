"""Which frames are of interest: each strategy's number, held against those of the frames so far."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .count_change import count_change
from .drift import Drift
from .entropy import entropy
from .ledger import RANDOM
from .missed import missed
from .near_threshold import near_threshold
from .neighbours import neighbours
from .policy import Policy
from .sigma import sigma
from .small import dhash_of_small
from .window import Look, Window

WARM_UP = 20  # frames seen before "more than most" means anything
RESERVOIR = 1000  # values that a new one is held against
RECENT = 500  # kept frames a new one is compared with

Strategy = Callable[[Window], float]  # how much it has to say of a frame; 0 for nothing


def strategies() -> dict[str, Strategy]:
    """A new one of each but ``random``, by the name that stands in policies and in ``why``."""
    return {
        "entropy": entropy,
        "sigma": sigma,
        "near_threshold": near_threshold,
        "count_change": count_change,
        "neighbours": neighbours,
        "drift": Drift(),
        "missed": missed,
    }


@dataclass(frozen=True)
class Choice:
    """What strategies say of a frame.

    Attributes:
        why: strategies that picked it, the one it is kept for first; none: it is not of interest.
        informative: the number of the first of them, to be compared with others that it was kept for; of a frame that
            chance picked, chance says it too, 0 to 1, so that those which stay are as unbiased as those which came.
        measures: the number of each strategy that is on.
    """

    why: tuple[str, ...]
    informative: float
    measures: Mapping[str, float]


class Chooser:
    """The decisions, apart from files."""

    def __init__(self, policy: Policy, num_classes: int, chance: random.Random) -> None:
        """Begin without any frame.

        Args:
            policy: which strategies are on, and how much each picks.
            num_classes: K.
            chance: draws.
        """
        self.num_classes = num_classes
        self._policy, self._chance = policy, chance
        shares = policy.shares.by_name
        self._strategies = {name: one for name, one in strategies().items() if shares[name] > 0}
        self._shares = shares
        self._values = {name: Reservoir(chance) for name in self._strategies}
        self._recent: deque[int] = deque(maxlen=RECENT)
        self._last: dict[str, tuple[int, float | None]] = {}  # index and time, by source

    def choose(self, window: Window) -> Choice:
        """Ask every strategy about a frame."""
        measures = {name: strategy(window) for name, strategy in self._strategies.items()}
        ranks: dict[str, float] = {}
        draw, share = self._chance.random(), self._shares[RANDOM]
        if draw < share:
            ranks[RANDOM] = 1 - draw / share
        for name, value in measures.items():
            rank = self._values[name].rank(value, 1 - self._shares[name])
            if rank is not None:
                ranks[name] = rank
            self._values[name].add(value)
        # chance comes first: what it picked stays a sample of all frames
        why = tuple(sorted(ranks, key=lambda name: (name != RANDOM, -ranks[name])))
        return Choice(why, (measures | {RANDOM: ranks.get(RANDOM, 0.0)})[why[0]] if why else 0.0, measures)

    def refusal(self, window: Window) -> str | None:
        """Why a frame that is of interest is passed over all the same: too soon after another, or too like one."""
        around = [window.now, *window.neighbours] if self._policy.triples else [window.now]
        if any(look.written for look in around) or self._too_close(window.now):
            return "too soon"
        code = dhash_of_small(window.now.small)
        bits = self._policy.spacing.duplicate_bits
        return "duplicate" if any((code ^ other).bit_count() <= bits for other in self._recent) else None

    def keep(self, look: Look) -> None:
        """Remember a kept frame."""
        frame = look.result.frame
        self._last[frame.source] = frame.index, frame.time
        self.remember(dhash_of_small(look.small))

    def remember(self, code: int) -> None:
        """A frame of this hash is in the folder."""
        self._recent.append(code)

    def _too_close(self, look: Look) -> bool:
        frame, spacing = look.result.frame, self._policy.spacing
        index, time = self._last.get(frame.source, (None, None))
        if index is not None and 0 <= frame.index - index < spacing.frames:
            return True
        return frame.time is not None and time is not None and 0 <= frame.time - time < spacing.seconds


class Reservoir:
    """An even sample of all values so far, in constant memory (reservoir sampling)."""

    def __init__(self, chance: random.Random) -> None:
        """Begin without any.

        Args:
            chance: draws.
        """
        self.values: NDArray[np.float64] = np.empty(RESERVOIR)
        self.seen = 0
        self._chance = chance

    def rank(self, value: float, least: float) -> float | None:
        """Share of the values so far that are lower.

        Args:
            value: a new one, not added yet.
            least: quantile that it must be above.

        Returns:
            0 to 1; ``None`` where it is not above, or too few values are there.
        """
        known = self.values[: min(self.seen, len(self.values))]
        if self.seen < WARM_UP or value <= float(np.quantile(known, least)):
            return None
        return float((known < value).mean())

    def add(self, value: float) -> None:
        """Take a value in."""
        size = len(self.values)
        place = self.seen if self.seen < size else self._chance.randrange(self.seen + 1)
        if place < size:
            self.values[place] = value
        self.seen += 1
