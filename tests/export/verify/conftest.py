"""Labelled pictures for the tests of the verification."""

from __future__ import annotations

import json
from pathlib import Path

import cv2
import numpy as np
import pytest

SIZE = (96, 128)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Three noisy pictures, each with a labelled car; names as COCO has them."""
    (tmp_path / "images").mkdir()
    images, annotations = [], []
    for i in range(3):
        picture = np.random.default_rng(i).integers(0, 256, (*SIZE, 3), dtype=np.uint8)
        cv2.imwrite(str(tmp_path / "images" / f"{i}.png"), picture)
        images.append({"id": i, "file_name": f"{i}.png", "width": SIZE[1], "height": SIZE[0]})
        box = [10, 10, 40, 30]
        annotations.append({"id": i, "image_id": i, "category_id": 1, "bbox": box, "area": 1200, "iscrowd": 0})
    categories = [{"id": 1, "name": "car"}, {"id": 2, "name": "bus"}]
    path = tmp_path / "data.json"
    path.write_text(json.dumps({"images": images, "annotations": annotations, "categories": categories}))
    return path
