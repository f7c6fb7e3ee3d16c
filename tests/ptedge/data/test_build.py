"""What all readers share: boxes cut, dropped, joined and counted, by hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from labelled_files import image, rows

from ptedge.data import Dataset
from ptedge.data.build import Counts, RawBox, RawImage, build_dataset, image_pixels
from ptedge.data.classes import ClassRules, class_table
from ptedge.data.parsing.values import Box
from ptedge.errors import InputError


def build(images: Sequence[RawImage], counts: Counts | None = None) -> Dataset:
    table = class_table(["car", "bus"], ClassRules(), "x")
    return build_dataset(Path("root"), "voc", images, table, counts or Counts(), declared=True, split="val")


def one(*boxes: Box | RawBox, path: str = "a.png", size: tuple[int, int] = (100, 80)) -> RawImage:
    raw = [box if isinstance(box, RawBox) else RawBox("car", box) for box in boxes]
    return RawImage(Path(path), *size, raw, path)


def test_build__cut_thin_and_outside(tmp_path: Path) -> None:
    data = build(
        [
            one(
                (-0.5, 10, 20, 20),  # half a pixel over: rounding
                (90, 10, 140, 20),  # 40 over
                (10, 10, 10.5, 20),  # half a pixel wide
                (10, 10, 10, 20),
                (20, 10, 10, 30),
                (100, 10, 120, 20),
            )
        ]
    )
    kept = [[0, 10, 20, 20], [90, 10, 100, 20], [10, 10, 10.5, 20]]
    assert rows(data) == [(box, 0, False) for box in kept]
    assert data.dropped == {"no area": 2, "outside the image": 1}
    assert data.notes == {
        "box cut at the image's border (more than 1 pixel over)": 1,
        "box less than 1 pixel wide or high": 1,
    }
    assert data.split == "val" and data.passed_over == {}


def test_build__equal_boxes_are_one_object() -> None:
    box = (40.0, 30.0, 100.0, 80.0)
    other = RawBox("bus", box)
    region = RawBox("car", box, True)
    data = build([one(box, box, other, box, region, (40, 30, 100, 79)), one(box, path="b.png")])
    assert rows(data) == [
        ([40, 30, 100, 80], 0, False),
        ([40, 30, 100, 80], 1, False),
        ([40, 30, 100, 80], 0, True),
        ([40, 30, 100, 79], 0, False),
    ]
    assert data.dropped == {"duplicate box": 2} and len(data.samples[1].boxes) == 1


def test_build__an_image_listed_twice_is_one_image() -> None:
    data = build([one((1, 1, 9, 9)), one((1, 1, 5, 5), path="b.png"), one((20, 20, 30, 30), (1, 1, 9, 9))])
    assert [sample.path.name for sample in data.samples] == ["a.png", "b.png"]
    assert rows(data) == [([1, 1, 9, 9], 0, False), ([20, 20, 30, 30], 0, False)]
    assert data.dropped == {"duplicate box": 1}
    assert data.notes == {"image listed more than once (its boxes joined)": 1}


def test_build__a_silent_format_gets_the_size_of_the_file(tmp_path: Path) -> None:
    file = image(tmp_path / "a.png", 50, 40)
    data = build(
        [one((10, 10, 90, 20), path=str(file), size=(0, 0)), one((1, 2, 300, 4), path="none.png", size=(0, 0))]
    )
    assert rows(data) == [([10, 10, 50, 20], 0, False)] and rows(data, 1) == [([1, 2, 300, 4], 0, False)]
    assert [(sample.width, sample.height) for sample in data.samples] == [(50, 40), (0, 0)]


@pytest.mark.parametrize("box", [(0.2, 0.25, 0.5, 0.75), (-0.8, -0.75, 0.5, 0.75), (0, 0, 1, 1)])
def test_build__relative_boxes_are_refused(box: Box) -> None:
    with pytest.raises(InputError, match=r"every box lies between 0 and 1.*voc counts pixels"):
        build([one(box)])
    assert build([one(box, (0, 0, 2, 2))]).num_boxes == 2  # one in pixels: the other is only small
    assert build([one()]).num_boxes == 0


def test_image_pixels__silent_or_not_a_size() -> None:
    counts = Counts()
    assert image_pixels(640, "480", counts) == (640, 480)
    assert image_pixels(None, None, counts) == (0, 0) == image_pixels(640, 0, counts)
    assert not +counts.notes
    assert image_pixels("wide", 480, counts) == (0, 0) == image_pixels(-1, 480, counts)
    assert list((+counts.notes).values()) == [2]


def test_remarks__one_line() -> None:
    counts = Counts()
    counts.passed_over["label file without an image"] += 3
    data = build([one((90, 10, 140, 20), (5, 5, 5, 5))], counts)
    assert data.remarks == (
        "left out: 1 no area, 3 label file without an image; "
        "note: 1 box cut at the image's border (more than 1 pixel over)"
    )
    assert build([one((1, 1, 9, 9))]).remarks == ""
