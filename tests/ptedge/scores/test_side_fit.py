"""Offset, scale and intervals of sides: by hand, by simulation with fixed seeds, and by what must not change them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pytest

from ptedge.boxes import box_iou
from ptedge.scores.side_fit import (
    MOST_SCALE,
    SideSample,
    boxes_needed,
    conformal_factors,
    fit_offset,
    fit_scale,
    fit_sides,
    log_scale,
    unit_iou,
)

OFFSET = np.array([0.08, 0.14, 0.01, -0.05])


def draw(
    count: int, offset: np.ndarray, seed: int, true: float = 0.05, said: float = 0.05, heavy: bool = False
) -> SideSample:
    """Boxes whose errors scatter around an offset by ``true``, where the detector says ``said``; two an image."""
    rng = np.random.default_rng(seed)
    noise = rng.standard_t(4, (count, 4)) if heavy else rng.normal(size=(count, 4))
    size = rng.uniform(0.5, 2.0, (count, 1))  # some boxes are surer than others, and say so
    return SideSample(offset + true * size * noise, np.full((count, 4), said) * size, np.arange(count) // 2)


def gain_of(offsets: Iterable[np.ndarray], true: np.ndarray) -> np.ndarray:
    """Mean IoU that each offset adds to 400 other boxes with a true one."""
    errors = draw(400, true, seed=99, true=0.1).errors
    before = unit_iou(errors, np.zeros(4)).mean()
    return np.array([unit_iou(errors, offset).mean() - before for offset in offsets])


def test_unit_iou__is_that_of_the_boxes() -> None:
    # 40 x 20 at (10, 30): x1 4 too far right, y2 2 too far up, then x1 moved back by 2
    found, truth = np.array([[10, 30, 50, 50]], np.float32), np.array([[6, 30, 50, 52]], np.float32)
    errors = np.array([[0.1, 0.0, 0.0, -0.1]])
    assert unit_iou(errors, np.zeros(4)) == pytest.approx(box_iou(found, truth)[0])
    moved = np.array([[8, 30, 50, 50]], np.float32)
    assert unit_iou(errors, np.array([0.05, 0, 0, 0])) == pytest.approx(box_iou(moved, truth)[0])


def test_fit_offset__the_same_error_everywhere_is_the_offset() -> None:
    sample = SideSample(np.tile(OFFSET, (6, 1)), np.full((6, 4), 0.1), np.arange(6))
    fit = fit_offset(sample)
    assert fit.measured == pytest.approx(OFFSET) and fit.error == pytest.approx(np.zeros(4), abs=1e-9)
    assert fit.offset == pytest.approx(OFFSET)
    assert fit.gain == pytest.approx(float(1 - unit_iou(OFFSET[None], np.zeros(4))[0]))


def test_fit_offset__more_boxes_keep_more_of_it() -> None:
    weights = [np.mean([fit_offset(draw(n, OFFSET, seed, true=0.2)).weight for seed in range(30)]) for n in (6, 12, 48)]
    assert weights == sorted(weights) and weights[0] < 0.8 < weights[2]


def test_fit_offset__wrong_matches_hardly_move_it() -> None:
    sample = draw(14, OFFSET, seed=3)
    errors = sample.errors.copy()
    errors[[2, 9]] = [[-0.5, 0.4, 0.5, 0.5], [-0.4, -0.5, 0.4, 0.4]]
    assert fit_offset(replace(sample, errors=errors)).offset == pytest.approx(fit_offset(sample).offset, abs=0.035)


def test_fit_offset__ten_boxes_without_an_offset_do_no_harm() -> None:
    fits = [fit_offset(draw(10, np.zeros(4), seed, true=0.1)) for seed in range(60)]
    applied = gain_of([fit.offset for fit in fits], np.zeros(4))
    plain = gain_of([fit.measured for fit in fits], np.zeros(4))
    assert np.median(applied) == 0  # mostly there is nothing to apply
    assert np.mean(applied) > -0.002 and np.mean(plain) < -0.012


def test_fit_offset__ten_boxes_with_an_offset_help() -> None:
    gained = gain_of([fit_offset(draw(10, OFFSET, seed, true=0.1)).offset for seed in range(40)], OFFSET)
    assert np.mean(gained) > 0.65 * gain_of([OFFSET], OFFSET)[0] and gained.min() >= 0


def test_fit_sides__order_of_boxes_and_names_of_images_do_not_matter() -> None:
    sample = draw(20, OFFSET, seed=5, heavy=True)
    order = np.random.default_rng(0).permutation(20)
    other = SideSample(sample.errors[order], sample.sigma[order], 700 - 3 * sample.images[order])
    a, b = fit_sides(sample, [0.5, 0.9]), fit_sides(other, [0.5, 0.9])
    assert a.offset.offset == pytest.approx(b.offset.offset)
    assert a.scale == pytest.approx(b.scale)
    assert a.intervals[0.9] == pytest.approx(b.intervals[0.9])


def test_log_scale__by_hand() -> None:
    # 101 values at the quantiles of |x| of a Gaussian twice as wide: every level asks for the factor 2
    shares = np.linspace(0, 0.999, 101)
    values = np.array([2 * NormalDist().inv_cdf((1 + share) / 2) for share in shares])[:, None]
    assert np.exp(log_scale(values)) == pytest.approx([2.0], rel=0.01)


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_fit_scale__makes_sigma_true(factor: float) -> None:
    sample = draw(300, np.zeros(4), seed=2, true=0.05, said=0.05 / factor)
    assert fit_sides(sample).scale == pytest.approx([factor] * 4, rel=0.1)


def test_fit_scale__sides_of_their_own_are_told_apart_by_many_boxes_only() -> None:
    wide = np.array([1.0, 1.0, 1.0, 3.0])
    many, few = draw(200, np.zeros(4), seed=2), draw(8, np.zeros(4), seed=2)
    scale = fit_scale(np.abs(many.errors) / many.sigma * wide, many.images)
    assert scale == pytest.approx(wide, rel=0.2)
    equal = fit_scale(np.abs(few.errors) / few.sigma, few.images)
    assert np.ptp(equal) < 0.3 * equal.mean()


def test_fit_scale__few_boxes_are_drawn_towards_none() -> None:
    rng = np.random.default_rng(0)
    scores = np.abs(rng.normal(size=(6, 4)))
    own = float(np.exp(log_scale(scores.reshape(-1, 1)))[0])
    drawn = fit_scale(scores, np.arange(6)).mean()
    assert abs(np.log(drawn)) < abs(np.log(own))


def test_fit_sides__a_detector_without_sigma_has_an_offset_alone() -> None:
    fit = fit_sides(replace(draw(30, OFFSET, seed=0), sigma=np.zeros((30, 4))), [0.9])
    assert fit.offset.helps and fit.scale.tolist() == [1, 1, 1, 1] and fit.intervals == fit.too_few == {}


def test_conformal_factors__by_hand() -> None:
    scores = np.array([[3.0, 30.0], [1.0, 10.0], [2.0, 20.0], [4.0, 40.0]])
    assert conformal_factors(scores, 0.6).tolist() == [3.0, 30.0]  # ceil(5 * 0.6) = 3
    assert conformal_factors(scores, 0.8).tolist() == [4.0, 40.0]
    assert conformal_factors(scores, 0.81) is None  # the fifth of four


@pytest.mark.parametrize(("coverage", "boxes"), [(0.5, 1), (0.8, 4), (0.9, 9), (0.95, 19), (0.99, 99)])
def test_boxes_needed__is_where_factors_begin(coverage: float, boxes: int) -> None:
    assert boxes_needed(coverage) == boxes
    assert conformal_factors(np.zeros((boxes, 1)), coverage) is not None
    assert conformal_factors(np.zeros((boxes - 1, 1)), coverage) is None


@pytest.mark.parametrize(("coverage", "count"), [(0.5, 10), (0.9, 12), (0.9, 30), (0.95, 40)])
def test_fit_sides__intervals_hold_what_they_promise(coverage: float, count: int) -> None:
    """Whatever the errors' distribution, in the mean over calibrations, up to what 60 of them leave open."""
    held = []
    judged = draw(500, OFFSET, seed=1000, said=0.02, heavy=True)
    for seed in range(60):
        fit = fit_sides(draw(count, OFFSET, seed, said=0.02, heavy=True), [coverage])
        errors = np.abs(judged.errors - fit.offset.offset)
        held.append(np.mean(errors <= fit.intervals[coverage] * fit.scale * judged.sigma))
    assert np.mean(held) >= coverage - 2 * np.std(held) / np.sqrt(60) - 0.005  # the judged ones are a sample too


def test_fit_sides__too_few_boxes_for_a_coverage_give_no_interval() -> None:
    fit = fit_sides(draw(12, OFFSET, seed=0), [0.5, 0.9, 0.95])
    assert set(fit.intervals) == {0.5, 0.9} and fit.too_few == {0.95: 19}


def test_fit_scale__errors_of_nothing_leave_a_sigma() -> None:
    assert fit_scale(np.zeros((8, 4)), np.arange(8)) == pytest.approx([1 / MOST_SCALE] * 4)
