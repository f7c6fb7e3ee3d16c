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
