"""Average precision and sigma of a bundle on labelled data, by hand."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import cv2
import numpy as np
import pytest

from ptedge.data.dataset import Dataset, Sample
from ptedge.detections import Detections
from ptedge.errors import InputError
from ptedge.export.verify.labelled import answer_data, compare_data, open_labelled
from ptedge.export.verify.limits import FP16, FP32, INT8
from ptedge.scores.evaluation import EvaluationResult


def dataset_of(path: Path, boxes: list[list[float]]) -> Dataset:
    cv2.imwrite(str(path), np.zeros((64, 64, 3), np.uint8))
    labels, ignore = np.zeros(len(boxes), np.int64), np.zeros(len(boxes), bool)
    sample = Sample(
        image_id="0", path=path, width=64, height=64, boxes=np.array(boxes, np.float32), labels=labels, ignore=ignore
    )
    return Dataset(class_names=("car",), samples=(sample,), root=path.parent, format="test")


def answer(dataset: Dataset, boxes: list[list[float]], sigma: float) -> EvaluationResult:
    n = len(boxes)
    found = Detections(
        np.array(boxes, np.float32),
        np.full(n, 0.9, np.float32),
        np.zeros(n, np.int64),
        np.full((n, 4), sigma, np.float32),
        np.zeros(n, np.float32),
    )
    return answer_data(lambda images: [found], dataset, (64, 64), (1.0, 1.0, 1.0, 1.0))


def test_compare_data__ap_and_coverage_by_hand(tmp_path: Path) -> None:
    truth = [[0.0, 0, 20, 20], [40, 40, 60, 60]]
    dataset = dataset_of(tmp_path / "a.png", truth)
    exact = answer(dataset, truth, 1.0)
    one = answer(dataset, truth[:1], 1.0)
    assert (exact.metrics.ap50, one.metrics.ap50) == (1.0, 0.5)
    found = compare_data(exact, one, INT8)
    assert not found.passed
    assert "AP50 0.5000 (-0.5000)" in str(found)
    assert compare_data(exact, exact, FP32).passed
    # a side that is off by 2 with sigma 1.9 lies outside 1 sigma, with sigma 2.1 within
    shifted = [[2.0, 2, 22, 22], [42, 42, 62, 62]]
    narrow, wide = answer(dataset, shifted, 1.9), answer(dataset, shifted, 2.1)
    assert (narrow.sigma.coverage_1, wide.sigma.coverage_1) == (0.0, 1.0)
    assert not compare_data(narrow, wide, INT8).passed


def test_compare_data__more_ap_is_no_fault(tmp_path: Path) -> None:
    truth = [[0.0, 0, 20, 20], [40, 40, 60, 60]]
    dataset = dataset_of(tmp_path / "a.png", truth)
    few, all_of_them = answer(dataset, truth[:1], 1.0), answer(dataset, truth, 1.0)
    limits = dataclasses.replace(FP16, matched=0.5)
    assert compare_data(few, all_of_them, limits).passed
    assert not compare_data(all_of_them, few, limits).passed


def test_open_labelled__refuses_data_without_boxes(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    cv2.imwrite(str(tmp_path / "images" / "a.png"), np.zeros((8, 8, 3), np.uint8))
    document = {
        "images": [{"id": 0, "file_name": "a.png", "width": 8, "height": 8}],
        "annotations": [],
        "categories": [{"id": 1, "name": "car"}],
    }
    (tmp_path / "data.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match="no labelled box"):
        open_labelled(tmp_path / "data.json", ("car",), None)
