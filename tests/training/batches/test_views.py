"""Views: boxes follow the picture, padding stays the mean, weak and strong views belong together."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest
import torch
from batch_inputs import MEAN, OFF, SIZE, generator, picture
from tiny_detector import HEIGHT, WIDTH

from ptedge.data import open_dataset
from ptedge.data.dataset import Dataset, Sample
from ptedge.frames.source import index_frames
from ptedge.training.batches.augment import AugmentConfig, move_boxes
from ptedge.training.batches.foreign_file import NO_BOXES, FoundBoxes
from ptedge.training.batches.views import SourceViews, TargetViews, collate_target


def test_source_views__boxes_follow_the_picture(source_data: Path) -> None:
    views = SourceViews(open_dataset(source_data), SIZE, AugmentConfig(**{**OFF, "zoom": (0.5, 1.0)}))
    colours = np.array([[40, 40, 200], [220, 80, 40]])  # RGB of the labels
    for seed in range(4):
        for index in range(5):
            image, targets = views(index, generator(seed))
            x1, y1, x2, y2 = targets.boxes[0].tolist()
            distance = np.abs(image.astype(int) - colours[int(targets.labels[0])]).sum(axis=2)
            ys, xs = np.nonzero(distance < 60)
            assert (xs.min(), xs.max() + 1) == pytest.approx((x1, x2), abs=1.01)
            assert (ys.min(), ys.max() + 1) == pytest.approx((y1, y2), abs=1.01)
    assert len(views(5, generator())[1].boxes) == 0  # the picture without objects


def test_source_views__small_and_ignored_boxes_become_regions(tmp_path: Path) -> None:
    cv2.imwrite(str(tmp_path / "a.png"), picture(128, 192))
    boxes = np.array([[0, 0, 40, 40], [60, 60, 61, 90], [100, 10, 150, 60]], np.float32)
    sample = Sample(tmp_path / "a.png", 192, 128, boxes, np.array([1, 0, -1]), np.array([False, False, True]), 0)
    views = SourceViews(Dataset(tmp_path, "coco", ("a", "b"), (sample,)), SIZE, None)
    image, targets = views(0, generator(3))
    assert image.shape == (64, 96, 3)
    flipped = float(torch.rand((), generator=generator(3))) < 0.5
    assert targets.boxes.tolist() == ([[76, 0, 96, 20]] if flipped else [[0, 0, 20, 20]])  # half the size
    assert targets.labels.tolist() == [1]
    assert len(targets.ignore) == 2  # half a pixel wide, and ignored by the data


@pytest.mark.parametrize("shape", [(64, 48), (32, 96), (100, 400)])
def test_views__padding_stays_the_mean(tmp_path: Path, shape: tuple[int, int]) -> None:
    cv2.imwrite(str(tmp_path / "a.png"), picture(*shape))
    frames = index_frames(tmp_path)
    config = AugmentConfig(jitter=1.0, grayscale=1.0, blur=1.0, solarize=1.0)
    scale = min(64 / shape[0], 96 / shape[1])
    height, width = round(shape[0] * scale), round(shape[1] * scale)
    for seed in range(4):
        weak, strong, zoom, _ = TargetViews(frames, SIZE, config)(0, generator(seed))
        inside = [
            max(zoom[1], 0),
            max(zoom[2], 0),
            min(zoom[0] * width + zoom[1], width),
            min(zoom[0] * height + zoom[2], height),
        ]
        assert zoom[3:].tolist() == pytest.approx(inside)
        for view in (weak, strong):
            assert (view[height:] == MEAN).all() and (view[:, width:] == MEAN).all()
        assert (zoom[0] * width / 2 + zoom[1], zoom[0] * height / 2 + zoom[2]) == pytest.approx(
            (width / 2, height / 2), abs=1e-3
        )


def test_target_views__both_views_have_the_same_flip(tmp_path: Path) -> None:
    image = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
    image[:, :20] = 255
    cv2.imwrite(str(tmp_path / "a.png"), image)
    views = TargetViews(index_frames(tmp_path), SIZE, AugmentConfig(**OFF))
    sides = set()
    for seed in range(8):
        weak, strong, zoom, _ = views(0, generator(seed))
        np.testing.assert_array_equal(weak, strong)
        assert zoom.tolist() == [1, 0, 0, 0, 0, WIDTH, HEIGHT]  # the picture fills the input
        sides.add(bool(weak[0, 0, 0] == 255))
    assert sides == {True, False}


def test_target_views__a_weak_box_moved_covers_the_object_in_the_strong_view(tmp_path: Path) -> None:
    image = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
    image[20:40, 10:50] = 255
    cv2.imwrite(str(tmp_path / "a.png"), image)
    config = AugmentConfig(**{**OFF, "zoom": (0.5, 0.9)})
    for seed in range(5):
        weak, strong, zoom, _ = TargetViews(index_frames(tmp_path), SIZE, config)(0, generator(seed))
        columns = np.flatnonzero(weak[30, :, 0] == 255)
        box = np.array([[columns[0], 20, columns[-1] + 1, 40]], np.float32)
        x1, y1, x2, y2 = move_boxes(box, zoom[:3])[0]
        white = strong[..., 0] > 192
        assert white[round((y1 + y2) / 2), round(x1 + 1) : round(x2 - 1)].all()
        ys, xs = np.nonzero(white)
        assert (xs.min(), xs.max() + 1) == pytest.approx((x1, x2), abs=1)
        assert (ys.min(), ys.max() + 1) == pytest.approx((y1, y2), abs=1)


def test_target_views__foreign_boxes_go_with_the_frame(tmp_path: Path) -> None:
    white = np.zeros((128, 192, 3), np.uint8)  # twice the input
    white[40:80, 20:100] = 255
    for name in ("a.png", "b.png"):
        cv2.imwrite(str(tmp_path / name), white)
    box = np.array([[20, 40, 100, 80]], np.float32)
    found = FoundBoxes(box, np.array([0.5], np.float32), np.array([1]))
    views = TargetViews(index_frames(tmp_path), SIZE, AugmentConfig(**OFF), (NO_BOXES, found))
    assert len(views(0, generator())[3]) == 0
    corners = set()
    for seed in range(8):
        weak, _, _, foreign = views(1, generator(seed))
        x1, y1, x2, y2 = foreign.boxes[0].tolist()
        columns = np.flatnonzero(weak[30, :, 0] > 127)
        assert (columns[0], columns[-1] + 1) == pytest.approx((x1, x2), abs=1)
        assert (y1, y2) == (20, 40) and foreign.scores.tolist() == [0.5] and foreign.labels.tolist() == [1]
        corners.add(x1)
    assert corners == {10, 46}
    batch = collate_target([views(0, generator()), views(1, generator())])
    assert [len(boxes) for boxes in batch.foreign] == [0, 1]
