"""What follows from a crossed limit, on made-up measures."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptedge.training.watch.guard import ENOUGH, GOOD, HISTORY, Guard, Trip
from ptedge.training.watch.limits import GuardConfig, Measure

FINE, BAD = Measure("min_source_coverage", 0.9, 0.2), Measure("min_source_coverage", 0.1, 0.2)
USED_UP = Measure("min_source_coverage", 0.3, 0.2)  # within, but nearly not


def config(**changes: Any) -> GuardConfig:
    values = {"patience": 1, "max_rollbacks": 2, "lr_factor": 0.5, "max_gradient_ratio": 100.0}
    return GuardConfig(**(values | changes))


def test_judge__rolls_back_then_stops() -> None:
    guard = Guard(config(), good_step=40)
    first, good = guard.judge(60, [FINE, BAD])
    assert first == Trip(60, "min_source_coverage", 0.1, 0.2, "rollback", 40, 0.5) and not good
    assert guard.judge(80, [FINE]) == (None, True)
    assert guard.judge(90, [USED_UP]) == (None, False)
    second, _ = guard.judge(100, [BAD])
    assert second is not None and (second.action, second.lr_factor) == ("rollback", 0.25)
    third, _ = guard.judge(120, [BAD])
    assert third is not None and (third.action, third.lr_factor) == ("stop", 0.25)
    assert guard.stopped
    assert third.sentence == (
        "guard at step 120: min_source_coverage is 0.1, below its limit 0.2; back to the model of step 40, "
        "and stopped there"
    )
    assert first is not None and first.sentence.endswith("back to the model of step 40, learning rate from here x 0.5")


def test_judge__stop_as_the_action() -> None:
    guard = Guard(config(action="stop"))
    trip, _ = guard.judge(20, [BAD])
    assert trip is not None and (trip.action, trip.back_to) == ("stop", 0)
    assert guard.stopped and "back to the model of the start, and stopped there" in trip.sentence


def test_judge__switched_off() -> None:
    guard = Guard(config(enabled=False))
    assert guard.judge(20, [BAD]) == (None, False)
    assert guard.gradient(1, 1e9) is None and guard.not_finite(2, "loss") is None
    assert not guard.stopped


@given(st.lists(st.booleans(), max_size=40), st.integers(1, 4), st.integers(0, 3))
def test_judge__trips_exactly_after_patience_readings_in_a_row(bad: list[bool], patience: int, most: int) -> None:
    guard = Guard(config(patience=patience, max_rollbacks=most))
    row, expected = 0, 0
    for step, is_bad in enumerate(bad, 1):
        if guard.stopped:
            break
        trip, good = guard.judge(step, [BAD if is_bad else FINE])
        row = row + 1 if is_bad else 0
        assert (trip is not None) == (row == patience)
        assert good == (not is_bad)
        if trip is not None:
            row, expected = 0, expected + 1
            assert (trip.action == "stop") == (expected > most)
    assert len(guard.trips) == expected and guard.rollbacks == min(expected, most)
    assert guard.lr_factor == pytest.approx(0.5 ** min(expected, most))


def test_gradient__against_the_median_of_the_steps_before() -> None:
    guard = Guard(config())
    assert guard.gradient(1, 1e6) is None  # nothing to compare with yet
    for step in range(2, ENOUGH + 2):
        assert guard.gradient(step, 2.0) is None
    assert guard.gradient(30, 150.0) is None
    trip = guard.gradient(31, 250.0)
    assert trip is not None and (trip.name, trip.value, trip.limit) == ("max_gradient_ratio", 125.0, 100.0)
    assert guard.norms == []  # at another learning rate norms may be others
    assert guard.gradient(32, float("inf")) is None


def norms_of(guard: Guard, *norms: float) -> list[Trip | None]:
    return [guard.gradient(step, norm) for step, norm in enumerate(norms, 1)]


def test_gradient__the_median_not_the_mean_of_enough_steps() -> None:
    guard = Guard(config())
    assert norms_of(guard, *[1.0] * 9, *[50.0] * 6) == [None] * (ENOUGH - 1)
    assert guard.gradient(16, 1e9) is None and guard.norms[-1] == 1e9  # one step too early to know what is usual
    assert guard.gradient(17, 100.0) is None  # the limit itself is kept
    trip = guard.gradient(18, 100.5)
    assert trip is not None and trip.value == pytest.approx(100.5)
    early = Guard(config())
    norms_of(early, *[1.0] * 16)
    assert early.gradient(17, 101.0) is not None  # 16 are enough


def test_gradient__the_last_64_steps_are_compared_with() -> None:
    guard = Guard(config())
    # the model settles at norms ten times those it began with
    assert norms_of(guard, *[1.0] * 200, *[10.0] * HISTORY) == [None] * (200 + HISTORY)
    assert guard.norms == [10.0] * HISTORY
    assert guard.gradient(300, 900.0) is None  # 900 times the first ones, 90 times the present ones
    trip = guard.gradient(301, 1100.0)
    assert trip is not None and trip.value == pytest.approx(110.0)
    # 20 of the last 64 are no majority (of the last 32 they would be)
    guard = Guard(config())
    assert norms_of(guard, *[1.0] * 100, *[10.0] * 20) == [None] * 120
    assert guard.gradient(130, 500.0) is not None


def test_gradient__steps_that_explode_are_no_part_of_what_is_usual() -> None:
    guard = Guard(config(patience=3))
    norms_of(guard, *[1.0] * 9, *[2.0] * 9)
    before = list(guard.norms)
    assert norms_of(guard, 400.0, 500.0) == [None, None] and guard.norms == before and guard.jolts == 2
    assert guard.gradient(30, 2.0) is None and guard.jolts == 0  # a calm step between: counted anew
    assert norms_of(guard, 400.0, 500.0) == [None, None]
    trip = guard.gradient(40, 600.0)
    assert trip is not None and trip.value == pytest.approx(600.0 / 2.0)


def test_judge__the_limit_itself_is_kept() -> None:
    guard = Guard(config())
    assert guard.judge(1, [Measure("min_source_coverage", 0.5, 0.5)]) == (None, False)  # used up, not crossed
    assert guard.judge(2, [Measure("max_boxes_ratio", 2.75, 1.0 + 1.75 / GOOD)]) == (None, True)
    assert guard.judge(3, [Measure("max_boxes_ratio", 2.76, 1.0 + 1.75 / GOOD)]) == (None, False)
    assert guard.judge(4, [Measure("min_source_coverage", 0.4999, 0.5)])[0] is not None


def test_judge__a_trip_counts_anew_and_forgets_norms() -> None:
    guard = Guard(config(patience=2), good_step=4)
    norms_of(guard, *[1.0] * ENOUGH)
    assert guard.judge(5, [BAD]) == (None, False)
    guard.not_finite(6, "x")
    assert (guard.strikes, guard.jolts, guard.norms) == (0, 0, [])
    assert guard.judge(7, [BAD])[0] is None and guard.judge(8, [BAD])[0] is not None


def test_not_finite__says_what_of_which_step() -> None:
    trip = Guard(config()).not_finite(6, "the loss is nan")
    assert trip is not None
    assert (trip.step, trip.name, trip.value, trip.limit, trip.note) == (6, "finite", None, None, "the loss is nan")


def test_judge__nothing_to_judge_is_a_good_state() -> None:
    assert Guard(config()).judge(1, []) == (None, True)


@pytest.mark.parametrize(
    ("measure", "said"),
    [
        (Measure("min_side_ratio", 0.5, 0.9), "min_side_ratio is 0.5, below its limit 0.9"),
        (Measure("max_side_ratio", 2.0, 1.5), "max_side_ratio is 2, above its limit 1.5"),
        (Measure("max_histogram_distance", 0.75, 0.5), "max_histogram_distance is 0.75, above its limit 0.5"),
    ],
)
def test_trip__says_on_which_side(measure: Measure, said: str) -> None:
    trip, _ = Guard(config()).judge(3, [FINE, measure, USED_UP])
    assert trip is not None and f"step 3: {said};" in trip.sentence


def test_restore__a_trip_of_an_earlier_run() -> None:
    trip = {"step": 9, "name": "min_side_ratio", "value": 0.5, "limit": 0.9, "action": "stop", "back_to": 4}
    guard = Guard(config())
    guard.restore({"good_step": 4, "trips": [{**trip, "lr_factor": 0.2, "note": ""}]})
    assert guard.stopped and "below its limit" in guard.trips[0].sentence


def test_not_finite__is_a_trip_without_numbers() -> None:
    trip = Guard(config(), good_step=3).not_finite(7, "the loss is not finite at step 6")
    assert trip is not None and trip.value is None
    assert trip.sentence.startswith("guard at step 7: the loss is not finite at step 6; back to the model of step 3")


@given(st.lists(st.sampled_from(["fine", "bad", "used", "nan", "norm"]), max_size=30), st.integers(0, 30))
def test_state__a_guard_that_is_taken_up_again_decides_as_before(events: list[str], cut: int) -> None:
    def run(guard: Guard, begin: int, end: int) -> None:
        for step, event in list(enumerate(events))[begin:end]:
            if event == "nan":
                guard.not_finite(step, "x")
            elif event == "norm":
                guard.gradient(step, float(step))
            else:
                guard.judge(step, [{"fine": FINE, "bad": BAD, "used": USED_UP}[event]])

    straight, first = Guard(config(patience=2)), Guard(config(patience=2))
    run(straight, 0, len(events))
    run(first, 0, cut)
    second = Guard(config(patience=2))
    second.restore(json.loads(json.dumps(first.state())))
    run(second, cut, len(events))
    assert second == straight
