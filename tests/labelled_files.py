"""Small labelled data for tests: files, images of one colour, and boxes as plain lists."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np

from ptedge.data import Dataset


def image(path: Path, width: int = 100, height: int = 80) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    assert cv2.imwrite(str(path), np.zeros((height, width, 3), np.uint8))
    return path


def text(path: Path, content: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, "utf-8")
    return path


def rows(dataset: Dataset, i: int = 0) -> list[tuple[list[float], int, bool]]:
    sample = dataset.samples[i]
    assert sample.boxes.dtype == np.float32 and sample.boxes.shape == (len(sample.labels), 4)
    assert sample.labels.dtype == np.int64 and sample.ignore.dtype == np.bool_
    return list(zip(sample.boxes.tolist(), sample.labels.tolist(), sample.ignore.tolist(), strict=True))
