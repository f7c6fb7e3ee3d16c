"""Two models on the same pictures: values by hand, bounds against a slow bootstrap, and how often they are wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ptedge.data.dataset import Sample
from ptedge.detections import Detections
from ptedge.scores.average_precision import evaluate_detections
from ptedge.scores.paired import paired_ap50, paired_mean

NAMES = ("car", "person")


def found(rng: np.random.Generator, truth: np.ndarray, labels: np.ndarray, share: float) -> Detections:
    """Finds a share of the boxes, and some that are not there."""
    keep = rng.random(len(truth)) < share
    extra = rng.uniform(0, 200, (2, 2))
    boxes = np.concatenate([truth[keep] + rng.normal(0, 1, (keep.sum(), 4)), np.hstack([extra, extra + 20])])
    kinds = np.concatenate([labels[keep], [0, 1]])
    scores = np.concatenate([rng.uniform(0.3, 1, keep.sum()), rng.uniform(0, 0.7, 2)])
    order = np.argsort(-scores)
    n = len(order)
    return Detections(
        boxes[order].astype(np.float32),
        scores[order].astype(np.float32),
        kinds[order],
        np.ones((n, 4), np.float32),
        np.zeros(n, np.float32),
    )


def made(seed: int, images: int, shares: tuple[float, float]) -> tuple[list[Sample], list[list[Detections]]]:
    rng = np.random.default_rng(seed)
    samples, models = [], [list[Detections](), list[Detections]()]
    for number in range(images):
        corner = rng.uniform(0, 200, (3, 2))
        boxes = np.hstack([corner, corner + 30]).astype(np.float32)
        labels = np.array([0, 0, 1])
        ignore = np.array([False, number % 3 == 0, False])
        samples.append(Sample(Path("none.png"), 240, 240, boxes, labels, ignore, number))
        for model, share in zip(models, shares, strict=True):
            model.append(found(rng, boxes, labels, share))
    return samples, models


def test_paired_ap50__values_are_those_of_the_metric() -> None:
    samples, (first, second) = made(0, 12, (0.6, 0.9))
    difference = paired_ap50(first, second, samples, 2, draws=10)
    assert difference is not None
    for value, detections in ((difference.first, first), (difference.second, second)):
        assert value == pytest.approx(evaluate_detections(detections, samples, NAMES).ap50)


def test_paired_ap50__bounds_as_a_slow_bootstrap_has_them() -> None:
    samples, (first, second) = made(1, 8, (0.6, 0.8))
    difference = paired_ap50(first, second, samples, 2, seed=3, draws=40)
    rng, drawn = np.random.default_rng(3), []
    for _ in range(40):
        rows = np.repeat(np.arange(8), rng.multinomial(8, np.full(8, 1 / 8)))
        values = [
            evaluate_detections([model[i] for i in rows], [samples[i] for i in rows], NAMES).ap50
            for model in (first, second)
        ]
        drawn.append(float(values[1] or 0) - float(values[0] or 0))
    assert difference is not None
    assert [difference.low, difference.high] == pytest.approx(list(np.quantile(drawn, (0.05, 0.95))), abs=1e-9)


def test_paired_ap50__nothing_labelled() -> None:
    none = np.zeros((0, 4), np.float32)
    sample = Sample(Path("none.png"), 10, 10, none, np.zeros(0, np.int64), np.zeros(0, bool), 0)
    assert paired_ap50([Detections.empty()], [Detections.empty()], [sample], 1) is None


def test_paired_mean__a_constant_difference_is_sure() -> None:
    first = np.random.default_rng(0).random(30)
    difference = paired_mean(first, first - 0.1)
    assert [difference.value, difference.low, difference.high] == pytest.approx([-0.1] * 3)
    assert difference.pictures == 30


def test_paired_mean__a_loss_at_the_margin_is_below_the_bound_as_often_as_stated() -> None:
    """Neighbours are alike: differences are a moving average. 5 % stated; blocks of few frames come near it."""
    rng, passed = np.random.default_rng(0), 0
    for seed in range(300):
        noise = np.convolve(rng.normal(0, 0.1, 66), np.ones(3) / 3, "valid")  # 64 frames
        difference = paired_mean(np.zeros(64), noise - 0.05, seed)
        passed += difference.low >= -0.05
    assert passed <= 0.10 * 300
