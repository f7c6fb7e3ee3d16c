"""The teacher's offset, with models that are off by known shares."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny_detector import HEIGHT, WIDTH, write_pictures

from ptedge.data import open_dataset
from ptedge.detector.roi_heads import RawDetections
from ptedge.frames.index import FrameIndex
from ptedge.training.watch.label_offset import LabelOffset

COLOURS = np.array([[40, 40, 200], [220, 80, 40]])  # RGB of the labels


class Shifted:
    """Sees the coloured rectangle of a picture; its upper side too low by a share of the height."""

    def __init__(self, share: float) -> None:
        self.share = share
        self.asked: list[int] = []

    def detect(self, images: torch.Tensor) -> list[RawDetections]:
        self.asked.append(len(images))
        return [self._find(image.permute(1, 2, 0).numpy()) for image in images]

    def _find(self, image: Any) -> RawDetections:
        boxes, labels = [], []
        for label, colour in enumerate(COLOURS):
            ys, xs = np.nonzero(np.abs(image - colour).sum(axis=2) < 60)
            if len(xs):
                height = ys.max() + 1 - ys.min()
                boxes.append([xs.min(), ys.min() + self.share * height, xs.max() + 1, ys.max() + 1])
                labels.append(label)
        rows = torch.tensor(boxes, dtype=torch.float32).reshape(-1, 4)
        given: dict[str, Any] = dict.fromkeys(RawDetections.__dataclass_fields__, rows)
        return RawDetections(**{**given, "scores": torch.full((len(rows),), 0.9), "labels": torch.tensor(labels)})


@pytest.fixture
def offset(tmp_path: Path) -> LabelOffset:
    """Eight labelled boxes, and eleven frames of which one is gone."""
    few = open_dataset(write_pictures(tmp_path / "few", 9, seed=3))
    images = sorted((write_pictures(tmp_path / "target", 11, seed=4).parent / "images").iterdir())
    images[3].unlink()
    return LabelOffset(few, FrameIndex("t", images), (HEIGHT, WIDTH), every=2, seed=0, device=torch.device("cpu"))


def test_label_offset__of_the_start_and_what_has_moved_since(offset: LabelOffset) -> None:
    start, teacher = Shifted(0.12), Shifted(0.02)
    offset.begin(start)  # type: ignore[arg-type]
    assert int(offset.pairs) == 8
    at_start = 0.12 * 8 / 12
    assert offset.now.tolist() == pytest.approx([0, at_start, 0, 0], abs=1e-6)
    told = offset.signals()
    assert told["label_offset"] == [0, round(at_start, 4), 0, 0]
    assert told["labelled_width_ratio"] == pytest.approx(1.0)
    assert told["labelled_height_ratio"] == pytest.approx(1 / 0.92)  # boxes that begin too low are too short
    start.asked.clear()
    for _ in range(4):
        offset.after_step(teacher, start)  # type: ignore[arg-type]
    assert start.asked == [8, 2] and teacher.asked == [8, 2] * 2  # the start once
    # a tenth of the true height, over the start's box, which is shorter
    assert offset.now.tolist() == pytest.approx([0, at_start - 0.1 / 0.88, 0, 0], abs=1e-6)
    assert torch.equal(offset.of_views, offset.now)
    before = offset.now.clone()
    assert offset.of(start, start).tolist() == pytest.approx([0, at_start, 0, 0], abs=1e-6)  # type: ignore[arg-type]
    assert torch.equal(offset.now, before)  # asking changes nothing


def test_label_offset__goes_on_from_its_state(offset: LabelOffset) -> None:
    start, teacher = Shifted(0.12), Shifted(0.02)
    offset.begin(start)  # type: ignore[arg-type]
    offset.after_step(teacher, start)  # type: ignore[arg-type]
    again = LabelOffset(offset.few, offset.frames, offset.input_size, every=2, seed=0, device=torch.device("cpu"))
    again.load_state_dict(offset.state_dict())
    for one in (offset, again):
        one.after_step(teacher, start)  # type: ignore[arg-type]
    assert torch.equal(again.now, offset.now) and int(again.steps) == 2


def test_label_offset__labelled_frames_that_cannot_be_read_are_left_out(offset: LabelOffset) -> None:
    offset.few.samples[0].path.write_bytes(b"no image")
    offset.begin(Shifted(0.12))  # type: ignore[arg-type]
    assert int(offset.pairs) == 7
    assert offset.now[1] == pytest.approx(0.12 * 7 / 11)
