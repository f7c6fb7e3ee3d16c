"""Estimates from few values: by hand, by identities, and by what must not change them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptedge.scores.robust import FOLDS, folds, jackknife_error, leave_out, location, shrinkage, spread


def column(*values: float) -> np.ndarray:
    return np.array(values, np.float64)[:, None]


def test_spread__by_hand() -> None:
    # median 3, deviations 2, 1, 0, 1, 97, whose median is 1
    assert spread(column(1, 2, 3, 4, 100)) == pytest.approx([1.482602])


def test_location__symmetric_values_and_a_wild_one() -> None:
    assert location(column(1, 2, 3, 4, 5)) == pytest.approx([3])
    assert location(column(7, 7, 7, 7, 900)) == pytest.approx([7])
    assert abs(location(column(-1, -0.5, 0, 0.5, 1, 1000))[0]) < 0.6  # the mean is 167


def test_location__solves_hubers_equation() -> None:
    values = np.random.default_rng(0).standard_t(2, (40, 3))
    centre, limit = location(values), 1.345 * spread(values)
    assert np.clip(values - centre, -limit, limit).mean(axis=0) == pytest.approx(np.zeros(3), abs=1e-4)


@given(st.floats(0.1, 10), st.floats(-5, 5))
def test_location__moves_and_grows_with_its_values(factor: float, shift: float) -> None:
    values = np.random.default_rng(1).normal(size=(9, 2))
    assert location(factor * values + shift) == pytest.approx(factor * location(values) + shift, abs=1e-9)


def test_shrinkage__by_hand() -> None:
    # squares 0.01, errors 0.0025: 0.0075 is left, and 0.0075 / (0.0075 + 0.0025)
    errors = np.full(4, 0.05)
    assert shrinkage(np.array([0.1, -0.1, 0.1, -0.1]), errors) == pytest.approx([0.75] * 4)
    assert shrinkage(np.array([0.05, -0.05, 0.05, 0.0]), errors).tolist() == [0, 0, 0, 0]  # chance alone


@given(st.integers(1, 500), st.floats(0.01, 1.0))
def test_shrinkage__is_n_by_n_plus_k_and_grows_with_n(n: int, deviation: float) -> None:
    between = 0.01
    weights = []
    for count in (n, n + 1):
        errors = np.full(4, deviation / np.sqrt(count))
        # values whose squares exceed the errors' by just what lies between sides
        weights.append(shrinkage(np.sqrt(between + errors**2), errors)[0])
    assert weights[0] == pytest.approx(n / (n + deviation**2 / between))
    assert weights[0] < weights[1] < 1


def test_jackknife_error__of_a_mean_is_its_standard_error() -> None:
    values = column(3, 5, 8, 1, 9, 4)
    rows, part = leave_out(values, np.arange(6), lambda rest: rest.mean(axis=0))
    assert rows[:, 0] == pytest.approx([(30 - v) / 5 for v in values[:, 0]])
    assert part.tolist() == [0, 1, 2, 3, 4, 5]
    assert jackknife_error(rows) == pytest.approx(values.std(ddof=1) / np.sqrt(6))


def test_leave_out__boxes_of_one_image_go_together() -> None:
    seen = []
    leave_out(column(1, 2, 3, 4), np.array([4, 7, 4, 9]), lambda rest: (seen.append(rest[:, 0].tolist()), rest[0])[1])
    assert seen == [[2, 4], [1, 3, 4], [1, 2, 3]]


def test_folds__images_parts_of_images_or_boxes() -> None:
    assert folds(np.array([8, 8, 3, 5])).tolist() == [2, 2, 0, 1]
    assert folds(np.array([1, 1, 2, 2])).tolist() == [0, 1, 2, 3]  # two images: each box by itself
    assert np.bincount(folds(np.arange(3 * FOLDS))).tolist() == [3] * FOLDS
