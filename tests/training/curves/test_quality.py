"""The pairs behind the quality plot."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from ptedge.data.dataset import Sample
from ptedge.detections import Detections
from ptedge.training.curves.quality import quality_pairs, read_quality


def detections(boxes: list[list[float]], labels: list[int], scores: list[float]) -> Detections:
    n = len(boxes)
    sigma = np.full((n, 4), 2.0, np.float32)
    array = np.array(boxes, np.float32).reshape(-1, 4)
    zeros = np.zeros(n, np.float32)
    return Detections(array, np.array(scores, np.float32), np.array(labels, np.int64), sigma, zeros)


def sample(boxes: list[list[float]], labels: list[int], ignore: list[bool]) -> Sample:
    array = np.array(boxes, np.float32).reshape(-1, 4)
    return Sample(Path("x.png"), 100, 100, array, np.array(labels, np.int64), np.array(ignore, bool), 1)


def test_quality_pairs__by_hand(tmp_path: Path) -> None:
    found = detections(
        [
            [0, 0, 10, 10],  # the first box itself
            [0, 0, 10, 5],  # half of it
            [0, 0, 10, 10],  # right place, other class
            [52, 52, 60, 60],  # in an ignore region
            [80, 80, 90, 90],  # nothing there
        ],
        [0, 0, 1, 0, 0],
        [0.9, 0.5, 0.8, 0.4, 0.3],
    )
    labelled = sample([[0, 0, 10, 10], [50, 50, 70, 70]], [0, 0], [False, True])
    pairs = quality_pairs([found, detections([], [], [])], [labelled, labelled])
    np.testing.assert_allclose(pairs.iou, [1.0, 0.5])
    np.testing.assert_allclose(pairs.score, [0.9, 0.5], rtol=1e-6)
    np.testing.assert_allclose(pairs.sigma, [2 / 10, 2 / math.sqrt(50)], rtol=1e-6)
    assert pairs.elsewhere == 2
    assert pairs.rank_score == pytest.approx(1.0) and pairs.rank_sigma == pytest.approx(-1.0)
    pairs.write(tmp_path / "boxes.json")
    again = read_quality(tmp_path / "boxes.json")
    np.testing.assert_allclose(again.sigma, pairs.sigma, atol=1e-6)
    assert again.elsewhere == 2 and len(again) == 2


def test_quality_pairs__nothing_found() -> None:
    pairs = quality_pairs([detections([], [], [])], [sample([], [], [])])
    assert len(pairs) == 0 and pairs.rank_score is None
