"""Another detector's boxes find the frames that they are of."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from ptedge.errors import InputError
from ptedge.frames.index import FrameIndex
from ptedge.training.batches.foreign import ForeignFrames, open_foreign
from ptedge.training.losses.merge import MergeRule

CLASSES = ("car", "person")


def frames_of(folder: Path, *names: str) -> FrameIndex:
    """Frames of 96 x 64."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        assert cv2.imwrite(str(folder / name), np.zeros((64, 96, 3), np.uint8))
    return FrameIndex("target", [folder / name for name in names])


def foreign(tmp_path: Path, frames: FrameIndex, *entries: tuple[Any, Sequence[float]], **rule: Any) -> ForeignFrames:
    path = tmp_path / "found.json"
    rows = [{"image_id": image, "category_id": 1, "bbox": list(box), "score": 0.5} for image, box in entries]
    path.write_text(json.dumps(rows), "utf-8")
    return open_foreign(path, frames, CLASSES, MergeRule(**rule))


def counts(found: ForeignFrames) -> list[int]:
    return [len(boxes) for boxes in found.found]


BOX = (10, 10, 20, 20)


@pytest.mark.parametrize("name", ["000012.png", "000012", "000012.jpg", 12, "12", "frames/000012.png", "x\\000012.png"])
def test_open_foreign__by_name_stem_and_number(tmp_path: Path, name: Any) -> None:
    frames = frames_of(tmp_path, "frames/000011.png", "frames/000012.png")
    found = foreign(tmp_path, frames, (name, BOX), (name, BOX), ("other", BOX))
    assert counts(found) == [0, 2] and (found.matched, found.unused, found.num_boxes) == (1, 1, 2)
    assert found.found[1].boxes.tolist() == [[10, 10, 30, 30]] * 2
    text = found.describe()
    assert "found.json: 2 in 1 of 2 frames; 1 of its images are no frame of the target; " in text
    assert "taken as COCO counts, 1 car, 2 person" in text


def test_open_foreign__frames_of_a_video(tmp_path: Path) -> None:
    ok, data = cv2.imencode(".jpg", np.zeros((64, 96, 3), np.uint8))
    assert ok
    frames = FrameIndex("drive.mp4", [("/here/drive.mp4#000003", data.tobytes())])
    assert counts(foreign(tmp_path, frames, ("drive.mp4#000003", BOX))) == [1]


def test_open_foreign__folders_tell_names_apart(tmp_path: Path) -> None:
    both = frames_of(tmp_path, "cam1/7.png", "cam2/7.png")
    found = foreign(tmp_path, both, ("cam2/7.png", BOX), ("data/cam1/7.png", BOX), ("data/cam1/7.png", BOX))
    assert counts(found) == [2, 1]
    with pytest.raises(InputError, match=r"the image '7\.png' may be .*cam1/7\.png and .*cam2/7\.png"):
        foreign(tmp_path, both, ("7.png", BOX))
    one = frames_of(tmp_path, "cam2/7.png")
    found = foreign(tmp_path, one, ("cam1/7.png", BOX), ("cam1/7.png", BOX), ("cam2/7.png", BOX))
    assert counts(found) == [1] and found.unused == 1
    with pytest.raises(InputError, match=r"'a/7\.png' and 'b/7\.png' are both the frame"):
        foreign(tmp_path, one, ("a/7.png", BOX), ("b/7.png", BOX))


def test_open_foreign__no_frame_at_all(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none of its 1 images is a frame of target; the first is 5, the first frame"):
        foreign(tmp_path, frames_of(tmp_path, "a.png"), (5, BOX))


def test_open_foreign__pixels_of_another_size(tmp_path: Path) -> None:
    frames = frames_of(tmp_path, "a.png")
    with pytest.raises(InputError, match=r"a box of .*a\.png lies outside its 96 x 64 pixels"):
        foreign(tmp_path, frames, ("a", (200, 10, 20, 20)))
    listing = tmp_path / "listing.json"
    image = {"id": 1, "file_name": "a.png", "width": 192, "height": 128}
    listing.write_text(json.dumps({"images": [image], "categories": [{"id": 1, "name": "car"}]}), "utf-8")
    with pytest.raises(InputError, match=r"are for 192 x 128 pixels, and the frame has 96 x 64"):
        foreign(tmp_path, frames, (1, BOX), images=str(listing))
    listing.write_text(listing.read_text("utf-8").replace("192", "96").replace("128", "64"), "utf-8")
    found = foreign(tmp_path, frames, (1, BOX), (2, BOX), images=str(listing))
    assert counts(found) == [1] and "1 boxes left out: image id not listed" in found.describe()


def test_open_foreign__a_frame_that_is_gone_is_no_matter_here(tmp_path: Path) -> None:
    assert counts(foreign(tmp_path, FrameIndex("t", [tmp_path / "a.png"]), ("a", BOX))) == [1]
