from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptedge.scores.average_precision import Matches
from ptedge.scores.sigma_quality import (
    EXPECTED_COVERAGE,
    SHARES,
    coverage,
    expected_normalised_calibration_error,
    gaussian_nll,
    interval_coverages,
    interval_width,
    root_mean_square,
    sigma_quality,
    spearman,
)

NONE = np.zeros((0, 4))


def test_coverage__counts_sides() -> None:
    errors = np.array([[0.5, -1.0, 1.5, -2.5]])
    sigma = np.ones((1, 4))
    assert coverage(errors, sigma, 1.0) == 0.5
    assert coverage(errors, sigma, 2.0) == 0.75
    assert coverage(NONE, NONE, 1.0) is None


def test_interval_width__quantiles_of_a_gaussian() -> None:
    # from a table of the normal distribution
    expected = [0.674490, 0.994458, 1.644854, 1.959964]
    assert [interval_width(share) for share in SHARES] == pytest.approx(expected, abs=1e-6)


def test_interval_coverages__one_more_side_in_each() -> None:
    errors = np.array([[0.67, -0.99, 1.64, -1.95]])
    got = interval_coverages(errors, np.ones((1, 4)))
    assert got == {"coverage_50": 0.25, "coverage_68": 0.5, "coverage_90": 0.75, "coverage_95": 1.0}
    outside = interval_coverages(errors + 0.01 * np.sign(errors), np.ones((1, 4)))
    assert outside == {"coverage_50": 0.0, "coverage_68": 0.25, "coverage_90": 0.5, "coverage_95": 0.75}
    assert set(interval_coverages(NONE, NONE).values()) == {None}


def test_gaussian_nll__by_hand() -> None:
    errors = np.array([[0.0, 2.0, -4.0, 0.0]])
    sigma = np.array([[1.0, 1.0, 2.0, math.e]])
    # log sigma: 0, 0, log 2, 1; squares: 0, 2, 2, 0
    expected = 0.5 * math.log(2 * math.pi) + (math.log(2) + 1 + 4) / 4
    assert gaussian_nll(errors, sigma) == pytest.approx(expected)
    assert gaussian_nll(NONE, NONE) is None


def test_expected_normalised_calibration_error__by_hand() -> None:
    sigma = np.array([[1.0, 1.0, 4.0, 4.0]])
    errors = np.array([[1.0, -1.0, 2.0, -2.0]])
    # two bins: sigma 1 with RMS error 1, sigma 4 with RMS error 2
    assert expected_normalised_calibration_error(errors, sigma, bins=2) == pytest.approx((0.0 + 0.5) / 2)
    assert expected_normalised_calibration_error(errors, sigma, bins=1) == pytest.approx(
        (math.sqrt(8.5) - math.sqrt(2.5)) / math.sqrt(8.5)
    )
    # more bins than values: one bin a value
    assert expected_normalised_calibration_error(errors, sigma, bins=99) == pytest.approx((0 + 0 + 0.5 + 0.5) / 4)
    assert expected_normalised_calibration_error(NONE, NONE) is None


def test_root_mean_square__by_hand() -> None:
    assert root_mean_square(np.array([[3.0, 4.0, 0.0, 0.0]])) == pytest.approx(2.5)
    assert root_mean_square(NONE) is None


def test_true_gaussian_errors__meet_their_expectations() -> None:
    rng = np.random.default_rng(0)
    sigma = rng.uniform(0.5, 8.0, (20_000, 4))
    errors = rng.normal(0.0, sigma)
    for width, share in EXPECTED_COVERAGE.items():
        assert coverage(errors, sigma, width) == pytest.approx(share, abs=0.01)
    for name, got in interval_coverages(errors, sigma).items():
        assert got == pytest.approx(int(name.removeprefix("coverage_")) / 100, abs=0.01)
    error = expected_normalised_calibration_error(errors, sigma)
    assert error is not None and error < 0.02
    true_nll = gaussian_nll(errors, sigma)
    assert true_nll is not None
    for factor in (0.7, 1.4):  # the likelihood is proper: a wrong sigma costs
        wrong = gaussian_nll(errors, factor * sigma)
        assert wrong is not None and wrong > true_nll + 0.03


def test_spearman__by_hand() -> None:
    assert spearman(np.array([1.0, 2.0, 3.0]), np.array([10.0, 20.0, 30.0])) == pytest.approx(1.0)
    assert spearman(np.array([1.0, 2.0, 3.0]), np.array([9.0, 4.0, 1.0])) == pytest.approx(-1.0)
    # ranks 1, 2.5, 2.5, 4 against 1, 2, 3, 4: covariance 4.5, norms 4.5 and 5
    assert spearman(np.array([0.0, 5.0, 5.0, 7.0]), np.array([1.0, 2.0, 3.0, 4.0])) == pytest.approx(
        4.5 / math.sqrt(4.5 * 5)
    )


def test_spearman__nothing_to_rank_gives_none() -> None:
    assert spearman(np.zeros(0), np.zeros(0)) is None
    assert spearman(np.ones(1), np.ones(1)) is None
    assert spearman(np.ones(3), np.arange(3.0)) is None


@given(st.lists(st.tuples(st.integers(-4, 4), st.integers(-4, 4)), min_size=2, max_size=12))
def test_spearman__agrees_with_ranks_counted_one_by_one(pairs: list[tuple[int, int]]) -> None:
    def ranks(values: list[int]) -> list[float]:
        return [sum(w < v for w in values) + (sum(w == v for w in values) + 1) / 2 for v in values]

    x, y = ranks([p[0] for p in pairs]), ranks([p[1] for p in pairs])
    mx, my = sum(x) / len(x), sum(y) / len(y)
    sxx, syy = sum((a - mx) ** 2 for a in x), sum((b - my) ** 2 for b in y)
    got = spearman(np.array([p[0] for p in pairs], float), np.array([p[1] for p in pairs], float))
    if sxx == 0 or syy == 0:
        assert got is None
    else:
        sxy = sum((a - mx) * (b - my) for a, b in zip(x, y, strict=True))
        assert got == pytest.approx(sxy / math.sqrt(sxx * syy), abs=1e-12)


def test_sigma_quality__by_hand() -> None:
    # the large box is off by 2 px a side of 100 px, the small one by 1 px of 10 px: sigma in pixels ranks them wrongly
    matches = Matches(
        boxes=np.array([[2.0, 0.0, 102.0, 100.0], [1.0, 0.0, 11.0, 10.0]]),
        truth=np.array([[0.0, 0.0, 100.0, 100.0], [0.0, 0.0, 10.0, 10.0]]),
        sigma=np.array([[2.0, 2.0, 2.0, 2.0], [1.0, 1.0, 1.0, 1.0]]),
        scores=np.array([0.9, 0.6]),
        iou=np.array([98 / 102, 9 / 11]),
    )
    got = sigma_quality(matches)
    assert got.matches == 2
    assert got.coverage_1 == 1.0
    assert (got.coverage_50, got.coverage_68, got.coverage_90) == (0.5, 0.5, 1.0)  # errors of 0 and of 1 sigma
    assert got.mean_sigma == 1.5
    assert got.rmse == pytest.approx(math.sqrt((4 + 4 + 1 + 1) / 8))
    assert got.rank_sigma == pytest.approx(-1.0)
    assert got.rank_relative_sigma == pytest.approx(1.0)
    assert got.rank_score == pytest.approx(1.0)


def squares(sides: list[float], sigma: list[float], iou: list[float]) -> Matches:
    boxes = np.array([[0.0, 0.0, side, side] for side in sides])
    rows = np.repeat(np.array(sigma)[:, None], 4, axis=1)
    return Matches(boxes=boxes, truth=boxes, sigma=rows, scores=np.array([0.9, 0.8, 0.7]), iou=np.array(iou))


def test_sigma_quality__relative_sigma_is_over_the_root_of_the_area() -> None:
    # sigma / side 0.1, 0.15, 0.2 rises with 1 - IoU; sigma / area 0.01, 0.0075, 0.005 would fall
    got = sigma_quality(squares([10, 20, 40], [1, 3, 8], [0.9, 0.8, 0.7]))
    assert got.rank_relative_sigma == pytest.approx(1.0)
    # sides 10, 30, 80 with sigma 2, 5, 8: 0.2, 0.17, 0.1 falls, sigma itself rises
    got = sigma_quality(squares([10, 30, 80], [2, 5, 8], [0.9, 0.8, 0.7]))
    assert (got.rank_sigma, got.rank_relative_sigma) == pytest.approx((1.0, -1.0))


def test_sigma_quality__a_box_below_a_pixel_counts_as_one() -> None:
    # over one pixel: 0.1, 0.2, 0.3; over their own sides 0.1, 0.2, 0.5 they would be 1, 1, 0.6
    got = sigma_quality(squares([0.1, 0.2, 0.5], [0.1, 0.2, 0.3], [0.9, 0.8, 0.7]))
    assert got.rank_relative_sigma == pytest.approx(1.0)


def test_sigma_quality__oblong_boxes_by_their_area() -> None:
    matches = Matches(
        boxes=np.array([[0.0, 0.0, 100.0, 1.0], [0.0, 0.0, 20.0, 20.0]]),
        truth=np.zeros((2, 4)),
        sigma=np.array([[2.0] * 4, [3.0] * 4]),
        scores=np.array([0.5, 0.5]),
        iou=np.array([0.6, 0.8]),
    )
    assert sigma_quality(matches).rank_relative_sigma == pytest.approx(1.0)  # 2 / 10 above 3 / 20


def test_sigma_quality__counts_the_errors_of_the_boxes_themselves() -> None:
    matches = squares([10, 20, 40], [1, 1, 1], [0.9, 0.8, 0.7])
    moved = Matches(matches.boxes + 1.5, matches.truth, matches.sigma, matches.scores, matches.iou)
    got = sigma_quality(moved)
    assert (got.coverage_1, got.coverage_2, got.rmse) == (0.0, 1.0, 1.5)
    assert got.nll == pytest.approx(0.5 * math.log(2 * math.pi) + 1.125)
    assert got.ence == pytest.approx(0.5)
    assert got.rank_sigma is None and got.rank_score == pytest.approx(1.0)


def test_expected_normalised_calibration_error__ten_bins_in_the_order_of_sigma() -> None:
    # sigma 1..20; errors are sigma but for the two largest, whose errors are 0: one bin of ten is wholly wrong
    sigma = np.arange(1.0, 21.0).reshape(5, 4)
    errors = np.where(sigma > 18, 0.0, sigma)
    assert expected_normalised_calibration_error(errors, sigma) == pytest.approx(0.1)
    upper, right = sum(i * i for i in range(11, 21)), sum(i * i for i in range(11, 19))
    two = expected_normalised_calibration_error(errors, sigma, bins=2)
    assert two == pytest.approx((1 - math.sqrt(right / upper)) / 2)


def test_expected_normalised_calibration_error__equal_sigmas_stay_in_order() -> None:
    # 400 equal values in ten bins of 40 as they come: the first five have no error, the others the error they foretell
    sigma = np.ones((100, 4))
    errors = np.repeat([0.0, 1.0], 200).reshape(100, 4)
    assert expected_normalised_calibration_error(errors, sigma) == pytest.approx(0.5)


def test_sigma_quality__zero_matches_gives_nulls() -> None:
    got = sigma_quality(Matches(NONE, NONE, NONE, np.zeros(0), np.zeros(0))).to_json()
    assert got.pop("matches") == 0
    assert set(got.values()) == {None}


def test_sigma_quality__single_zero_sigma_stays_finite() -> None:
    one = np.array([[0.0, 0.0, 10.0, 10.0]])
    sigma = np.array([[0.0, 1.0, 1.0, 1.0]])
    got = sigma_quality(Matches(one, one + 1, sigma, np.ones(1), np.ones(1)))
    json.dumps(got.to_json(), allow_nan=False)
    assert got.nll is not None


def test_sigma_quality__detector_without_variance_heads() -> None:
    one = np.array([[0.0, 0.0, 10.0, 10.0]])
    got = sigma_quality(Matches(one, one + 1, np.zeros((1, 4)), np.ones(1), np.ones(1)))
    assert (got.matches, got.rmse) == (1, 1.0)
    assert (got.coverage_1, got.nll, got.ence, got.mean_sigma, got.rank_sigma) == (None, None, None, None, None)
    assert (got.coverage_50, got.coverage_68, got.coverage_90, got.coverage_95) == (None, None, None, None)
