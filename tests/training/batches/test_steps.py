"""Batches by step: the same step always sees the same pictures."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from batch_inputs import SIZE
from tiny_detector import write_pictures

from ptedge.data import open_dataset
from ptedge.errors import TrainingError
from ptedge.frames.source import index_frames
from ptedge.training.batches.augment import AugmentConfig
from ptedge.training.batches.batch import SourceBatch
from ptedge.training.batches.loader import load
from ptedge.training.batches.steps import Share, StepBatches, draw_index, step_generator
from ptedge.training.batches.views import SourceViews, TargetViews, collate_source, collate_target


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


def _source(path: Path, first_step: int = 0, workers: int = 0, steps: int = 4) -> list[SourceBatch]:
    dataset = open_dataset(path)
    views = SourceViews(dataset, SIZE, AugmentConfig())
    batches = StepBatches(
        len(dataset), views, collate_source, batch_size=2, steps=steps, seed=1, stream=0, first_step=first_step
    )
    return list(load(batches, workers))


def _same(a: SourceBatch, b: SourceBatch) -> bool:
    return torch.equal(a.images, b.images) and all(
        torch.equal(x.boxes, y.boxes) and torch.equal(x.labels, y.labels)
        for x, y in zip(a.labels, b.labels, strict=True)
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


def test_step_batches__a_corrupt_image_is_skipped_and_named(tmp_path: Path) -> None:
    folder = write_pictures(tmp_path / "data", 3).parent / "images"
    (folder / "001.png").write_bytes(b"no image")
    frames = index_frames(folder)
    views = TargetViews(frames, SIZE, AugmentConfig())
    batches = StepBatches(3, views, collate_target, batch_size=3, steps=1, seed=0, stream=1)
    batch = batches[0]
    assert batch.strong.shape == batch.weak.shape == (3, 3, 64, 96) and batch.views.shape == (3, 7)
    assert len(batch.skipped) == 1
    assert "001.png" in batch.skipped[0][0] and "001.png" in batch.skipped[0][1]


def test_step_batches__no_readable_image_ends_the_run(tmp_path: Path) -> None:
    folder = write_pictures(tmp_path / "data", 2).parent / "images"
    for path in folder.iterdir():
        path.write_bytes(b"no image")
    views = TargetViews(index_frames(folder), SIZE, AugmentConfig())
    with pytest.raises(TrainingError, match=r"no image can be read.*00\d\.png"):
        StepBatches(2, views, collate_target, batch_size=1, steps=1, seed=0, stream=1)[0]


def test_share__all_parts_of_a_step_are_there_once() -> None:
    for step in (0, 3):
        shares = [Share(accumulate=3, rank=rank, processes=2) for rank in range(2)]
        found = [share.part(step, number) for share in shares for number in range(3)]
        assert found == list(range(6 * step, 6 * step + 6))
