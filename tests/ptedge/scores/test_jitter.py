"""Trembling that is known."""

from __future__ import annotations

import numpy as np
import pytest
from made_answers import found

from ptedge.detections import Detections
from ptedge.scores.jitter import FEWEST_WINDOWS, measure_jitter
from ptedge.scores.tracking import Track

WIDTH, HEIGHT = 2000, 2000


def moving(count: int, noise: np.ndarray, sigma: float, *, shared: float = 0.0) -> list[Detections]:
    """A box of 100 x 50 that moves by (3, 1) a frame; ``noise`` [count, 4] is added, ``shared`` to all."""
    boxes = np.array([[200, 300, 300, 350]]) + np.arange(count)[:, None] * np.array([[3, 1, 3, 1]]) + noise + shared
    return [found((0.9, 0, box.tolist()), sigma=sigma) for box in boxes]


def whole(count: int) -> Track:
    return Track(0, np.arange(count), np.zeros(count, np.int64))


def test_jitter__is_what_is_new_in_each_frame() -> None:
    rng = np.random.default_rng(0)
    deviation = np.array([1.0, 2.0, 3.0, 4.0])
    noise = rng.normal(0, deviation, (400, 4))
    measured = measure_jitter(moving(400, noise, 2.0), [whole(400)], WIDTH, HEIGHT)
    assert (measured.windows, measured.tracks) == (398, 1)
    assert measured.jitter == pytest.approx(deviation / [100, 50, 100, 50], rel=0.12)
    assert measured.sigma == pytest.approx(2.0 / np.array([100, 50, 100, 50]), rel=0.1)
    assert measured.least_scale == pytest.approx(deviation / 2, rel=0.12)
    assert measured.error is not None and (measured.error < 0.1 * deviation).all()
    assert measured.too_small() == ("x2", "y2")


def test_jitter__an_offset_and_a_steady_pace_are_not_seen() -> None:
    noise = np.zeros((40, 4))
    measured = measure_jitter(moving(40, noise, 2.0, shared=7.0), [whole(40)], WIDTH, HEIGHT)
    assert measured.least_scale == pytest.approx(np.zeros(4), abs=1e-4)
    assert measured.too_small() == ()


def test_jitter__error_that_stays_makes_the_bound_lower_never_higher() -> None:
    rng = np.random.default_rng(1)
    new = rng.normal(0, 1, (4000, 4))
    stays = np.zeros((4000, 4))
    for i in range(1, 4000):
        stays[i] = 0.9 * stays[i - 1] + np.sqrt(1 - 0.81) * new[i]  # of variance 1 as well
    ratio = measure_jitter(moving(4000, stays, 1.0), [whole(4000)], 20000, 20000).least_scale
    # variance of the second difference: 6 - 8 rho + 2 rho^2 instead of 6
    assert ratio == pytest.approx(np.full(4, np.sqrt((6 - 7.2 + 1.62) / 6)), rel=0.06)


def test_jitter__by_hand() -> None:
    """Every third box is 3 pixels off: each window of three holds one, at an end or in the middle."""
    noise = np.zeros((62, 4))
    noise[::3, 0] = 3.0
    measured = measure_jitter(moving(62, noise, 2.0), [whole(62)], WIDTH, HEIGHT)
    # second differences are 3, -6, 3, 3, -6, 3 ...: 6 in a third of the 60 windows, so the 68.3 % quantile is 6
    assert measured.windows == 60
    assert measured.least_scale is not None and measured.jitter is not None
    assert measured.least_scale[0] == pytest.approx(6 / np.sqrt(6 * 4), rel=1e-4)
    assert measured.jitter[0] == pytest.approx(6 / np.sqrt(6) / 100, rel=0.05)


def test_jitter__windows_have_no_gap_and_touch_no_edge() -> None:
    frames = np.array([0, 1, 2, 4, 5, 6, 7])
    detections = moving(8, np.zeros((8, 4)), 2.0)
    track = Track(0, frames, np.zeros(7, np.int64))
    assert measure_jitter(detections, [track], WIDTH, HEIGHT).windows == 3  # 0-2, 4-6, 5-7
    # right sides of frames 4 to 7 are at 312, 315, 318, 321
    assert measure_jitter(detections, [track], 320, HEIGHT).windows == 2


def test_jitter__too_few_say_nothing() -> None:
    count = FEWEST_WINDOWS + 1
    measured = measure_jitter(moving(count, np.zeros((count, 4)), 2.0), [whole(count)], WIDTH, HEIGHT)
    assert measured.windows == FEWEST_WINDOWS - 1
    assert measured.least_scale is None and measured.too_small() == ()
    assert measured.to_json()["sides"]["x1"] == dict.fromkeys(("jitter", "sigma", "least_scale", "error"))
    assert measure_jitter([], [], WIDTH, HEIGHT).windows == 0


def test_jitter__tracks_are_left_out_for_the_error() -> None:
    """Tracks of which one trembles: the error is large, though there are many windows."""
    rng = np.random.default_rng(2)
    quiet, wild = rng.normal(0, 1, (100, 4)), rng.normal(0, 6, (100, 4))
    both = [
        found((0.9, 0, a.boxes[0].tolist()), (0.9, 0, b.boxes[0].tolist()))
        for a, b in zip(moving(100, quiet, 1.0), moving(100, wild, 1.0, shared=500.0), strict=True)
    ]
    tracks = [Track(0, np.arange(100), np.full(100, row)) for row in range(2)]
    alone = measure_jitter(both, tracks[:1], WIDTH, HEIGHT)
    together = measure_jitter(both, tracks, WIDTH, HEIGHT)
    assert alone.tracks == 1 and together.tracks == 2
    assert together.least_scale is not None and alone.least_scale is not None
    assert (together.least_scale > alone.least_scale).all()
