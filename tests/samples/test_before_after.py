from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from ptedge.data.dataset import Sample
from ptedge.detections import Detections
from ptedge.drawing.draw import ADAPTED_COLOR, TRUTH_COLOR
from ptedge.samples import before_after as module
from ptedge.samples.before_after import GAP, WIDTH, count_found, draw_before_and_after, draw_panel
from ptedge.samples.scenes import CLASS_NAMES, DOMAINS
from ptedge.samples.write import write_coco

BOX = np.array([[100, 60, 160, 110]], np.float32)


class Found:
    """A model that always finds the same."""

    class_names = CLASS_NAMES
    input_size = (192, 320)
    model_hash = ""

    def __init__(self, scores: list[float]) -> None:
        n = len(scores)
        boxes, sigma = np.repeat(BOX, n, axis=0), np.full((n, 4), 3, np.float32)
        self.found = Detections(
            boxes, np.array(scores, np.float32), np.zeros(n, np.int64), sigma, np.zeros(n, np.float32)
        )

    def detect(self, image: NDArray[np.uint8]) -> Detections:
        return self.found

    def close(self) -> None:
        pass


def sample(folder: Path, boxes: NDArray[np.float32], ignore: list[bool]) -> Sample:
    path = folder / "street.png"
    cv2.imwrite(str(path), np.full((192, 320, 3), 90, np.uint8))
    return Sample(path, 320, 192, boxes, np.zeros(len(boxes), np.int64), np.array(ignore), 0)


def test_draw_panel__counts_what_is_found_of_what_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(module, "_heading", lambda text, panel: said.append(text) or panel[:1])
    two = np.concatenate([BOX, BOX + 100, BOX + 40])
    labels = sample(tmp_path, two, [False, False, True])
    draw_panel(Found([0.9]), "after", ADAPTED_COLOR, labels)
    draw_panel(Found([0.4]), "before", ADAPTED_COLOR, labels)  # not sure enough to be drawn
    assert said == ["after: 1 of 2 found, 0 wrong", "before: 0 of 2 found, 0 wrong"]


def test_count_found__counts_hits_and_what_is_of_nothing(tmp_path: Path) -> None:
    labels = sample(tmp_path, np.concatenate([BOX, BOX + 100]), [False, True])
    boxes = np.concatenate([BOX, BOX + 1, BOX + 100, BOX])  # a hit, the same again, one to ignore, another class
    scores, classes = np.array([0.9, 0.8, 0.7, 0.6], np.float32), np.array([0, 0, 0, 1])
    found = Detections(boxes, scores, classes, np.ones((4, 4), np.float32), np.zeros(4, np.float32))
    assert count_found(found, labels, 2) == (1, 2)
    assert count_found(Detections.empty(), labels, 2) == (0, 0)


def test_draw_panel__shows_labels_boxes_and_bands(tmp_path: Path) -> None:
    apart = np.array([[20, 20, 50, 40]], np.float32)
    panel = draw_panel(
        Found([0.9]), "after", ADAPTED_COLOR, sample(tmp_path, np.concatenate([BOX, apart]), [False] * 2)
    ).picture
    height, width, _ = panel.shape
    scale = WIDTH / 320
    assert width == WIDTH
    top = height - round(192 * scale)  # of the picture, under the heading
    side = panel[top + round(85 * scale), round(100 * scale)]
    beside = panel[top + round(85 * scale), round(98 * scale)].astype(int)
    missed = panel[top + round(30 * scale), round(20 * scale)]
    assert tuple(side) == ADAPTED_COLOR
    assert tuple(missed) == TRUTH_COLOR
    assert beside[2] > beside[0] + 20  # a band in the colour of the box, over grey
    assert beside[2] < ADAPTED_COLOR[2]


def test_draw_before_and_after__pairs_spread_over_all_and_a_sheet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_coco(tmp_path / "val", DOMAINS["fog"], count=5, seed=2, width=160, height=96)
    monkeypatch.setattr(module, "open_predictor", lambda path: Found([0.9] if path == Path("after") else []))
    files = draw_before_and_after(tmp_path, Path("before"), Path("after"), tmp_path / "val" / "annotations.json", 3)
    assert [file.relative_to(tmp_path).as_posix() for file in files] == [
        "before_after.jpg",
        *(f"pictures/00000{i}.jpg" for i in (0, 2, 4)),
    ]
    sheet, pair = (cv2.imread(str(file)) for file in files[:2])
    assert sheet is not None and pair is not None
    assert pair.shape[1] == sheet.shape[1] == 2 * WIDTH + GAP
    assert sheet.shape[0] == 3 * pair.shape[0]
