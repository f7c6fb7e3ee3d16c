"""Results for tests of what writes them."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np

from ptedge.detections import Detections
from ptedge.frames.source import Frame
from ptedge.runtime.sinks.files import Result

NAMES = ("car", "Fußgänger")
FOUND = Detections(
    np.array([[10, 20, 40, 60], [1, 2, 3, 4]], np.float32),
    np.array([0.9, 0.5], np.float32),
    np.array([0, 1]),
    np.array([[1, 2, 3, 4], [0.5, 0.5, 0.5, 0.5]], np.float32),
    np.array([0.25, 0.75], np.float32),
)


def result(index: int = 0, found: Detections = FOUND, file: str | None = None, time: float | None = None) -> Result:
    image = np.full((80, 120, 3), (200, 100, 50), np.uint8)
    return Result(Frame(image, index, time, "here", file), found, NAMES)


def video_frames(path: Path) -> int:
    capture, count = cv2.VideoCapture(str(path)), 0
    while capture.grab():
        count += 1
    capture.release()
    return count
