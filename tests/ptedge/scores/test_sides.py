"""Signed errors of box sides: every expected value by hand."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from ptedge.data.dataset import Sample
from ptedge.detections import Detections
from ptedge.scores.average_precision import Matches, match_detections
from ptedge.scores.sides import OffsetRemoved, SideErrors, relative_errors, remove_offset, side_errors

NAMES = ("car", "person")


def pairs(boxes: list[list[float]], truth: list[list[float]], sigma: float = 1.0) -> Matches:
    rows = np.array(boxes, np.float64).reshape(-1, 4)
    count = len(rows)
    labelled = np.array(truth, np.float64).reshape(-1, 4)
    return Matches(rows, labelled, np.full((count, 4), sigma), np.ones(count), np.ones(count))


def found(boxes: list[list[float]], labels: list[int] | None = None, sigma: float = 1.0) -> Detections:
    count = len(boxes)
    return Detections(
        boxes=np.array(boxes, np.float32).reshape(-1, 4),
        scores=np.linspace(0.9, 0.5, count, dtype=np.float32),
        labels=np.array(labels or [0] * count, np.int64),
        sigma=np.full((count, 4), sigma, np.float32),
        entropy=np.zeros(count, np.float32),
    )


def labelled(boxes: list[list[float]], labels: list[int] | None = None, size: tuple[int, int] = (400, 300)) -> Sample:
    count = len(boxes)
    return Sample(
        path=Path("a.png"),
        width=size[0],
        height=size[1],
        boxes=np.array(boxes, np.float32).reshape(-1, 4),
        labels=np.array(labels or [0] * count, np.int64),
        ignore=np.zeros(count, np.bool_),
        image_id=0,
    )


def removed(detections: Detections, sample: Sample) -> tuple[SideErrors, OffsetRemoved]:
    matches = match_detections([detections], [sample], len(NAMES))
    sides = side_errors(matches)
    return sides, remove_offset([detections], [sample], NAMES, matches, sides.offset)


def test_side_errors__a_shift_is_relative_to_each_boxs_own_size() -> None:
    # 20 x 10 and 200 x 100, both a tenth of their width too far right and a twentieth of their height too far up
    matches = pairs([[2, -0.5, 22, 9.5], [120, 95, 320, 195]], [[0, 0, 20, 10], [100, 100, 300, 200]])
    sides = side_errors(matches)
    assert sides.offset == pytest.approx([0.1, -0.05, 0.1, -0.05])
    assert sides.spread == pytest.approx([0, 0, 0, 0], abs=1e-12)
    # sigma is 1 pixel: of the widths 1/20 and 1/200, of the heights 1/10 and 1/100
    assert sides.sigma == pytest.approx([0.0275, 0.055, 0.0275, 0.055])


def test_relative_errors__by_the_detected_box() -> None:
    # 80 wide where 100 are labelled: 20 / 80; 60 high where 50 are: 10 / 60
    got = relative_errors(pairs([[20, 0, 100, 60]], [[0, 0, 100, 50]]))
    assert got == pytest.approx(np.array([[0.25, 0, 0, 1 / 6]]))


def test_side_errors__spread_is_the_scaled_median_deviation_and_bears_a_wild_box() -> None:
    shifts = [0.0, 1.0, 2.0, 5.0, 90.0]  # pixels of 100: median 2; deviations 2, 1, 0, 3, 88, of which the median is 2
    matches = pairs([[s, 0, 100 + s, 100] for s in shifts], [[0, 0, 100, 100]] * 5)
    sides = side_errors(matches)
    assert sides.offset == pytest.approx([0.02, 0, 0.02, 0])
    assert sides.spread == pytest.approx([1.482602 * 0.02, 0, 1.482602 * 0.02, 0])


def test_side_errors__spread_of_a_gaussian_is_its_standard_deviation() -> None:
    shift = np.random.default_rng(0).normal(3.0, 5.0, (20_000, 4))
    truth = np.tile([0.0, 0.0, 1000.0, 1000.0], (20_000, 1))
    one = np.ones(20_000)
    sides = side_errors(Matches(truth + shift, truth, np.ones_like(truth), one, one))
    assert sides.offset == pytest.approx(np.full(4, 0.003), abs=2e-4)
    assert sides.spread == pytest.approx(np.full(4, 0.005), abs=2e-4)


def test_side_errors__no_pair_gives_nulls() -> None:
    document = side_errors(pairs([], [])).to_json()
    assert list(document) == ["x1", "y1", "x2", "y2"]
    assert set(map(str, document.values())) == {"{'offset': None, 'spread': None, 'sigma': None}"}


def test_side_errors__one_pair_has_an_offset_and_no_spread() -> None:
    document = side_errors(pairs([[10, 0, 110, 100]], [[0, 0, 100, 100]], sigma=5)).to_json()
    assert document["x1"] == {"offset": 0.1, "spread": None, "sigma": 0.05}
    assert document["y2"]["offset"] == 0.0
    json.dumps(document, allow_nan=False)


def test_remove_offset__a_shifted_detector_becomes_exact() -> None:
    # each a fifth of its width too far right: IoU 0.8 / 1.2 = 0.67
    truth = [[0, 0, 100, 100], [200, 100, 240, 120], [300, 200, 350, 300]]
    detections = found([[20, 0, 120, 100], [208, 100, 248, 120], [310, 200, 360, 300]], [0, 1, 0])
    sides, after = removed(detections, labelled(truth, [0, 1, 0]))
    assert sides.offset == pytest.approx([0.2, 0, 0.2, 0])
    assert (after.ap50, after.ap75, after.ap) == (1.0, 1.0, 1.0)
    assert set(after.coverage.values()) == {1.0}
    assert detections.boxes[0].tolist() == [20, 0, 120, 100]  # the argument stays


def test_remove_offset__a_single_side_of_boxes_of_unequal_size() -> None:
    # x1 a quarter of the detected width too far right: 80 of 100, 40 of 50; the other sides are true
    sides, after = removed(found([[20, 0, 100, 50], [210, 0, 250, 90]]), labelled([[0, 0, 100, 50], [200, 0, 250, 90]]))
    assert sides.offset == pytest.approx([0.25, 0, 0, 0])
    assert after.ap == 1.0


def test_remove_offset__moves_what_is_right_away_where_most_are_wrong() -> None:
    # two of three a tenth too far right; the third was exact and has IoU 0.9 / 1.1 = 0.82 afterwards
    truth = [[0, 0, 100, 100], [0, 150, 100, 250], [200, 0, 300, 100]]
    sides, after = removed(found([[10, 0, 110, 100], [10, 150, 110, 250], [200, 0, 300, 100]]), labelled(truth))
    assert sides.offset == pytest.approx([0.1, 0, 0.1, 0])
    assert after.ap75 == 1.0
    # at 0.85, 0.90 and 0.95 two of three are found, without a false alarm before them: 67 of 101 points of recall
    assert after.ap == pytest.approx((7 + 3 * 67 / 101) / 10)
    # sigma is 1 pixel: 2 x 4 sides and the y sides of the third are exact now, its x sides 10 pixels off
    assert after.coverage["coverage_95"] == pytest.approx(10 / 12)


def test_remove_offset__boxes_end_at_the_pictures_edge() -> None:
    # x1 a tenth of the width too far right but for the third, which both begin at the edge
    truth = [[91, 0, 201, 100], [91, 150, 201, 250], [0, 0, 90, 100]]
    detections = found([[101, 0, 201, 100], [101, 150, 201, 250], [0, 0, 90, 100]])
    assert removed(detections, labelled(truth))[1].ap == 1.0
    # where the size is not known the third begins at -9: IoU 90 / 99 = 0.909
    beyond = removed(detections, labelled(truth, size=(0, 0)))[1].ap
    assert beyond == pytest.approx((9 + 67 / 101) / 10)


def test_remove_offset__no_pair_gives_nulls() -> None:
    _, after = removed(found([[0, 0, 10, 10]]), labelled([[50, 50, 90, 90]]))
    assert set(after.to_json().values()) == {None}
    assert list(after.to_json())[:3] == ["AP50", "AP75", "AP"]


def test_remove_offset__a_detector_without_sigma_has_ap_only() -> None:
    sides, after = removed(found([[20, 0, 120, 100]], sigma=0.0), labelled([[0, 0, 100, 100]]))
    assert sides.sigma is None and sides.offset == pytest.approx([0.2, 0, 0.2, 0])
    assert after.ap75 == 1.0
    assert set(after.coverage.values()) == {None}
