"""The pairs behind the quality plot."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptedge.data.dataset import Sample
from ptedge.detections import Detections
from ptedge.training.curves.quality import QualityPairs, quality_pairs, read_quality
from ptedge.training.curves.quality_plot import plot_quality


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


def test_quality_pairs__the_limits_and_the_larger_overlap() -> None:
    found = detections(
        [
            [0, 0, 10, 2],  # a fifth of the first box
            [0, 0, 10, 0.5],  # a twentieth: shows nothing, in no region
            [40, 0, 50, 10],  # six tenths in the ignore region
            [36, 0, 46, 10],  # two tenths
            [70, 0, 80, 10],  # touches two boxes, the second more
        ],
        [0] * 5,
        [0.9, 0.8, 0.7, 0.6, 0.5],
    )
    labelled = sample(
        [[0, 0, 10, 10], [44, 0, 60, 10], [62, 0, 72, 10], [70, 0, 80, 8]], [0] * 4, [False, True, False, False]
    )
    pairs = quality_pairs([found], [labelled])
    np.testing.assert_allclose(pairs.iou, [0.2, 0.8], rtol=1e-6)
    np.testing.assert_allclose(pairs.score, [0.9, 0.5], rtol=1e-6)
    assert pairs.elsewhere == 2


def test_quality_pairs__two_ignore_regions_are_not_one() -> None:
    found = detections([[0, 0, 10, 10]], [0], [0.5])  # four tenths in each
    assert quality_pairs([found], [sample([[0, 0, 4, 10], [6, 0, 10, 10]], [0, 0], [True, True])]).elsewhere == 1


def test_quality_pairs__sigma_is_the_mean_of_four_sides() -> None:
    found = detections([[0, 0, 20, 20]], [0], [0.5])
    found.sigma[:] = [1.0, 2.0, 3.0, 6.0]
    pairs = quality_pairs([found], [sample([[0, 0, 20, 20]], [0], [False])])
    np.testing.assert_allclose(pairs.sigma, [3.0 / 20])


def test_plot_quality__median_and_quartiles_of_each_tenth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed (extra: train)")
    seen: dict[str, list[list[float]]] = {}

    def keep(figure: Any, path: Path) -> Path:
        ax = figure.axes[0]
        seen["line"] = ax.lines[0].get_xydata().tolist()
        seen["band"] = ax.collections[1].get_paths()[0].get_extents().get_points().tolist()
        return path

    monkeypatch.setattr("ptedge.training.curves.quality_plot.save", keep)
    iou = np.array([0.25, 0.25, 0.25, 0.45, 0.45, 1.0, 1.0, 1.0, 0.95, 0.95])  # two are too few for the fourth tenth
    score = np.array([0.1, 0.2, 0.9, 0.5, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0])
    plot_quality([("run", QualityPairs(iou, score, np.zeros(10), 0))], tmp_path / "quality.png")
    np.testing.assert_allclose(seen["line"], [[0.25, 0.2], [0.95, 0.8]])
    np.testing.assert_allclose(seen["band"], [[0.25, 0.15], [0.95, 0.9]])
