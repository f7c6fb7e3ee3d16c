"""Which data training opens, what it refuses, and the line that describes them."""

from __future__ import annotations

from pathlib import Path

import pytest
from labelled_files import image, text

from ptedge.errors import InputError
from ptedge.training.data import describe_data, open_trainable
from ptedge.training.validate import check_val


def voc(root: Path, size: str = "200 120") -> Path:
    width, height = size.split()
    sides = f"<size><width>{width}</width><height>{height}</height></size>"
    box = "<bndbox><xmin>41</xmin><ymin>31</ymin><xmax>100</xmax><ymax>90</ymax></bndbox>"
    for name in ("a", "b"):
        item = f"<object><name>car</name>{box}</object>"
        text(root / "Annotations" / f"{name}.xml", f"<annotation>{sides}{item}{item}</annotation>")
        image(root / "JPEGImages" / f"{name}.jpg", 200, 120)
    return root


def test_open_trainable__reads_train_and_check_val_reads_val(tmp_path: Path) -> None:
    voc(tmp_path)
    text(tmp_path / "ImageSets" / "Main" / "train.txt", "a")
    data = open_trainable(tmp_path)
    assert [sample.path.stem for sample in data.samples] == ["a"]
    with pytest.raises(InputError, match="no split to score on"):
        check_val(tmp_path, ("car",))
    text(tmp_path / "ImageSets" / "Main" / "val.txt", "b")
    check_val(tmp_path, ("car",))


def test_open_trainable__refuses_images_of_another_size_than_labelled(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"a\.jpg is 200 x 120, but its labels are for 400 x 240"):
        open_trainable(voc(tmp_path, "400 240"))


def test_describe_data__in_one_line_with_what_was_left_out(tmp_path: Path) -> None:
    line = describe_data(open_trainable(voc(tmp_path)))
    assert line == f"{tmp_path}: 2 images (0 without objects), 2 boxes of car; left out: 2 duplicate box"
