"""Differences that are there by design: counted over sure detections, judged by the limits of the arithmetic."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ptedge.detections import Detections
from ptedge.export.verify.deviation import deviation
from ptedge.export.verify.limits import BY_PRECISION, FP16, FP32, INT8, TF32, limits_for


def detections(count: int, score: float = 0.9) -> Detections:
    """``count`` boxes of 40 x 40 side by side, sigma 2."""
    x = np.arange(count, dtype=np.float32) * 100
    boxes = np.stack([x, np.zeros_like(x), x + 40, np.full_like(x, 40)], axis=1)
    scores, entropy = np.full(count, score, np.float32), np.full(count, 0.3, np.float32)
    return Detections(boxes, scores, np.zeros(count, np.int64), np.full((count, 4), 2, np.float32), entropy)


def test_deviation__equal() -> None:
    found = deviation([detections(3)], [detections(3)], FP16)
    assert (found.detections, found.missed, found.matched, found.passed) == (6, 0, 1.0, True)
    assert (found.box, found.score, found.sigma) == (0, 0, 0)


def test_deviation__measures() -> None:
    a = detections(4)
    b = replace(
        a, boxes=a.boxes + np.float32(0.5), scores=a.scores - np.float32(0.01), sigma=a.sigma * np.float32(0.98)
    )
    found = deviation([a], [b], FP16)
    assert found.missed == 0
    assert (found.box, found.score) == (pytest.approx(0.5), pytest.approx(0.01, abs=1e-6))
    assert (found.sigma, found.sigma_shift) == (pytest.approx(0.02, abs=1e-5), pytest.approx(-0.02, abs=1e-5))
    assert not found.passed  # 2 % of sigma, 1 % allowed
    assert deviation([a], [b], INT8).passed
    assert "100.0% of 8 detections above 0.3 match" in str(found)
    assert "(-2.00%)" in str(found)


def test_deviation__a_side_may_move_by_a_share_of_the_box() -> None:
    a = Detections(*(v[:1] for v in (detections(1).boxes * np.float32(10), *_rest(detections(1)))))
    b = replace(a, boxes=a.boxes + np.float32(1.9))  # 0.5 % of 400 is 2 pixels
    assert deviation([a], [b], FP16).missed == 0
    assert deviation([a], [replace(a, boxes=a.boxes + np.float32(2.1))], FP16).missed == 2


def _rest(d: Detections) -> tuple[np.ndarray, ...]:
    return d.scores, d.labels, d.sigma, d.entropy


def test_deviation__misses_count_as_a_share_but_few_are_no_share() -> None:
    everything, part = detections(20), detections(19)
    found = deviation([everything], [part], INT8)
    assert (found.detections, found.missed, found.passed) == (39, 1, True)
    assert not deviation([everything], [detections(17)], FP16).passed  # 3 of 37 are missed
    assert deviation([everything], [detections(17)], INT8).passed
    assert not deviation([everything], [detections(5)], INT8).passed  # 15 of 25
    assert not deviation([detections(1)], [detections(0)], INT8).passed  # nothing is left


def test_deviation__doubtful_ones_come_and_go() -> None:
    found = deviation([detections(5, score=0.29)], [detections(0)], FP16)
    assert (found.detections, found.passed) == (0, True)
    assert "no detection above 0.3" in str(found)
    # one that is just sure on one side is matched by a doubtful one on the other
    assert deviation([detections(5, score=0.305)], [detections(5, score=0.295)], FP16).missed == 0


def test_deviation__percentiles_of_differences_that_differ() -> None:
    # 21 pairs off by 0, 0.01, ... 0.20 pixels on one side and half that in score: the 95th percentile is the 20th
    a, k = detections(21), np.arange(21, dtype=np.float32)
    boxes, sigma = a.boxes.copy(), a.sigma.copy()
    boxes[:, 2] += k * np.float32(0.01)
    sigma *= (1 + 0.01 * (k - 5))[:, None].astype(np.float32)  # -5 % to +15 %: the median is the 11th, +5 %
    b = replace(a, boxes=boxes, scores=a.scores - k * np.float32(0.005), sigma=sigma)
    found = deviation([a], [b], INT8)
    assert (found.box, found.score) == (pytest.approx(0.19, abs=1e-4), pytest.approx(0.095, abs=1e-4))
    # sizes are 5, 4, ... 1, 0, 1, ... 15 %: five of them twice, so the 11th is 5 %
    assert (found.sigma, found.sigma_shift) == (pytest.approx(0.05, abs=1e-5), pytest.approx(0.05, abs=1e-5))
    narrower = deviation([b], [a], INT8)  # relative to the reference: 1 / 1.05 - 1
    assert narrower.sigma_shift == pytest.approx(1 / 1.05 - 1, abs=1e-5)


def test_deviation__each_limit_alone_and_near_it() -> None:
    a = detections(3)
    for within, beyond in ((0.99, 1.01), (-0.99, -1.01)):
        assert deviation([a], [replace(a, boxes=a.boxes + np.float32(within))], FP16).missed == 0
        assert deviation([a], [replace(a, boxes=a.boxes + np.float32(beyond))], FP16).missed == 6
    assert deviation([a], [replace(a, scores=a.scores + np.float32(0.019))], FP16).missed == 0
    assert deviation([a], [replace(a, scores=a.scores + np.float32(0.021))], FP16).missed == 6
    for ratio, passed in ((1.009, True), (1.011, False), (0.991, True), (0.989, False)):
        assert deviation([a], [replace(a, sigma=a.sigma * np.float32(ratio))], FP16).passed == passed


def test_deviation__images_are_compared_one_by_one() -> None:
    one, two = detections(2), replace(detections(2), labels=np.ones(2, np.int64))
    assert deviation([one, two], [one, two], FP16).missed == 0
    found = deviation([one, two], [two, two], FP16)
    assert (found.detections, found.missed, found.matched) == (8, 4, 0.5)


def test_deviation__misses_beyond_the_share() -> None:
    # 98 % of 300: 6 may be missing; below 100 it is two
    def missing(count: int, gone: int) -> bool:
        return deviation([detections(count + gone)], [detections(count)], FP16).passed

    assert missing(147, 6) and not missing(147, 7)
    assert missing(20, 2) and not missing(20, 3)


def test_limits__widen_with_fewer_bits() -> None:
    for narrow, wide in ((FP32, FP16), (FP16, INT8)):
        for field in ("box", "box_relative", "score", "sigma", "ap50", "layer"):
            assert getattr(narrow, field) < getattr(wide, field)
        assert narrow.matched > wide.matched
    assert set(BY_PRECISION) == {"fp32", "fp16", "int8"}


def test_limits_for__a_gpu_may_round_products_in_float32() -> None:
    assert limits_for("fp32", "cpu") is FP32
    assert limits_for("fp32", "cuda") is TF32
    assert limits_for("int8", "tensorrt") is INT8


def test_limits__are_those_promised_for_the_conversions() -> None:
    assert (FP16.ap50, FP16.sigma, FP16.coverage) == (0.002, 0.01, 0.02)
    assert (INT8.ap50, INT8.sigma, INT8.coverage) == (0.01, 0.05, 0.02)
