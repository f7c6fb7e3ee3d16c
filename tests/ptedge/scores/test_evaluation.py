from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest
from square_finder import SquareFinder, write_squares

from ptedge.data import open_dataset
from ptedge.data.dataset import Dataset
from ptedge.errors import ClassMismatchError, InputError
from ptedge.scores.evaluation import evaluate_model


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_squares(tmp_path)


def test_evaluate_model__scores_and_judges_sigma(data: Path) -> None:
    seen: list[tuple[int, int]] = []
    dataset = open_dataset(data, class_names=("car", "person"))
    got = evaluate_model(SquareFinder(), dataset, lambda done, total: seen.append((done, total)))
    assert (got.metrics.images, got.metrics.boxes) == (3, 2)
    # the box is 40 wide and 1 off: IoU 39/41 = 0.951, right at every threshold up to 0.95
    assert (got.metrics.ap50, got.metrics.ap75, got.metrics.ap) == (1.0, 1.0, 1.0)
    assert got.sigma.matches == 2
    assert got.sigma.coverage_1 == 1.0
    assert got.sigma.rmse == pytest.approx(0.5**0.5)
    # one pixel of 40 to the right, and nothing left once that is taken away
    assert got.sides.offset == pytest.approx([0.025, 0, 0.025, 0])
    assert got.offset_removed.ap == 1.0 and len(got.matches) == 2
    assert [len(found) for found in got.detections] == [1, 1, 0]
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_evaluate_model__corrupt_or_missing_image_is_named(data: Path) -> None:
    dataset = open_dataset(data, class_names=("car", "person"))
    (data.parent / "2.png").write_bytes(b"no image")
    with pytest.raises(InputError, match=r"2\.png"):
        evaluate_model(SquareFinder(), dataset)
    (data.parent / "2.png").unlink()
    with pytest.raises(InputError, match=r"2\.png"):
        evaluate_model(SquareFinder(), dataset)


def test_evaluate_model__image_of_another_size_is_refused(data: Path) -> None:
    dataset = open_dataset(data, class_names=("car", "person"))
    cv2.imwrite(str(data.parent / "3.png"), np.zeros((30, 40, 3), np.uint8))
    with pytest.raises(InputError, match=r"3\.png is 40 x 30, but its labels are for 80 x 60"):
        evaluate_model(SquareFinder(), dataset)


def test_evaluate_model__other_classes_are_refused(data: Path) -> None:
    dataset = open_dataset(data)
    finder = SquareFinder()
    finder.class_names = ("person", "car")
    with pytest.raises(ClassMismatchError):
        evaluate_model(finder, dataset)


def test_evaluate_model__no_images(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no images"):
        evaluate_model(SquareFinder(), Dataset(tmp_path, "coco", ("car", "person"), ()))
