"""How near a reading is to its limits, on made-up signals, and what a limit may be set to."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from ptedge.training.watch.limits import LIMITS, GuardConfig, Measure, measures_of, worst

HEALTHY: dict[str, Any] = {
    "boxes": 5.0,
    "objects": 1.0,
    "entropy": 0.4,
    "sigma": 0.1,
    "variance": 0.5,
    "classes": [0.6, 0.4],
    "histogram_distance": 0.0,
    "source_agreement": 1.0,
    "source_coverage": 1.0,
    "width_ratio": 1.0,
    "height_ratio": 1.0,
    "student_agreement": 1.0,
    "consistency": 0.4,
}


@pytest.mark.parametrize(
    ("name", "value", "limit", "strain"),
    [
        ("min_source_coverage", 1.0, 0.2, 0.0),
        ("min_source_coverage", 0.6, 0.2, 0.5),
        ("min_source_coverage", 0.2, 0.2, 1.0),
        ("min_source_coverage", 0.0, 0.2, 1.25),
        ("max_boxes_ratio", 2.0, 3.0, 0.5),
        ("max_boxes_ratio", 0.5, 3.0, 0.0),  # fewer boxes are no strain on the most there may be
        ("max_histogram_distance", 0.25, 0.5, 0.5),
    ],
)
def test_measure__strain_by_hand(name: str, value: float, limit: float, strain: float) -> None:
    assert Measure(name, value, limit).strain == pytest.approx(strain)


@pytest.mark.parametrize(
    ("changes", "name", "value"),
    [
        ({"boxes": 100.0}, "max_boxes_ratio", 101 / 6),  # flood
        ({"objects": 0.1}, "min_objects_ratio", 0.1),  # starvation
        ({"objects": 19.0}, "max_objects_ratio", 10.0),
        ({"source_coverage": 0.05}, "min_source_coverage", 0.05),
        ({"width_ratio": 1.05, "height_ratio": 0.85}, "min_side_ratio", 0.85),  # boxes tighten on themselves
        ({"width_ratio": 1.6, "height_ratio": 0.95}, "max_side_ratio", 1.6),
        ({"student_agreement": 0.0}, "min_student_agreement", 0.0),
        ({"consistency": 0.1}, "min_consistency_ratio", 0.25),
        ({"entropy": 0.04}, "min_entropy_ratio", 0.1),  # over-confidence
        ({"sigma": 0.01}, "min_sigma_ratio", 0.1),
        ({"histogram_distance": 0.6}, "max_histogram_distance", 0.6),  # all boxes have become one class
    ],
)
def test_measures_of__each_collapse_crosses_its_limit(changes: dict[str, Any], name: str, value: float) -> None:
    found = worst(measures_of({**HEALTHY, **changes}, HEALTHY, GuardConfig()))
    assert (found.name, found.value) == (name, pytest.approx(value))
    assert found.strain > 1.0


@pytest.mark.parametrize(
    ("height", "labelled", "name", "value"),
    [
        (0.8, 0.8, "min_side_ratio", 1.0),  # as high as the labels
        (0.9, 0.8, "min_side_ratio", 1.0),  # on the way there
        (0.6, 0.8, "min_side_ratio", 0.75),  # beyond them
        (1.2, 0.8, "max_side_ratio", 1.2),  # the other way
        (1.6, 2.0, "max_side_ratio", 1.0),
        (0.8, 2.0, "min_side_ratio", 0.8),
        (0.8, 1.0, "min_side_ratio", 0.8),  # labels that tell no offset
    ],
)
def test_measures_of__the_way_to_the_labels_sides_counts_for_nothing(
    height: float, labelled: float, name: str, value: float
) -> None:
    signals = {**HEALTHY, "height_ratio": height, "labelled_width_ratio": 1.0, "labelled_height_ratio": labelled}
    measures = {one.name: one.value for one in measures_of(signals, HEALTHY, GuardConfig())}
    assert measures[name] == pytest.approx(value)


@pytest.mark.parametrize(
    ("objects", "consistency", "ratio"),
    [
        (3.0, 0.2, 1.5),  # half the share of three times as much: more is found again
        (1.5, 0.2, 0.75),  # half the share of half as much again: less is
        (0.5, 0.4, 1.0),  # the same share of less: objects have a limit of their own
        (0.5, 0.2, 0.5),
    ],
)
def test_measures_of__a_share_that_falls_because_more_is_found_is_no_loss(
    objects: float, consistency: float, ratio: float
) -> None:
    start = {**HEALTHY, "objects": 1.0, "consistency": 0.4}
    measures = measures_of({**start, "objects": objects, "consistency": consistency}, start, GuardConfig())
    assert {m.name: m.value for m in measures}["min_consistency_ratio"] == pytest.approx(ratio)


def test_measures_of__the_start_is_no_strain() -> None:
    assert [m.strain for m in measures_of(HEALTHY, HEALTHY, GuardConfig())] == [0.0] * 11


def test_measures_of__what_the_start_does_not_have_is_not_judged() -> None:
    empty = {**HEALTHY, "boxes": 0.0, "objects": 0.0, "entropy": None, "sigma": None, "histogram_distance": None}
    empty.update(consistency=0.0, source_coverage=None, width_ratio=None, height_ratio=None)
    signals = {
        **HEALTHY,
        "source_coverage": None,
        "histogram_distance": None,
        "width_ratio": None,
        "height_ratio": None,
    }
    names = {m.name for m in measures_of(signals, empty, GuardConfig())}
    assert names == {"max_boxes_ratio", "max_objects_ratio", "min_student_agreement"}
    # and a model without variances
    vanilla = {**HEALTHY, "sigma": 0.0}
    assert "min_sigma_ratio" not in {m.name for m in measures_of(vanilla, vanilla, GuardConfig())}


@pytest.mark.parametrize(
    "changes",
    [
        {"action": "panic"},
        {"patience": 0},
        {"max_rollbacks": -1},
        {"lr_factor": 0.0},
        {"max_boxes_ratio": 1.0},
        {"min_source_coverage": 1.0},
        {"min_sigma_ratio": -0.1},
        {"max_histogram_distance": 0.0},
    ],
)
def test_guard_config__refuses(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(changes))):
        GuardConfig(**changes)


def test_limits__every_setting_that_is_one_has_a_side() -> None:
    others = {"enabled", "action", "patience", "max_rollbacks", "lr_factor"}
    assert LIMITS.keys() == {field.name for field in dataclasses.fields(GuardConfig)} - others
    for name, limit in LIMITS.items():
        assert limit.name == name
        assert (limit.side == "lower") == (getattr(GuardConfig(), name) < limit.unchanged)


@pytest.mark.parametrize(
    ("name", "kept", "refused"),
    [
        ("max_boxes_ratio", 1.001, 1.0),
        ("max_side_ratio", 1e6, 0.9),
        ("min_side_ratio", 0.99, 0.991),
        ("min_sigma_ratio", 0.0, -0.001),
        ("max_histogram_distance", 1.0, 1.001),
        ("max_histogram_distance", 0.001, 0.0),
        ("lr_factor", 1.0, 1.001),
        ("patience", 1, 0),
        ("max_rollbacks", 0, -1),
    ],
)
def test_guard_config__ranges(name: str, kept: float, refused: float) -> None:
    assert getattr(GuardConfig(**{name: kept}), name) == kept  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=f"guard.{name} is {refused}"):
        GuardConfig(**{name: refused})  # type: ignore[arg-type]


def test_measures_of__each_by_hand() -> None:
    signals = {
        "boxes": 9.0,
        "objects": 3.0,
        "entropy": 0.2,
        "sigma": 0.3,
        "histogram_distance": 0.35,
        "source_coverage": 0.6,
        "width_ratio": 1.2,
        "height_ratio": 0.8,
        "student_agreement": 0.7,
        "consistency": 0.5,
    }
    start = {"boxes": 4.0, "objects": 1.0, "entropy": 0.8, "sigma": 0.1, "consistency": 0.25}
    measures = measures_of(signals, start, GuardConfig())
    assert {m.name: m.value for m in measures} == pytest.approx(
        {
            "max_boxes_ratio": 10 / 5,
            "min_objects_ratio": 3.0,
            "max_objects_ratio": 4 / 2,
            "min_source_coverage": 0.6,
            "min_side_ratio": 0.8,
            "max_side_ratio": 1.2,
            "min_student_agreement": 0.7,
            "min_consistency_ratio": (3.0 * 0.5) / (1.0 * 0.25),
            "min_entropy_ratio": 0.25,
            "min_sigma_ratio": 3.0,
            "max_histogram_distance": 0.35,
        }
    )
    assert all(m.limit == getattr(GuardConfig(), m.name) for m in measures)


def test_worst__by_strain_not_by_value_or_place() -> None:
    first, most, last = (
        Measure("max_boxes_ratio", 3.0, 9.0),  # a quarter used up
        Measure("min_side_ratio", 0.95, 0.9),  # half
        Measure("max_histogram_distance", 0.1, 0.5),  # a fifth
    )
    assert worst([first, most, last]) == most
