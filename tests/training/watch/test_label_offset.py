"""The teacher's offset on labelled frames, with a teacher that is off by a known share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_detector import HEIGHT, WIDTH, write_pictures

from ptedge.data import open_dataset
from ptedge.data.dataset import Dataset
from ptedge.detector.roi_heads import RawDetections
from ptedge.training.watch.label_offset import LabelOffset

CPU = torch.device("cpu")


class Shifted:
    """Finds every labelled box, one tenth of its height too low at the top; the frames come in their order."""

    def __init__(self, few: Dataset) -> None:
        self.samples = [sample for sample in few.samples if len(sample.boxes)]
        self.asked = 0

    def detect(self, images: torch.Tensor) -> list[RawDetections]:
        found: list[RawDetections] = []
        for sample in self.samples[self.asked : self.asked + len(images)]:
            boxes = torch.from_numpy(sample.boxes).clone()
            boxes[:, 1] += 0.1 * (boxes[:, 3] - boxes[:, 1])
            given: dict[str, Any] = dict.fromkeys(RawDetections.__dataclass_fields__, boxes)
            found.append(RawDetections(**{**given, "labels": torch.from_numpy(sample.labels)}))
        self.asked = (self.asked + len(images)) % len(self.samples)
        return found


def test_label_offset__is_measured_at_the_start_and_every_so_many_steps(tmp_path: Path) -> None:
    few = open_dataset(write_pictures(tmp_path, 13, seed=3))  # twelve with a box: two chunks
    offset, teacher = LabelOffset(few, (HEIGHT, WIDTH), 2, CPU), Shifted(few)
    assert offset.offset.tolist() == [0, 0, 0, 0]
    asked: list[int] = []
    detect = teacher.detect
    teacher.detect = lambda images: asked.append(len(images)) or detect(images)  # type: ignore[assignment, func-returns-value]
    offset.measure(teacher)  # type: ignore[arg-type]
    assert asked == [8, 4]
    assert offset.offset.tolist() == pytest.approx([0, 0.1 * 12 / 16, 0, 0], abs=1e-6)
    for _ in range(4):
        offset.after_step(teacher)  # type: ignore[arg-type]
    assert asked == [8, 4] * 3
    again = LabelOffset(few, (HEIGHT, WIDTH), 2, CPU)
    again.load_state_dict(offset.state_dict())
    assert torch.equal(again.offset, offset.offset) and int(again.steps) == 4


def test_label_offset__frames_that_cannot_be_read_are_left_out(tmp_path: Path) -> None:
    few = open_dataset(write_pictures(tmp_path, 3, seed=3))
    (tmp_path / "images" / "000.png").write_bytes(b"no image")
    offset, teacher = LabelOffset(few, (HEIGHT, WIDTH), 1, CPU), Shifted(few.drawn(3, 0))
    teacher.samples = teacher.samples[1:]
    offset.measure(teacher)  # type: ignore[arg-type]
    assert offset.offset[1] == pytest.approx(0.1 / 5)
