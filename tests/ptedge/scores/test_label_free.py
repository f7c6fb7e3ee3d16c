"""Label-free signs on a few boxes, by hand."""

import math

import numpy as np
import pytest
from made_answers import found

from ptedge.scores.label_free import (
    Answers,
    candidate_signs,
    disagreement,
    pair_views,
    signs_of,
    suppress,
    weighted_quantile,
)

NOTHING = found()


def test_suppress__class_by_class_and_at_most_so_many() -> None:
    candidates = found(
        (0.9, 0, [0, 0, 10, 10]),
        (0.8, 0, [0, 0, 10, 8]),  # overlaps the first by 0.8
        (0.7, 1, [0, 0, 10, 10]),  # another class
        (0.6, 0, [20, 0, 30, 10]),
    )
    kept = suppress(candidates, 0.5, 10)
    assert kept.scores.tolist() == pytest.approx([0.9, 0.7, 0.6])
    assert suppress(candidates, 0.85, 10).scores.tolist() == pytest.approx([0.9, 0.8, 0.7, 0.6])
    assert suppress(candidates, 0.5, 2).scores.tolist() == pytest.approx([0.9, 0.7])
    assert len(suppress(NOTHING, 0.5, 2)) == 0


def test_pair_views__differences_over_both_variances() -> None:
    plain = found((0.8, 0, [10, 10, 30, 30]), (0.5, 1, [50, 50, 70, 70]), sigma=3.0)
    second = found((0.6, 1, [10, 10, 30, 30]), (0.5, 0, [15, 10, 30, 30]), sigma=4.0)
    ratio, weights = pair_views(Answers(plain, plain, second))
    # the first box pairs with that of its own class; the other finds none of its class
    assert ratio.tolist() == [[pytest.approx(25 / (9 + 16)), 0, 0, 0]]
    assert weights.tolist() == pytest.approx([0.8 * 0.5])


def test_pair_views__each_box_of_the_second_view_is_taken_once() -> None:
    plain = found((0.8, 0, [0, 0, 20, 20]), (0.6, 0, [0, 0, 20, 18]))
    second = found((0.7, 0, [0, 0, 20, 19]))
    ratio, _ = pair_views(Answers(plain, plain, second))
    assert ratio.tolist() == [[0, 0, 0, pytest.approx(0.5)]]
    assert len(pair_views(Answers(NOTHING, NOTHING, second))[0]) == 0
    assert len(pair_views(Answers(plain, plain, NOTHING))[0]) == 0


def test_disagreement__is_one_for_true_sigma_and_independent_errors() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.normal(0, 2, (40_000, 4)), rng.normal(0, 1, (40_000, 4))
    ratio = (first - second) ** 2 / (4 + 1)
    assert disagreement(ratio, np.ones(len(ratio))) == pytest.approx((1, 1, 1, 1), abs=0.03)
    assert disagreement(ratio[:0], np.ones(0)) is None


def test_weighted_quantile__the_value_at_which_the_share_is_reached() -> None:
    values, weights = np.array([3.0, 1.0, 2.0]), np.array([1.0, 1.0, 2.0])
    assert [weighted_quantile(values, weights, share) for share in (0.25, 0.26, 0.75, 0.76, 1.0)] == [1, 2, 2, 3, 3]


def test_candidate_signs__by_hand() -> None:
    plain = found((0.8, 0, [0, 0, 10, 10]))
    candidates = found(
        (0.8, 0, [0, 0, 10, 10]),
        (0.4, 0, [0, 0, 10, 6]),  # overlap 0.6
        (0.3, 0, [0, 0, 10, 4]),  # overlap 0.4: of something else
        (0.2, 1, [0, 0, 10, 10]),  # another class
    )
    consistency, reliability = candidate_signs(Answers(plain, candidates, NOTHING))
    assert consistency.tolist() == pytest.approx([(0.8 * 1 + 0.4 * 0.6) / 1.2])
    assert reliability.tolist() == pytest.approx([0.6 / 0.8])


def test_signs__means_are_weighted_by_score() -> None:
    plain = found((0.8, 0, [0, 0, 10, 10]), (0.2, 0, [50, 50, 60, 60]))
    second = found((0.9, 0, [0, 0, 10, 10]))
    signs = signs_of([Answers(plain, plain, second), Answers(NOTHING, NOTHING, NOTHING)])
    assert (signs.frames, signs.pairs) == (2, 1)
    assert signs.disagreement == (0, 0, 0, 0)
    assert signs.score == pytest.approx(0.8 * 0.8 + 0.2 * 0.2)
    assert signs.agreement == pytest.approx(0.8)
    assert signs.entropy == pytest.approx(0.8 * 0.2 + 0.2 * 0.8)
    assert (signs.consistency, signs.reliability) == (pytest.approx(1), pytest.approx(1))


def test_signs__without_a_detection() -> None:
    signs = signs_of([Answers(NOTHING, NOTHING, NOTHING)])
    assert (signs.frames, signs.pairs, signs.disagreement) == (1, 0, None)
    assert all(math.isnan(value) for value in (signs.score, signs.agreement, signs.entropy))
