"""The second view and the way back."""

import numpy as np
import pytest
import torch
from made_answers import found

from ptedge.backends.checkpoint_predictor import to_detections
from ptedge.detector.model import ProbabilisticFasterRCNN
from ptedge.training.estimate.views import look_twice, second_view, undo_second


def test_second_view__mirrored_smaller_and_in_the_corner() -> None:
    image = np.zeros((100, 200, 3), np.uint8)
    image[20:60, 10:50] = 255  # near the left edge of a picture that fills 180 of 200 columns
    other, scales = second_view(image, (100, 180))
    assert scales == (pytest.approx(0.9), pytest.approx(0.9))
    rows, columns = np.nonzero(other[:90, :162, 0] > 128)
    assert (rows.min(), rows.max() + 1) == (18, 54)
    assert (columns.min(), columns.max() + 1) == (117, 153)  # 0.9 * (180 - 50), 0.9 * (180 - 10)
    assert other[95, 5].tolist() == other[5, 195].tolist() == [124, 116, 104]  # the mean colour


def test_undo__box_and_sigma_come_back_and_sides_change_places() -> None:
    seen = found((0.9, 0, [117, 18, 153, 54]), (0.8, 0, [163, 10, 170, 20]))
    sigma = np.array([[1, 2, 3, 4]] * 2, np.float32)
    back = undo_second(type(seen)(seen.boxes, seen.scores, seen.labels, sigma, seen.entropy), (100, 180), (0.9, 0.9))
    assert back.boxes.tolist() == [pytest.approx([10, 20, 50, 60], abs=1e-4)]  # the other lay beside the picture
    assert back.sigma[0].tolist() == pytest.approx([3 / 0.9, 2 / 0.9, 1 / 0.9, 4 / 0.9])


def test_look_twice__the_plain_view_is_what_the_model_detects(model: ProbabilisticFasterRCNN) -> None:
    model.eval()
    image = np.random.default_rng(0).integers(0, 256, (64, 96, 3), dtype=np.uint8)
    answers = look_twice(model, image, (64, 96))
    expected = to_detections(model.detect(torch.from_numpy(image).permute(2, 0, 1)[None])[0])
    assert len(expected) > 1
    for name in ("boxes", "scores", "labels", "sigma", "entropy"):
        assert np.allclose(getattr(answers.plain, name), getattr(expected, name), atol=1e-4), name
    assert len(answers.candidates) > len(answers.plain)
    assert len(answers.second) > 0
