"""Corrupted sets joined with labels, under a stand-in for the model whose errors grow with the corruption."""

from pathlib import Path

import numpy as np
import pytest
from made_answers import found
from tiny_detector import CLASS_NAMES, write_pictures

from ptedge.data import open_dataset
from ptedge.detector.model import ProbabilisticFasterRCNN
from ptedge.frames.source import index_frames
from ptedge.scores.label_free import Answers
from ptedge.training.estimate import sets as sets_module
from ptedge.training.estimate.corruptions import Corruption
from ptedge.training.estimate.sets import learn, look_at_frames


def test_learn__larger_errors_are_larger_scales(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: ProbabilisticFasterRCNN
) -> None:
    dataset = open_dataset(write_pictures(tmp_path, 13), class_names=CLASS_NAMES)
    rng = np.random.default_rng(0)
    given: list[tuple[np.ndarray, float]] = []

    def corrupt(image: np.ndarray, boxes: np.ndarray, corruption: Corruption, _: object) -> tuple[object, object]:
        given.append((boxes, corruption.strength))
        return image, boxes

    def look_twice(_model: object, image: np.ndarray, content: tuple[int, int]) -> Answers:
        assert image.shape == (64, 96, 3) and content == (64, 96)
        boxes, error = given[-1]
        rows = [(0.9 - error / 8, k % 2, (box + rng.normal(0, error, 4)).tolist()) for k, box in enumerate(boxes)]
        again = [(0.9, k % 2, (box + rng.normal(0, error, 4)).tolist()) for k, box in enumerate(boxes)]
        plain = found(*rows)
        return Answers(plain, plain, found(*again))

    monkeypatch.setattr(sets_module, "corrupt", corrupt)
    monkeypatch.setattr(sets_module, "look_twice", look_twice)
    kinds = [Corruption(kind, error) for kind in ("blur", "noise", "dark", "haze") for error in (0.5, 1.0, 2.0)]
    told: list[tuple[int, int]] = []
    fit = learn(model, dataset, 12, 0, sets=kinds, progress=lambda *at: told.append(at))
    assert (fit.sets, fit.images, told[-1]) == (12, 144, (12, 12))
    # sigma is 1: disagreement is error^2, and the scale is the error, the root of it
    assert all(0.25 < side.slopes[0] < 0.6 for side in fit.sides)


def test_look_at_frames__unreadable_ones_are_told(
    target_frames: Path, tmp_path: Path, model: ProbabilisticFasterRCNN
) -> None:
    for path in target_frames.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "000.png").write_bytes(b"no picture")
    signs, skipped = look_at_frames(model.eval(), index_frames(tmp_path), 10, 0)
    assert signs.frames == 4
    assert [Path(name).name for name in skipped] == ["000.png"]
    few, _ = look_at_frames(model, index_frames(target_frames), 2, 0)
    assert few.frames == 2
