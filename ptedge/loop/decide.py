"""Whether a round adapts: facts and rules in, a decision with its reasons out."""

from __future__ import annotations

from dataclasses import dataclass

from .settings import DecideRules


@dataclass(frozen=True)
class Facts:
    """What the rules ask about.

    Attributes:
        frames: new ones.
        days: since the last adaptation; ``None`` before the first.
        drift: found in the new frames; ``None`` where nothing tells.
        drift_text: what was found, in words.
    """

    frames: int
    days: float | None = None
    drift: bool | None = None
    drift_text: str = ""


@dataclass(frozen=True)
class Decision:
    """Whether to adapt.

    Attributes:
        adapt: do it.
        reasons: for it, or what speaks against it.
    """

    adapt: bool
    reasons: tuple[str, ...]

    @property
    def why(self) -> str:
        """In one line."""
        return "; ".join(self.reasons)


def decide(rules: DecideRules, facts: Facts) -> Decision:
    """Apply the rules.

    Args:
        rules: of SITE.toml.
        facts: of the round.
    """
    against = []
    if facts.frames < rules.min_frames:
        against.append(f"{facts.frames} new frames, fewer than decide.min_frames = {rules.min_frames}")
    if facts.days is not None and facts.days * 24 < rules.min_hours:
        hours = facts.days * 24
        against.append(f"{hours:.1f} hours since the last adaptation, less than decide.min_hours = {rules.min_hours:g}")
    if against:
        return Decision(False, tuple(against))
    reasons = []
    if rules.enough_frames and facts.frames >= rules.enough_frames:
        reasons.append(f"{facts.frames} new frames, at least decide.enough_frames = {rules.enough_frames}")
    if rules.drift and facts.drift:
        reasons.append(f"drift: {facts.drift_text}")
    if rules.max_days and facts.days is not None and facts.days >= rules.max_days:
        reasons.append(
            f"{facts.days:.1f} days since the last adaptation, at least decide.max_days = {rules.max_days:g}"
        )
    if reasons:
        return Decision(True, tuple(reasons))
    return Decision(False, (f"{facts.frames} new frames, and no reason to adapt: {_missing(rules, facts)}",))


def _missing(rules: DecideRules, facts: Facts) -> str:
    """What each rule still waits for."""
    waits = []
    if rules.enough_frames:
        waits.append(f"fewer than decide.enough_frames = {rules.enough_frames}")
    if rules.drift:
        told = "nothing tells of drift" if facts.drift is None else "no drift"
        waits.append(told + (f" ({facts.drift_text})" if facts.drift_text else ""))
    if rules.max_days:
        since = "no adaptation yet" if facts.days is None else f"{facts.days:.1f} days since the last adaptation"
        waits.append(f"{since}, decide.max_days = {rules.max_days:g}")
    return ", ".join(waits) or "every rule is off"
