"""Ridge regression against values by hand and a slow leave-one-group-out."""

import numpy as np
import pytest

from ptedge.scores.ridge import PENALTY, fit_ridge


def test_fit__a_line_is_held_back_by_the_penalty() -> None:
    x = np.array([[0.0], [1.0], [2.0], [3.0]])
    fit = fit_ridge(x, 2 * x[:, 0] + 5, np.ones(4), ["a", "a", "b", "b"])
    assert PENALTY == 0.1
    assert fit.slopes[0] == pytest.approx(2 / 1.1)
    assert fit.intercept == pytest.approx(8 - 1.5 * 2 / 1.1)  # through the means (1.5, 8)
    assert (fit.low, fit.high, fit.points) == ((0.0,), (3.0,), 4)


def test_fit__error_is_of_groups_left_out() -> None:
    rng = np.random.default_rng(0)
    x, y, weights = rng.normal(size=(12, 2)), rng.normal(size=12), rng.uniform(0.5, 2, 12)
    groups = [name for name in "abcd" for _ in range(3)]
    fit = fit_ridge(x, y, weights, groups)
    missed = []
    for name in "abcd":
        inside = [i for i in range(12) if groups[i] != name]
        part = fit_ridge(x[inside], y[inside], weights[inside], [groups[i] for i in inside])
        missed += [y[i] - part.predict(x[i]) for i in range(12) if groups[i] == name]
    slow = sum(w * m**2 for w, m in zip(weights, missed, strict=True)) / weights.sum()
    assert fit.error == pytest.approx(slow**0.5)


def test_fit__weights_count_as_repetitions() -> None:
    x, y = np.array([[0.0], [1.0], [4.0]]), np.array([1.0, 0.0, 2.0])
    weighted = fit_ridge(x, y, np.array([1.0, 2.0, 1.0]), ["a", "b", "c"])
    repeated = fit_ridge(x[[0, 1, 1, 2]], y[[0, 1, 1, 2]], np.ones(4), ["a", "b", "b", "c"])
    assert weighted.slopes == pytest.approx(repeated.slopes)
    assert weighted.intercept == pytest.approx(repeated.intercept)


def test_fit__a_regressor_that_never_changes_has_no_slope() -> None:
    x = np.array([[0.0, 3.0], [1.0, 3.0], [2.0, 3.0]])
    assert fit_ridge(x, x[:, 0], np.ones(3), ["a", "b", "c"]).slopes[1] == 0


def test_fit__one_group_is_refused() -> None:
    with pytest.raises(ValueError, match="points of two groups, got 2 of 1"):
        fit_ridge(np.zeros((2, 1)), np.zeros(2), np.ones(2), ["a", "a"])
