"""Comparison of two answers: what counts as equal, as borderline, as wrong."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ptedge.detections import Detections
from ptedge.export.verify.compare import Comparison, compare, match


def detections(
    *boxes: tuple[float, ...], scores: list[float] | None = None, labels: list[int] | None = None
) -> Detections:
    n = len(boxes)
    return Detections(
        np.array(boxes, np.float32).reshape(n, 4),
        np.array(scores if scores is not None else np.linspace(0.9, 0.5, n), np.float32),
        np.array(labels if labels is not None else [0] * n, np.int64),
        np.full((n, 4), 2, np.float32),
        np.full(n, 0.3, np.float32),
    )


A, B, C = (0.0, 0, 40, 40), (100.0, 0, 140, 40), (0.0, 100, 40, 140)


def test_match__order_of_rows_does_not_count() -> None:
    assert sorted(match(detections(A, B), detections(B, A))) == [(0, 1), (1, 0)]


def test_match__classes_stay_apart() -> None:
    assert match(detections(A), detections(A, labels=[1])) == []


def test_match__duplicates_pair_by_score() -> None:
    a = detections(A, A, scores=[0.9, 0.6])
    assert sorted(match(a, detections(A, A, scores=[0.6, 0.9]))) == [(0, 1), (1, 0)]


def test_match__a_box_cut_to_a_line_matches_itself() -> None:
    line = (0.0, 10, 0, 60)
    assert match(detections(line), detections(line)) == [(0, 0)]


def test_match__nothing_to_match() -> None:
    assert match(detections(A), Detections.empty()) == []
    assert match(Detections.empty(), detections(A)) == []


def test_compare__equal_within_tolerance() -> None:
    moved = detections((0.05, 0, 40, 40), B)
    found = compare(detections(A, B), moved)
    assert found.passed
    assert (found.detections, found.matched, found.wrong) == (2, 2, 0)
    assert abs(found.box - 0.05) < 1e-6


def test_compare__a_moved_box_is_wrong_on_both_sides() -> None:
    found = compare(detections(A, B), detections((0.5, 0, 40, 40), B))
    assert not found.passed
    assert (found.matched, found.wrong) == (1, 2)
    assert "missing class 0 score 0.9000 at [0.0, 0.0, 40.0, 40.0]" in str(found)


def test_compare__score_sigma_and_entropy_count() -> None:
    a = detections(A)
    assert not compare(a, detections(A, scores=[0.902])).passed
    assert not compare(a, replace(a, sigma=a.sigma * np.float32(1.002))).passed
    assert not compare(a, replace(a, entropy=a.entropy + np.float32(0.002))).passed
    assert compare(a, replace(a, sigma=a.sigma * np.float32(1.0005))).passed


def test_compare__missing_is_borderline_when_a_variant_lacks_it() -> None:
    reference = detections(A, B, C)
    other = reference.select(np.array([0, 1]))
    assert compare(reference, other, [reference]).wrong == 1
    found = compare(reference, other, [reference, other])
    assert (found.borderline, found.wrong, found.passed) == (1, 0, True)
    assert "1 borderline (limit 2)" in str(found)


def test_compare__extra_is_borderline_when_a_variant_has_it() -> None:
    reference, other = detections(A, B), detections(A, B, C, scores=[0.9, 0.5, 0.4])
    assert compare(reference, other, [reference]).wrong == 1
    assert compare(reference, other, [other]).borderline == 1


def test_compare__extra_in_place_of_a_borderline_one() -> None:
    reference, other = detections(A), detections((3.0, 0, 40, 40))
    found = compare(reference, other, [Detections.empty()])
    assert (found.borderline, found.wrong) == (2, 0)


def test_comparison__too_many_borderline_fail() -> None:
    assert Comparison(detections=100, borderline=4).passed
    assert not Comparison(detections=100, borderline=5).passed
    total = Comparison(detections=100, borderline=3, box=0.1) + Comparison(detections=50, borderline=2, box=0.02)
    assert (total.detections, total.borderline, total.box, total.passed) == (150, 5, 0.1, True)


def test_compare__tolerances_from_either_side() -> None:
    a = detections(A)
    for offset, passed in ((0.09, True), (0.11, False)):
        for side in range(4):
            for sign in (1, -1):
                boxes = a.boxes.copy()
                boxes[0, side] += sign * offset
                assert compare(a, replace(a, boxes=boxes)).passed == passed, (side, sign)
    for share, passed in ((0.0009, True), (0.0011, False)):
        for factor in (1 + share, 1 - share):
            assert compare(a, replace(a, scores=a.scores * np.float32(factor))).passed == passed
            sigma = a.sigma.copy()
            sigma[0, 3] *= np.float32(factor)  # one side of four
            assert compare(a, replace(a, sigma=sigma)).passed == passed
            entropy = a.entropy + np.float32(share * (1 if factor > 1 else -1))
            assert compare(a, replace(a, entropy=entropy)).passed == passed


def test_compare__tells_the_largest_difference_of_each_kind() -> None:
    a, k = detections(A, B, C), np.array([1, 3, 2], np.float32)
    b = Detections(
        a.boxes + k[:, None] * np.float32(0.02),
        a.scores * (1 + k * np.float32(1e-4)),
        a.labels,
        a.sigma * (1 + k * np.float32(2e-4))[:, None],
        a.entropy + k * np.float32(3e-4),
    )
    found = compare(a, b)
    assert (found.matched, found.passed) == (3, True)
    np.testing.assert_allclose(
        [found.box, found.score, found.sigma, found.entropy], [0.06, 3e-4, 6e-4, 9e-4], rtol=2e-2
    )


def test_match__the_higher_overlap_goes_first_and_half_is_too_little() -> None:
    # 40 x 40; moved by 10: IoU 0.6, by 14: 0.48; the second box on the right is the nearer one
    a = detections((0.0, 0, 40, 40))
    assert match(a, detections((10.0, 0, 50, 40), (1.0, 0, 41, 40))) == [(0, 1)]
    assert match(a, detections((10.0, 0, 50, 40))) == [(0, 0)]
    assert match(a, detections((15.0, 0, 55, 40))) == []


def test_comparison__sums_and_largest_of_two() -> None:
    one = Comparison(10, 8, 1, 1, 0.1, 0.2, 0.3, 0.4, ("a", "b"))
    two = Comparison(20, 17, 2, 3, 0.4, 0.1, 0.2, 0.3, ("c", "d"))
    for left, right, examples in ((one, two, ("a", "b", "c")), (two, one, ("c", "d", "a"))):
        assert left + right == Comparison(30, 25, 3, 4, 0.4, 0.2, 0.3, 0.4, examples)


def test_comparison__how_many_near_ties_are_allowed() -> None:
    assert [Comparison(detections=count).borderline_limit for count in (0, 49, 50, 100, 500)] == [2, 2, 3, 4, 12]
    assert not Comparison(detections=100, wrong=1).passed
