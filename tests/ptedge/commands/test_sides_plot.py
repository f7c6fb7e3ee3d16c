"""What the picture of ``ptedge eval`` shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from ptedge.commands.sides_plot import plot_sides
from ptedge.data.dataset import Dataset, Sample
from ptedge.detections import Detections
from ptedge.scores.evaluation import EvaluationResult, score_detections


def result(shifts: list[float], sigma: float = 20.0) -> EvaluationResult:
    """Boxes of 100 x 100 pixels, so many pixels too far right."""
    count = len(shifts)
    truth = np.array([[0, 200 * i, 100, 200 * i + 100] for i in range(count)], np.float32).reshape(-1, 4)
    move = np.array([[s, 0, s, 0] for s in shifts], np.float32).reshape(-1, 4)
    labels = np.zeros(count, np.int64)
    sample = Sample(Path("a.png"), 400, 200 * count + 200, truth, labels, np.zeros(count, np.bool_), 0)
    scores = np.full(count, 0.9, np.float32)
    found = Detections(truth + move, scores, labels, np.full((count, 4), sigma, np.float32), np.zeros_like(scores))
    return score_detections([found], Dataset(Path("d"), "coco", ("car",), (sample,)))


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed (extra: train)")
    drawn: list[Any] = []
    monkeypatch.setattr("ptedge.commands.sides_plot.save", lambda figure, path: drawn.append(figure) or path)
    return drawn


def test_plot_sides__is_a_picture(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed (extra: train)")
    path = tmp_path / "sides.png"
    assert plot_sides(result([10, 20, 30]), "Sides", path) == path
    assert cv2.imread(str(path)).shape[1] > 1000


def test_plot_sides__offsets_coverage_and_ap(figures: list[Any], tmp_path: Path) -> None:
    plot_sides(result([10, 20, 30]), "Sides", tmp_path / "x.png")
    errors, coverage, precision = figures[0].axes
    assert [text.get_text() for text in errors.texts] == ["+20.0 %", "+0.0 %", "+20.0 %", "+0.0 %"]
    _, before, after = (line.get_ydata().tolist() for line in coverage.lines)
    # sigma 20: y sides are exact, x sides 10, 20 and 30 off; without the offset -10, 0 and 10
    assert before == pytest.approx([400 / 6, 400 / 6, 100, 100])
    assert after == [100, 100, 100, 100]
    # IoU 0.82, 0.67, 0.54, and 0.82, 1, 0.82 without the offset; scores are equal, so precision falls in this order
    assert [bar.get_height() for bar in precision.patches][:2] == pytest.approx([1.0, 1 / 3])
    assert [bar.get_height() for bar in precision.patches][3:5] == pytest.approx([1.0, 1.0])


def test_plot_sides__one_pair_has_no_spread(figures: list[Any], tmp_path: Path) -> None:
    plot_sides(result([10]), "Sides", tmp_path / "x.png")
    told = [text.get_text() for text in figures[0].axes[0].get_legend().texts]
    assert told == ["one box", "sigma, around the offset", "offset (median)"]


def test_plot_sides__without_sigma_says_so(figures: list[Any], tmp_path: Path) -> None:
    plot_sides(result([10, 20], sigma=0.0), "Sides", tmp_path / "x.png")
    assert [text.get_text() for text in figures[0].axes[1].texts] == ["this model gives no sigma"]


def test_plot_sides__nothing_to_draw(tmp_path: Path) -> None:
    assert plot_sides(result([]), "Sides", tmp_path / "x.png") is None
    assert not (tmp_path / "x.png").exists()
