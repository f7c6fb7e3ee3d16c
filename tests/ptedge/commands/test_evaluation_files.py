from __future__ import annotations

from pathlib import Path

import numpy as np
from square_finder import SquareFinder

from ptedge.commands.evaluation_files import draw_comparison, worst_images
from ptedge.data.dataset import Dataset, Sample
from ptedge.detections import Detections


def make_sample(boxes: list[list[float]]) -> Sample:
    count = len(boxes)
    return Sample(
        path=Path("x.jpg"),
        width=80,
        height=60,
        boxes=np.array(boxes, np.float32).reshape(-1, 4),
        labels=np.zeros(count, np.int64),
        ignore=np.zeros(count, np.bool_),
        image_id=0,
    )


def test_worst_images__misses_and_sure_false_alarms_count() -> None:
    found = SquareFinder().detect(np.full((60, 80, 3), 255, np.uint8))
    right = make_sample([[1, 0, 80, 60]])
    dataset = Dataset(Path("d"), "coco", ("car",), (right, make_sample([]), make_sample([[0, 0, 5, 5]]), right))
    # right; false alarm; false alarm and miss; right
    assert worst_images([found] * 4, dataset) == [2, 1, 0, 3]


def test_draw_comparison__shows_labels_without_detections() -> None:
    image = np.zeros((60, 80, 3), np.uint8)
    drawn = draw_comparison(image, Detections.empty(), make_sample([[10, 10, 40, 40]]), ("car",))
    assert drawn[10, 25].tolist() == [255, 255, 255]
    assert not image.any()
