"""Labelled frames among unlabelled ones: found by path and content, set apart, refused when of elsewhere."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch
from batch_inputs import OFF, SIZE, generator
from tiny_detector import write_pictures

from ptedge.data import open_dataset
from ptedge.data.dataset import Dataset
from ptedge.errors import InputError
from ptedge.frames.index import FrameIndex
from ptedge.frames.source import index_frames
from ptedge.training.batches.augment import AugmentConfig
from ptedge.training.batches.few import (
    VIEWS,
    LabelsConfig,
    few_views,
    fingerprint,
    same_frames,
    set_labelled_apart,
)

STRONG = AugmentConfig(**{**OFF, "solarize": 1.0, "zoom": (0.5, 0.5)})


@pytest.fixture
def few(tmp_path: Path) -> Dataset:
    """Three pictures, two of them with a box."""
    return open_dataset(write_pictures(tmp_path / "few", 3, seed=7))


def frames_of(folder: Path, *files: Path) -> FrameIndex:
    """Two frames of their own, and copies of files under other names."""
    write_pictures(folder, 2, seed=9)
    for i, file in enumerate(files):
        shutil.copyfile(file, folder / "images" / f"copy{i}.png")
    return index_frames(folder / "images")


def test_same_frames__by_path_and_by_content(few: Dataset, tmp_path: Path) -> None:
    paths = [sample.path for sample in few.samples]
    frames = frames_of(tmp_path / "target", paths[1])
    link = tmp_path / "link.png"
    os.symlink(paths[0], link)
    everything = FrameIndex("all", [*(frames.path(i) or Path() for i in range(3)), paths[2], link, ("v#0", b"jpeg")])
    names = [everything.name(i).rpartition("/")[2] for i in range(6)]
    assert names == ["000.png", "001.png", "copy0.png", "002.png", "link.png", "v#0"]
    assert same_frames(paths, everything) == {2: paths[1], 3: paths[2], 4: paths[0]}


def test_same_frames__files_that_are_gone_are_like_nothing(few: Dataset, tmp_path: Path) -> None:
    gone = FrameIndex("gone", [tmp_path / "a.png", tmp_path / "b.png"])
    assert same_frames([tmp_path / "c.png", few.samples[0].path], gone) == {}


def test_set_labelled_apart__counts_a_frame_once(few: Dataset, tmp_path: Path) -> None:
    frames = frames_of(tmp_path / "target", few.samples[1].path, few.samples[1].path)
    left, twice = set_labelled_apart(few, frames, None)
    assert [left.name(i).rpartition("/")[2] for i in range(len(left))] == ["000.png", "001.png"]
    assert twice == 1  # of the labelled frames, though the frames have it two times
    assert left.spec == frames.spec


def test_set_labelled_apart__nothing_left(few: Dataset) -> None:
    frames = FrameIndex("frames", [sample.path for sample in few.samples])
    with pytest.raises(InputError, match=r"every frame of frames is labelled in .*data\.json"):
        set_labelled_apart(few, frames, None)


def test_set_labelled_apart__images_of_the_source(few: Dataset, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"3 of its 3 images are source images too"):
        set_labelled_apart(few, frames_of(tmp_path / "target"), few)


@pytest.mark.parametrize("size", [(64, 96), (128, 192), (65, 96)])
def test_set_labelled_apart__frames_of_the_same_shape(few: Dataset, tmp_path: Path, size: tuple[int, int]) -> None:
    cv2.imwrite(str(tmp_path / "frame.png"), np.zeros((*size, 3), np.uint8))
    frames = FrameIndex("t", [tmp_path / "gone.png", tmp_path / "frame.png"])
    assert set_labelled_apart(few, frames, None)[1] == 0


def test_set_labelled_apart__images_of_another_camera(few: Dataset, tmp_path: Path) -> None:
    cv2.imwrite(str(tmp_path / "frame.png"), np.zeros((60, 100, 3), np.uint8))
    ok, data = cv2.imencode(".jpg", np.zeros((70, 100, 3), np.uint8))
    assert ok
    frames = FrameIndex("target", [tmp_path / "frame.png", ("video#0", data.tobytes())])
    with pytest.raises(InputError, match=r"000\.png is 96 x 64 and no frame of target has such a shape"):
        set_labelled_apart(few, frames, None)


def test_few_views__what_each_changes(few: Dataset) -> None:
    sample = few.samples[0]
    box = sample.boxes[0]
    mirrored = [96 - box[2], box[1], 96 - box[0], box[3]]
    smaller = 0.5 * box + [24, 16, 24, 16]
    still, _ = few_views(few, SIZE, STRONG, "still")(0, generator())
    seeds = {bool(torch.rand((), generator=generator(seed)) < 0.5): seed for seed in range(8)}
    for view in VIEWS:
        for flip, seed in seeds.items():
            image, targets = few_views(few, SIZE, STRONG, view)(0, generator(seed))
            found = targets.boxes[0].tolist()
            if view == "strong":
                assert found == pytest.approx(smaller) if not flip else found != pytest.approx(smaller)
                continue
            assert found == pytest.approx(mirrored if flip and view != "still" else box)
            unturned = image[:, ::-1] if flip and view != "still" else image
            assert (unturned == still).all() == (view != "colour")


def test_fingerprint__of_names_boxes_and_labels(few: Dataset, tmp_path: Path) -> None:
    again = open_dataset(write_pictures(tmp_path / "again", 3, seed=7))
    other = open_dataset(write_pictures(tmp_path / "other", 3, seed=8))
    assert fingerprint(few) == fingerprint(again) != fingerprint(other)
    assert fingerprint(few) != fingerprint(few.drawn(2, 0))


@pytest.mark.parametrize(
    "changes",
    [
        {"batch": 0},
        {"view": "flip"},
        {"weight": -1.0},
        {"box_weight": -1.0},
        {"pseudo_box_weight": -0.1},
        {"offset_every": 0},
    ],
)
def test_labels_config__names_what_is_wrong(changes: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(changes))):
        LabelsConfig(**changes)  # type: ignore[arg-type]
