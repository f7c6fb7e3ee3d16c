"""The choice of model.pt, on made-up signals."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptedge.training.watch.choose import ChoiceConfig, TeacherCandidate, choose, make_candidate, score_of, thin
from ptedge.training.watch.limits import GuardConfig

START: dict[str, Any] = {
    "boxes": 5.0,
    "objects": 1.0,
    "entropy": 0.4,
    "sigma": 0.1,
    "histogram_distance": 0.0,
    "source_agreement": 1.0,
    "source_coverage": 1.0,
    "width_ratio": 1.0,
    "height_ratio": 1.0,
    "student_agreement": 1.0,
    "consistency": 0.4,
}
LIMITS = GuardConfig()


def candidate(step: int, score: float, sound: bool = True) -> TeacherCandidate:
    return TeacherCandidate(step, score, sound, {})


def test_choose__the_last_of_a_healthy_run() -> None:
    found = [candidate(0, 0.40), candidate(20, 0.47), candidate(40, 0.52), candidate(60, 0.50)]
    assert choose(found, 0.05).step == 60


def test_choose__not_the_last_once_it_has_fallen() -> None:
    found = [candidate(0, 0.40), candidate(20, 0.47), candidate(40, 0.52), candidate(60, 0.44)]
    assert choose(found, 0.05).step == 40
    assert choose(found, 0.15).step == 40 and choose(found, 0.16).step == 60  # 0.44 / 0.52 is 0.846


def test_choose__unsound_no_score_helps() -> None:
    assert choose([candidate(0, 0.4), candidate(20, 0.99, sound=False)], 0.05).step == 0


def test_choose__the_start_of_a_run_that_only_harmed() -> None:
    assert choose([candidate(0, 0.4), candidate(20, 0.3), candidate(40, 0.2)], 0.05).step == 0


def test_score__finding_nothing_is_not_consistency() -> None:
    assert score_of({**START, "boxes": 0.0, "consistency": 1.0}) == 0.0
    assert score_of(START) == 0.4


def test_score__finding_more_is_no_loss_where_the_share_falls() -> None:
    few = {**START, "objects": 0.20, "consistency": 0.84}  # four easy objects in twenty frames, seen in every view
    more = {**START, "objects": 0.62, "consistency": 0.44}
    assert score_of(few) == pytest.approx(0.168) and score_of(more) == pytest.approx(0.2728)
    steps = [make_candidate(0, few, few, LIMITS), make_candidate(100, more, few, LIMITS)]
    assert steps[1].sound and choose(steps, 0.1).step == 100


def test_make_candidate__consistent_collapse_is_beyond_the_limits() -> None:
    empty = {**START, "boxes": 0.0, "objects": 0.0, "entropy": None, "sigma": None, "consistency": 1.0}
    empty.update(source_coverage=0.0)
    everywhere = {**START, "boxes": 5.0, "objects": 5.0, "consistency": 0.99, "source_coverage": 0.02}
    for signals in (empty, everywhere):
        found = make_candidate(40, signals, START, LIMITS)
        assert not found.sound
        assert choose([make_candidate(0, START, START, LIMITS), found], 0.05).step == 0


def test_make_candidate__what_the_guards_let_pass_may_be_deployed() -> None:
    assert make_candidate(40, {**START, "source_coverage": 0.21}, START, LIMITS).sound  # limit 0.2
    assert not make_candidate(40, {**START, "source_coverage": 0.19}, START, LIMITS).sound


def test_make_candidate__finding_more_than_a_poor_start_is_sound() -> None:
    better = {**START, "boxes": 12.0, "objects": 3.0, "consistency": 0.7, "source_agreement": 0.25}
    assert make_candidate(40, better, START, LIMITS).sound


def test_make_candidate__the_start_is_within_its_own_limits() -> None:
    nothing = {**START, "boxes": 0.0, "objects": 0.0, "entropy": None, "sigma": None, "student_agreement": 0.0}
    assert make_candidate(0, nothing, nothing, LIMITS).sound


def test_thin__lowest_scores_go_but_never_the_start() -> None:
    found = [candidate(0, 0.1), candidate(20, 0.5), candidate(40, 0.3), candidate(60, 0.9, sound=False)]
    assert [c.step for c in thin(found, 2)] == [0, 20, 40]
    assert [c.step for c in thin(found, 1)] == [0, 20]
    # of equal scores the later stays: it has learnt more
    assert [c.step for c in thin([candidate(0, 0.1), candidate(20, 0.5), candidate(40, 0.5)], 1)] == [0, 40]


def test_choice_config__a_tenth_of_the_run_on_readings() -> None:
    assert ChoiceConfig().steps(20, 4000) == 400
    assert ChoiceConfig().steps(20, 100) == 20
    assert ChoiceConfig(every=50).steps(20, 4000) == 60
    assert ChoiceConfig().steps(20, 0) == 20


def test_choose__a_lead_as_large_as_the_tolerance_does_not_count() -> None:
    found = [candidate(0, 0.25), candidate(20, 2.0), candidate(40, 1.5)]
    assert choose(found, 0.25).step == 40
    assert choose([*found[:2], candidate(40, 1.499)], 0.25).step == 20


def test_choose__the_best_that_is_not_sound_sets_no_mark() -> None:
    found = [candidate(0, 0.2), candidate(20, 0.9, sound=False), candidate(40, 0.5), candidate(60, 0.45)]
    assert choose(found, 0.1).step == 60


def test_make_candidate__the_limit_itself_is_sound() -> None:
    made = make_candidate(40, {**START, "student_agreement": 0.1, "consistency": 0.4}, START, LIMITS)
    assert made.sound and made.step == 40 and made.score == 0.4
    assert not make_candidate(40, {**START, "student_agreement": 0.099}, START, LIMITS).sound
    assert make_candidate(0, {**START, "student_agreement": 0.0}, START, LIMITS).sound  # the start always is


def test_make_candidate__signals_are_its_own() -> None:
    signals = {**START, "consistency": 1 / 3}
    made = make_candidate(20, signals, START, LIMITS)
    signals["boxes"] = 0.0
    assert made.signals["boxes"] == 5.0 and made.score == 0.333333
    assert made.to_json() == {"step": 20, "score": 0.333333, "sound": True, "signals": made.signals}


scores = st.lists(st.tuples(st.floats(0, 1), st.booleans()), max_size=12)


@given(scores, st.floats(0, 0.3), st.integers(1, 4))
def test_choose__properties(entries: list[tuple[float, bool]], tolerance: float, keep: int) -> None:
    found = [candidate(0, 0.5)] + [candidate(20 * i, *entry) for i, entry in enumerate(entries, 1)]
    chosen = choose(found, tolerance)
    sound = [c for c in found if c.sound]
    best = max(c.score for c in sound)
    assert chosen in sound and chosen.score >= best * (1.0 - tolerance)
    assert all(c.score < best * (1.0 - tolerance) for c in sound if c.step > chosen.step)
    kept = thin(found, keep)
    assert kept[0].step == 0 and len(kept) <= keep + 1
    # thinning never costs the best one
    assert max(c.score for c in kept if c.sound) == max(c.score for c in found if c.sound)


@pytest.mark.parametrize(
    ("field", "value", "allowed"),
    [
        ("keep", 0, "at least 1 and at most 1000"),
        ("every", -1, "at least 0"),
        ("tolerance", 1.5, "at least 0 and at most 1"),
    ],
)
def test_choice_config__refuses_with_name_value_and_range(field: str, value: float, allowed: str) -> None:
    with pytest.raises(ValueError, match=f"^choice.{field} is {value}; it must be {allowed}$"):
        ChoiceConfig(**{field: value})  # type: ignore[arg-type]


def test_choice_config__steps_are_whole_readings_of_a_tenth() -> None:
    assert [ChoiceConfig().steps(1, total) for total in (5, 10, 95, 100)] == [1, 1, 9, 10]
    assert ChoiceConfig().steps(4, 95) == 12  # a tenth is 9, the next reading after it 12
    assert ChoiceConfig(every=7).steps(5, 1000) == 10 and ChoiceConfig(every=10).steps(5, 1000) == 10


def test_score_of__less_than_a_box_a_frame_is_something() -> None:
    assert score_of({"consistency": 0.5, "boxes": 0.5, "objects": 0.25}) == 0.125
    assert score_of({"consistency": 0.5, "boxes": 0.0, "objects": 0.25}) == 0.0
