"""Pascal VOC by hand-written examples: boxes, labels, ignore regions, what is left out."""

from __future__ import annotations

from pathlib import Path

import pytest
from labelled_files import image, rows, text

from ptedge.data import open_dataset, require_images
from ptedge.errors import InputError


def voc_xml(filename: str, size: str = "<size><width>100</width><height>80</height></size>") -> str:
    box = "<bndbox><xmin>11</xmin><ymin>21</ymin><xmax>40</xmax><ymax>60</ymax></bndbox>"
    hard = "<bndbox><xmin>1</xmin><ymin>1</ymin><xmax>100</xmax><ymax>80</ymax></bndbox>"
    return (
        f"<annotation><filename>{filename}</filename>{size}"
        f"<object><name>car</name><difficult>0</difficult>{box}<part><name>wheel</name></part></object>"
        f"<object><name>bus</name><difficult>1</difficult>{hard}</object>"
        "<object><name>car</name></object></annotation>"
    )


def test_voc__one_based_inclusive(tmp_path: Path) -> None:
    text(tmp_path / "Annotations" / "a.xml", voc_xml("a.png"))
    text(tmp_path / "Annotations" / "b.xml", "<annotation><filename>b.png</filename></annotation>")
    file = image(tmp_path / "JPEGImages" / "a.jpg")  # the annotation says .png
    data = open_dataset(tmp_path)
    assert (data.format, data.class_names, len(data), data.dropped) == ("voc", ("bus", "car"), 2, {"malformed box": 1})
    assert rows(data) == [([10, 20, 40, 60], 1, False), ([0, 0, 100, 80], 0, True)]
    first, second = data.samples
    assert (first.path, first.width, first.height, first.image_id) == (file, 100, 80, "a")
    assert (second.width, second.height) == (0, 0) and rows(data, 1) == []


def test_voc__split_and_flat_folder(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        text(tmp_path / "Annotations" / f"{name}.xml", voc_xml("other.png"))
        image(tmp_path / "Annotations" / f"{name}.jpg")
    text(tmp_path / "ImageSets" / "Main" / "val.txt", "b\nc  1\n")
    toml = text(tmp_path / "v.toml", 'format = "voc"\nsplit = "val"')
    data = open_dataset(toml)
    assert [sample.path.name for sample in data.samples] == ["b.jpg", "c.jpg"]
    require_images(data)
    with pytest.raises(InputError, match=r"no split 'train'; it names \['val'\]"):
        open_dataset(text(tmp_path / "t.toml", 'format = "voc"\nsplit = "train"'))


@pytest.mark.parametrize(("content", "message"), [("<annotation>", "valid XML"), ("<html/>", "no VOC annotation")])
def test_voc__broken(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        open_dataset(text(tmp_path / "a.xml", content).parent)
