"""A predictor that finds bright squares, and three labelled images with and without one: for tests of evaluation."""

from __future__ import annotations

import json
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from ptedge.detections import Detections

SIGMA = 2.0


class SquareFinder:
    """Finds the bright square of an image, one pixel off to the right; a person where the square is red."""

    class_names = ("car", "person")
    input_size = (64, 96)
    model_hash = "ab" * 32

    def __init__(self) -> None:
        self.closed = False

    def detect(self, image: NDArray[np.uint8]) -> Detections:
        rows, columns = np.nonzero(image[..., 0] > 128)
        if not len(rows):
            return Detections.empty()
        box = [columns.min() + 1, rows.min(), columns.max() + 2, rows.max() + 1]
        red = image[rows[0], columns[0], 1] < 128
        return Detections(
            boxes=np.array([box], np.float32),
            scores=np.array([0.9], np.float32),
            labels=np.array([int(red)], np.int64),
            sigma=np.full((1, 4), SIGMA, np.float32),
            entropy=np.zeros(1, np.float32),
        )

    def close(self) -> None:
        self.closed = True


def write_squares(folder: Path) -> Path:
    """Three images: a car, a person, nothing; category ids with a gap. The label file, COCO."""
    images, annotations = [], []
    for i, (color, category) in enumerate([((255, 255, 255), 3), ((255, 0, 0), 7), (None, 0)], start=1):
        image = np.zeros((60, 80, 3), np.uint8)
        if color is not None:
            image[20:40, 10:50] = color
            box = {"bbox": [10, 20, 40, 20], "area": 800, "iscrowd": 0}
            annotations.append({"id": i, "image_id": i * 10, "category_id": category, **box})
        cv2.imwrite(str(folder / f"{i}.png"), cv2.cvtColor(image, cv2.COLOR_RGB2BGR))
        images.append({"id": i * 10, "file_name": f"{i}.png", "width": 80, "height": 60})
    categories = [{"id": 3, "name": "car"}, {"id": 7, "name": "person"}]
    path = folder / "labels.json"
    path.write_text(json.dumps({"images": images, "annotations": annotations, "categories": categories}))
    return path
