from __future__ import annotations

import random

import numpy as np
import pytest
from made_field import policy
from made_windows import look, rows

from ptedge.runtime.collection.choose import Choice, Chooser, Reservoir, strategies
from ptedge.runtime.collection.policy import Policy, Shares
from ptedge.runtime.collection.window import Window


def doubt(entropy: float, sigma: float = 1.0, index: int = 0) -> Window:
    return Window(look(rows((0.9, 0), entropy=entropy, sigma=sigma), index))


def chooser(settings: Policy) -> Chooser:
    return Chooser(settings, 1, random.Random(0))


def test_strategies__are_those_of_the_policy() -> None:
    assert {"random", *strategies()} == set(Shares().by_name)


def test_choose__names_the_strategy_that_says_most_first() -> None:
    one = chooser(policy({"entropy": 0.5, "sigma": 0.5}))
    for i in range(40):
        assert one.choose(doubt(0.01 * (i % 20), 1 + 0.1 * (i % 20))).why == () or i >= 20
    both = one.choose(doubt(0.155, 2.85))
    assert both.why == ("sigma", "entropy") and both.informative == both.measures["sigma"]
    assert set(both.measures) == {"entropy", "sigma"}


def test_choose__what_chance_picked_is_kept_for_chance() -> None:
    one = chooser(policy({"random": 1.0, "entropy": 0.5}))
    choices = [one.choose(doubt(0.01 * i)) for i in range(40)]
    assert all(choice.why[0] == "random" for choice in choices)
    assert choices[-1].why == ("random", "entropy")
    drawn = random.Random(0).random()
    assert choices[0].informative == pytest.approx(1 - drawn)  # chance says how much, whatever is in the frame


def test_choose__picks_no_more_than_its_share() -> None:
    rng = np.random.default_rng(0)
    one = chooser(policy({"entropy": 0.2}))
    picked = sum(bool(one.choose(doubt(float(value))).why) for value in rng.random(2000))
    assert 320 < picked < 480  # 400, within four standard deviations


def test_choose__of_equal_frames_none_is_picked() -> None:
    one = chooser(policy({"entropy": 0.5}))
    assert not any(one.choose(doubt(0.3)).why for _ in range(100))


def test_refusal__triples_do_not_share_frames() -> None:
    triples = chooser(policy({"random": 1.0}, triples=True))
    now, before = look(rows(), 3), look(rows(), 2)
    assert triples.refusal(Window(now, before)) is None
    before.written = True
    assert triples.refusal(Window(now, before)) == "too soon"
    assert chooser(policy({"random": 1.0})).refusal(Window(now, before)) is None


def test_reservoir__is_an_even_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ptedge.runtime.collection.choose.RESERVOIR", 100)
    reservoir = Reservoir(random.Random(3))
    for i in range(2000):
        reservoir.add(float(i))
    kept = reservoir.values
    assert len(kept) == 100 == len(set(kept))
    # of each half of the frames a half, within four standard deviations (5); the newest 100 alone would be 0 and 100
    assert 30 <= (kept < 1000).sum() <= 70
    # and after the 1,900 that came later few of the first hundred are left: 5 expected
    assert (kept < 100).sum() <= 14


def test_reservoir__rank_by_hand() -> None:
    reservoir = Reservoir(random.Random(0))
    for i in range(19):
        reservoir.add(float(i))
    assert reservoir.rank(100.0, 0.5) is None  # too few to say
    reservoir.add(19.0)
    assert reservoir.rank(14.5, 0.5) == 0.75
    assert reservoir.rank(9.5, 0.5) is None and reservoir.rank(9.6, 0.5) == 0.5


def test_choice__of_no_strategy() -> None:
    assert chooser(policy({})).choose(doubt(0.5)) == Choice((), 0.0, {})
