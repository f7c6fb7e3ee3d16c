"""KITTI by hand-written examples: boxes, labels, ignore regions, what is left out."""

from __future__ import annotations

from pathlib import Path

import pytest
from labelled_files import image, rows, text

from ptedge.data import open_dataset
from ptedge.errors import InputError


def test_kitti__dont_care_is_an_ignore_region(tmp_path: Path) -> None:
    file = image(tmp_path / "training" / "image_2" / "000001.png")
    tail = "1 2 3 4 5 6 7"
    lines = [f"Van 0.00 0 -1.57 10.5 20 30 40.25 {tail}", f"DontCare -1 -1 -10 1 2 3 4 {tail}"]
    text(tmp_path / "training" / "label_2" / "000001.txt", "\n".join(lines))
    data = open_dataset(tmp_path)
    assert (data.format, data.class_names, data.num_boxes) == ("kitti", ("Van",), 1)
    assert rows(data) == [([10.5, 20, 30, 40.25], 0, False), ([1, 2, 3, 4], -1, True)]
    sample = data.samples[0]
    assert (sample.path, sample.width, sample.height, sample.image_id) == (file, 100, 80, "000001")
    text(tmp_path / "training" / "label_2" / "000001.txt", "Van 1 2")
    with pytest.raises(InputError, match="line 1 is no KITTI label"):
        open_dataset(tmp_path)


def kitti_line(folder: Path, line: str) -> Path:
    image(folder / "image_2" / "1.png", 200, 120)
    text(folder / "label_2" / "1.txt", line)
    return folder


LINE = "Car 0.00 0 -1.57 40 30 100 90 1.5 1.6 3.9 1.8 1.6 9.0 -1.5"


def test_kitti__a_score_is_noted(tmp_path: Path) -> None:
    data = open_dataset(kitti_line(tmp_path, f"{LINE} 0.91\n{LINE}"))
    assert rows(data) == [([40, 30, 100, 90], 0, False)]
    assert data.notes == {"label line with a score (not used)": 1} and data.dropped == {"duplicate box": 1}


def test_kitti__numbers_that_are_not_finite_and_boxes_over_the_border(tmp_path: Path) -> None:
    wide = LINE.replace("100 90", "300 90")
    data = open_dataset(kitti_line(tmp_path, f"{LINE.replace('40', 'nan')}\n{LINE.replace('40', 'inf')}\n{wide}"))
    assert rows(data) == [([40, 30, 200, 90], 0, False)] and data.dropped == {"malformed box": 2}
    assert data.notes == {"box cut at the image's border (more than 1 pixel over)": 1}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (f"0 7 {LINE}", "is a label of KITTI's tracking"),
        (LINE.replace("Car", "Person sitting"), "expected a type, then numbers only|expected a type and 14 numbers"),
        ("0 0.35 0.5 0.3 0.5", "5 columns, expected 15"),
        (" ".join(LINE.split()[:8]), "8 columns, expected 15"),
        (LINE.replace("40", "4o"), "expected a type"),
        (LINE.replace("Car", "3"), "expected a type"),
    ],
)
def test_kitti__lines_of_another_form(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        open_dataset(kitti_line(tmp_path, line))


def test_kitti__images_without_labels_are_noted(tmp_path: Path) -> None:
    kitti_line(tmp_path, LINE)
    image(tmp_path / "image_2" / "2.png")
    assert open_dataset(tmp_path).notes == {"image without a label file (no part of the data)": 1}
