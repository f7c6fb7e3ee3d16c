"""Which teacher of a run becomes model.pt. No labels and no models here: signals in, a choice out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ptedge.config import require

from .limits import GuardConfig, found_again, measures_of


@dataclass(frozen=True)
class ChoiceConfig:
    """The choice of model.pt among the teachers of a run.

    Attributes:
        enabled: choose; otherwise model.pt is the last teacher.
        keep: candidate files in RUN/checkpoints beside the start.
        every: steps between candidates, rounded up to readings of the monitors; 0 for a tenth of the run.
        tolerance: the last teacher is chosen unless its score is lower than the best one's by more than this share of
            it.
    """

    enabled: bool = True
    keep: int = 4
    every: int = 0
    tolerance: float = 0.1

    def __post_init__(self) -> None:
        require("choice.keep", self.keep, 1, 1000)
        require("choice.every", self.every, 0)
        require("choice.tolerance", self.tolerance, 0, 1)

    def steps(self, reading: int, total: int) -> int:
        """Steps between candidates: a multiple of those between readings."""
        wanted = self.every or max(1, total // 10)
        return -(-wanted // reading) * reading


@dataclass(frozen=True)
class TeacherCandidate:
    """A teacher that may become model.pt.

    Attributes:
        step: steps done.
        score: see :func:`score_of`.
        sound: within all limits of the guards.
        signals: what was measured.
    """

    step: int
    score: float
    sound: bool
    signals: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        """For summary.json and last.pt."""
        return {"step": self.step, "score": self.score, "sound": self.sound, "signals": self.signals}


def score_of(signals: Mapping[str, Any]) -> float:
    """How much a teacher finds again when the picture is disturbed, in objects an image.

    See :func:`~ptedge.training.watch.limits.found_again`.

    A detector that recognises objects finds them again in other colours and at another size; one that guesses does not.
    Confidence would be the wrong measure: it is what a collapse drives up. A detector can also find wrong things
    again (one box everywhere, a flood), which is why only candidates well within the guards' limits (boxes, objects,
    what the start saw) are compared by it; finding nothing scores 0.
    """
    return found_again(signals) if signals["boxes"] > 0 else 0.0


def make_candidate(
    step: int, signals: Mapping[str, Any], start: Mapping[str, Any], limits: GuardConfig
) -> TeacherCandidate:
    """A candidate from the signals at a step.

    Args:
        step: steps done.
        signals: of its teacher.
        start: of the start.
        limits: those of the guards, which hold here even when guards are off.
    """
    measures = measures_of(signals, start, limits)
    sound = step == 0 or all(measure.strain <= 1.0 for measure in measures)
    return TeacherCandidate(step, round(score_of(signals), 6), sound, dict(signals))


def choose(candidates: Sequence[TeacherCandidate], tolerance: float) -> TeacherCandidate:
    """The latest sound candidate whose score is no more than a share ``tolerance`` below the best of the sound ones.

    Args:
        candidates: in the order of steps; the start, step 0, comes first and is always sound.
        tolerance: in [0, 1]. Scores of a few frames are noisy, and later teachers have learnt more, so a small lead of
            an earlier one does not count.
    """
    sound = [candidate for candidate in candidates if candidate.sound]
    best = max(candidate.score for candidate in sound)
    return [candidate for candidate in sound if candidate.score >= best * (1.0 - tolerance)][-1]


def thin(candidates: Sequence[TeacherCandidate], keep: int) -> list[TeacherCandidate]:
    """At most ``keep`` candidates beside the start: those that are not sound go first, then the lowest scores.

    Args:
        candidates: in the order of steps. Of equal ones the earlier goes.
        keep: at least 1.
    """
    start, others = list(candidates[:1]), list(candidates[1:])
    while len(others) > keep:
        others.remove(min(others, key=lambda c: (c.sound, c.score, c.step)))
    return start + others
