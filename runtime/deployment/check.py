"""One line of the gate's report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class GateCheck:
    """What was looked at before a version was let through.

    Attributes:
        name: of :data:`NAMES`.
        passed: it holds, or was not judged.
        detail: in words, with the numbers.
        judged: false for what could not be looked at here, and why stands in ``detail``.
        accepted: it does not hold, and was let through by name.
        figures: the numbers.
    """

    name: str
    passed: bool
    detail: str
    judged: bool = True
    accepted: bool = False
    figures: dict[str, float] = field(default_factory=dict)


NAMES = ("signature", "classes", "answers", "speed", "adaptation", "estimate", "champion", "labels")


def failed(checks: Sequence[GateCheck]) -> list[GateCheck]:
    """Those that keep a version out."""
    return [check for check in checks if not check.passed and not check.accepted]


def to_lines(checks: Sequence[GateCheck]) -> list[str]:
    """One line a check."""
    width = max(len(check.name) for check in checks)
    return [f"{_word(check):<8}  {check.name:<{width}}  {check.detail}" for check in checks]


def _word(check: GateCheck) -> str:
    if not check.judged:
        return "-"
    return "ok" if check.passed else "accepted" if check.accepted else "FAILED"
