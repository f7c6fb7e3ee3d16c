from __future__ import annotations

import pytest

from ptedge.loop.decide import Facts, decide
from ptedge.loop.settings import DecideRules

RULES = DecideRules(min_frames=100, enough_frames=500, drift=True, max_days=30, min_hours=12)


@pytest.mark.parametrize(
    ("facts", "adapt", "words"),
    [
        (Facts(99, drift=True), False, ["99 new frames", "min_frames = 100"]),
        (Facts(100, drift=True, drift_text="fog"), True, ["drift: fog"]),
        (Facts(100, drift=False), False, ["no drift", "no adaptation yet"]),
        (Facts(100, drift=None), False, ["nothing tells of drift"]),
        (Facts(500, drift=False), True, ["500 new frames"]),
        (Facts(499, days=29.9, drift=False), False, ["29.9 days"]),
        (Facts(100, days=30.0, drift=False), True, ["30.0 days"]),
        (Facts(500, days=0.4, drift=True), False, ["9.6 hours", "min_hours = 12"]),
        (Facts(500, days=0.5, drift=True, drift_text="fog"), True, ["500 new frames", "drift: fog"]),
        (Facts(99, days=0.1), False, ["min_frames", "min_hours"]),
    ],
)
def test_decide__each_rule_at_its_edge(facts: Facts, adapt: bool, words: list[str]) -> None:
    decision = decide(RULES, facts)
    assert decision.adapt is adapt
    assert all(word in decision.why for word in words), decision.why


def test_decide__rules_that_are_off_are_no_reason() -> None:
    off = DecideRules(min_frames=1, enough_frames=0, drift=False, max_days=0)
    decision = decide(off, Facts(10**6, days=10**3, drift=True))
    assert not decision.adapt and "every rule is off" in decision.why
