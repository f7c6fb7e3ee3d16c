"""Views and batches: geometry by hand, and the same step always sees the same pictures."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from tiny_detector import HEIGHT, WIDTH, write_pictures

from ptedge.data import open_dataset
from ptedge.data.dataset import Dataset, Sample
from ptedge.errors import TrainingError
from ptedge.frames.source import index_frames
from ptedge.preprocess import PIXEL_MEAN
from ptedge.training.batches.augment import AugmentConfig, apply_zoom, draw_zoom, flip, move_boxes, strong_colour
from ptedge.training.batches.views import (
    Batch,
    SourceViews,
    StepBatches,
    TargetViews,
    collate_source,
    collate_target,
    draw_index,
    step_generator,
)

MEAN = np.round(PIXEL_MEAN).astype(np.uint8)
OFF: dict[str, Any] = {"jitter": 0.0, "grayscale": 0.0, "blur": 0.0, "solarize": 0.0, "zoom": (1.0, 1.0)}
SIZE = (HEIGHT, WIDTH)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def picture(height: int = HEIGHT, width: int = WIDTH) -> NDArray[np.uint8]:
    return np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8)


def test_flip__by_hand() -> None:
    image = picture(4, 10)
    mirrored, boxes = flip(image, np.array([[1, 0, 4, 2], [0, 1, 10, 3]], np.float32))
    np.testing.assert_array_equal(mirrored[:, 0], image[:, 9])
    assert boxes.tolist() == [[6, 0, 9, 2], [0, 1, 10, 3]]
    again, back = flip(mirrored, boxes)
    np.testing.assert_array_equal(again, image)
    assert back.tolist() == [[1, 0, 4, 2], [0, 1, 10, 3]]
    assert flip(image, np.zeros((0, 4), np.float32))[1].shape == (0, 4)


def test_draw_zoom__is_about_the_centre() -> None:
    config = AugmentConfig(**{**OFF, "zoom": (0.5, 0.9)})
    scales = []
    for seed in range(50):
        scale, dx, dy = draw_zoom(100, 60, config, generator(seed)).tolist()
        assert (scale * 50 + dx, scale * 30 + dy) == pytest.approx((50, 30), abs=1e-4)
        scales.append(scale)
    assert min(scales) >= 0.5 and max(scales) <= 0.9 and max(scales) - min(scales) > 0.3


@pytest.mark.parametrize("scale", [0.5, 0.75, 0.9])
def test_apply_zoom__a_white_rectangle_lands_where_its_box_goes(scale: float) -> None:
    image = np.zeros((80, 120, 3), np.uint8)
    box = np.array([[24, 16, 72, 56]], np.float32)
    image[16:56, 24:72] = 255
    zoom = np.array([scale, (1 - scale) * 60, (1 - scale) * 40], np.float32)
    shown = apply_zoom(image, zoom)[..., 0].astype(np.float64) / 255
    x1, y1, x2, y2 = move_boxes(box, zoom)[0]
    row, column = round((y1 + y2) / 2), round((x1 + x2) / 2)
    inside = (slice(row, row + 1), slice(round((1 - scale) * 60) + 3, round((1 + scale) * 60) - 3))
    # coverage along the middle row and column: its sum is the side, its centre of mass the middle of the box
    across = shown[inside][0]
    assert across.sum() == pytest.approx(x2 - x1, abs=0.3)
    positions = np.arange(inside[1].start, inside[1].stop) + 0.5
    assert (across * positions).sum() / across.sum() == pytest.approx((x1 + x2) / 2, abs=0.15)
    down = shown[round((1 - scale) * 40) + 3 : round((1 + scale) * 40) - 3, column]
    assert down.sum() == pytest.approx(y2 - y1, abs=0.3)


def test_apply_zoom__the_border_is_the_mean() -> None:
    out = apply_zoom(picture(), np.array([0.5, 24, 16], np.float32))
    assert (out[:14] == MEAN).all() and (out[50:] == MEAN).all()
    assert (out[:, :22] == MEAN).all() and (out[:, 74:] == MEAN).all()
    assert not (out[20:40, 30:60] == MEAN).all()


def test_apply_zoom__scale_one_changes_nothing() -> None:
    image = picture()
    np.testing.assert_array_equal(apply_zoom(image, np.array([1, 0, 0], np.float32)), image)


def test_strong_colour__all_off_changes_nothing() -> None:
    np.testing.assert_array_equal(strong_colour(picture(), AugmentConfig(**OFF), generator()), picture())


def test_strong_colour__solarize_and_grayscale_by_hand() -> None:
    image = np.array([[[10, 127, 128], [255, 200, 0]]], np.uint8)
    solarized = strong_colour(image, AugmentConfig(**{**OFF, "solarize": 1.0}), generator())
    assert solarized.tolist() == [[[10, 127, 127], [0, 55, 0]]]
    gray = strong_colour(image, AugmentConfig(**{**OFF, "grayscale": 1.0}), generator())
    expected = image @ np.array([0.299, 0.587, 0.114])  # the luma of RGB
    np.testing.assert_allclose(gray, np.repeat(expected[..., None], 3, axis=2), atol=1)


def test_strong_colour__follows_the_generator_alone() -> None:
    config = AugmentConfig(jitter=1.0, grayscale=0.5, blur=1.0, solarize=0.5)
    first = strong_colour(picture(), config, generator(1))
    torch.manual_seed(5)
    np.random.seed(5)
    np.testing.assert_array_equal(strong_colour(picture(), config, generator(1)), first)
    assert (strong_colour(picture(), config, generator(2)) != first).any()
    assert first.shape == (HEIGHT, WIDTH, 3) and first.dtype == np.uint8


def test_draw_index__every_image_once_an_epoch() -> None:
    first = [draw_index(i, 7, 3, 0) for i in range(7)]
    second = [draw_index(i, 7, 3, 0) for i in range(7, 14)]
    assert sorted(first) == sorted(second) == list(range(7))
    assert first != second
    assert first != [draw_index(i, 7, 3, 1) for i in range(7)]


def test_step_generator__streams_and_steps_differ() -> None:
    def draw(*key: int) -> float:
        return float(torch.rand((), generator=step_generator(*key)))

    values = {draw(seed, stream, step) for seed in (0, 1) for stream in (0, 1) for step in (0, 1)}
    assert len(values) == 8
    assert draw(0, 1, 5) == draw(0, 1, 5)


def _source(path: Path, first_step: int = 0, workers: int = 0, steps: int = 4) -> list[Batch]:
    dataset = open_dataset(path)
    views = SourceViews(dataset, SIZE, AugmentConfig())
    batches = StepBatches(
        len(dataset), views, collate_source, batch_size=2, steps=steps, seed=1, stream=0, first_step=first_step
    )
    return list(batches.loader(workers))


def _same(a: Batch, b: Batch) -> bool:
    return torch.equal(a.images, b.images) and all(
        torch.equal(x.boxes, y.boxes) and torch.equal(x.labels, y.labels)
        for x, y in zip(a.targets, b.targets, strict=True)
    )


def test_step_batches__depend_on_the_step_alone(source_data: Path) -> None:
    straight = _source(source_data)
    assert [tuple(batch.images.shape) for batch in straight] == [(2, 3, 64, 96)] * 4
    resumed = _source(source_data, first_step=2)
    assert len(resumed) == 2
    assert all(_same(a, b) for a, b in zip(straight[2:], resumed, strict=True))
    assert not _same(straight[0], straight[1])


def test_step_batches__workers_change_nothing(source_data: Path) -> None:
    pairs = zip(_source(source_data, steps=2), _source(source_data, steps=2, workers=1), strict=True)
    assert all(_same(a, b) for a, b in pairs)


def _ignores_interrupts(index: int, generator: torch.Generator) -> list[bool]:
    return [signal.getsignal(number) is signal.SIG_IGN for number in (signal.SIGINT, signal.SIGTERM)]


def _signals_batch(entries: list[list[bool]]) -> Batch:
    return Batch(torch.tensor(entries))


def test_loader__workers_leave_interrupts_to_the_main_process() -> None:
    # Ctrl-C reaches every process of the terminal: a worker that dies of it takes the orderly stop away
    batches = StepBatches(1, _ignores_interrupts, _signals_batch, batch_size=1, steps=1, seed=0, stream=0)
    assert next(batches.loader(1)).images.tolist() == [[True, True]]


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
        weak, strong, zoom = TargetViews(frames, SIZE, config)(0, generator(seed))
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
        weak, strong, zoom = views(0, generator(seed))
        np.testing.assert_array_equal(weak, strong)
        assert zoom.tolist() == [1, 0, 0]
        sides.add(bool(weak[0, 0, 0] == 255))
    assert sides == {True, False}


def test_target_views__a_weak_box_moved_covers_the_object_in_the_strong_view(tmp_path: Path) -> None:
    image = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
    image[20:40, 10:50] = 255
    cv2.imwrite(str(tmp_path / "a.png"), image)
    config = AugmentConfig(**{**OFF, "zoom": (0.5, 0.9)})
    for seed in range(5):
        weak, strong, zoom = TargetViews(index_frames(tmp_path), SIZE, config)(0, generator(seed))
        columns = np.flatnonzero(weak[30, :, 0] == 255)
        box = np.array([[columns[0], 20, columns[-1] + 1, 40]], np.float32)
        x1, y1, x2, y2 = move_boxes(box, zoom)[0]
        white = strong[..., 0] > 192
        assert white[round((y1 + y2) / 2), round(x1 + 1) : round(x2 - 1)].all()
        ys, xs = np.nonzero(white)
        assert (xs.min(), xs.max() + 1) == pytest.approx((x1, x2), abs=1)
        assert (ys.min(), ys.max() + 1) == pytest.approx((y1, y2), abs=1)


def test_step_batches__a_corrupt_image_is_skipped_and_named(tmp_path: Path) -> None:
    folder = write_pictures(tmp_path / "data", 3).parent / "images"
    (folder / "001.png").write_bytes(b"no image")
    frames = index_frames(folder)
    views = TargetViews(frames, SIZE, AugmentConfig())
    batches = StepBatches(3, views, collate_target, batch_size=3, steps=1, seed=0, stream=1)
    batch = batches[0]
    assert batch.weak is not None and batch.views is not None
    assert batch.images.shape == batch.weak.shape == (3, 3, 64, 96) and batch.views.shape == (3, 3)
    assert len(batch.skipped) == 1
    assert "001.png" in batch.skipped[0][0] and "001.png" in batch.skipped[0][1]


def test_step_batches__no_readable_image_ends_the_run(tmp_path: Path) -> None:
    folder = write_pictures(tmp_path / "data", 2).parent / "images"
    for path in folder.iterdir():
        path.write_bytes(b"no image")
    views = TargetViews(index_frames(folder), SIZE, AugmentConfig())
    with pytest.raises(TrainingError, match=r"no image can be read.*00\d\.png"):
        StepBatches(2, views, collate_target, batch_size=1, steps=1, seed=0, stream=1)[0]
