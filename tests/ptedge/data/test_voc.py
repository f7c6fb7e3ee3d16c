"""Pascal VOC by hand-written examples: boxes, labels, ignore regions, what is left out."""

from __future__ import annotations

from pathlib import Path

import pytest
from labelled_files import image, rows, text

from ptedge.data import check_images, open_dataset, require_images
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


def voc_file(path: Path, body: str = "", filename: str = "", box: str = "41 31 100 90", **fields: str) -> Path:
    corners = "".join(f"<{k}>{v}</{k}>" for k, v in zip(("xmin", "ymin", "xmax", "ymax"), box.split(), strict=True))
    extra = "".join(f"<{key}>{value}</{key}>" for key, value in fields.items())
    item = f"<object><name>car</name>{extra}<bndbox>{corners}</bndbox></object>"
    return text(path, f"<annotation><filename>{filename}</filename>{item}{body}</annotation>")


def test_voc__the_file_name_inside_where_the_xml_is_called_otherwise(tmp_path: Path) -> None:
    voc_file(tmp_path / "Annotations" / "00001.xml", filename="IMG_0001.jpg")
    file = image(tmp_path / "images" / "IMG_0001.jpg", 200, 120)
    data = open_dataset(tmp_path)
    assert data.samples[0].path == file and rows(data) == [([40, 30, 100, 90], 0, False)] and not data.notes
    own = image(tmp_path / "images" / "00001.jpg", 200, 120)
    data = open_dataset(tmp_path)
    assert data.samples[0].path == own
    assert data.notes == {
        "XML file whose <filename> is another image that is there (that of the XML's own name taken)": 1,
        "image without an XML file (no part of the data)": 1,
    }


def test_voc__an_out_of_date_name_in_all_files_is_nobodys_image(tmp_path: Path) -> None:
    for name in ("a", "b"):
        voc_file(tmp_path / "Annotations" / f"{name}.xml", filename="old.jpg")
    image(tmp_path / "JPEGImages" / "old.jpg")
    data = open_dataset(tmp_path)
    assert [sample.path.name for sample in data.samples] == ["a.jpg", "b.jpg"]
    assert len(check_images(data)) == 2 and sum(data.passed_over.values()) == 2


def test_voc__sub_folders_of_both(tmp_path: Path) -> None:
    for name in ("left/f", "right/f", "top"):
        voc_file(tmp_path / "Annotations" / f"{name}.xml", filename="f.jpg")
        image(tmp_path / "JPEGImages" / f"{name}.jpg", 200, 120)
    data = open_dataset(tmp_path)
    places = [sample.path.relative_to(tmp_path / "JPEGImages").as_posix() for sample in data.samples]
    assert places == ["left/f.jpg", "right/f.jpg", "top.jpg"]
    assert [sample.image_id for sample in data.samples] == ["left/f", "right/f", "top"]


@pytest.mark.parametrize(
    ("difficult", "expected"), [("0", False), ("", False), ("Unspecified", False), ("true", True), ("1", True)]
)
def test_voc__forms_of_difficult(tmp_path: Path, difficult: str, expected: bool) -> None:
    voc_file(tmp_path / "a.xml", difficult=difficult)
    assert rows(open_dataset(tmp_path)) == [([40, 30, 100, 90], 0, expected)]
    voc_file(tmp_path / "a.xml", difficult="very")
    assert open_dataset(voc_toml(tmp_path)).dropped == {"difficult is neither 0 nor 1": 1}


def voc_toml(folder: Path) -> Path:
    return text(folder / "d.toml", 'format = "voc"\nclasses = ["car"]')


@pytest.mark.parametrize("box", ["nan 31 100 90", "x 31 100 90", "41,5 31 100 90", "1e999 31 100 90"])
def test_voc__corners_that_are_no_numbers(tmp_path: Path, box: str) -> None:
    voc_file(tmp_path / "a.xml", box=box)
    assert open_dataset(voc_toml(tmp_path)).dropped == {"malformed box": 1}


def test_voc__two_boxes_in_an_object_and_one_without_a_name(tmp_path: Path) -> None:
    box = "<bndbox><xmin>1</xmin><ymin>1</ymin><xmax>9</xmax><ymax>9</ymax></bndbox>"
    voc_file(tmp_path / "a.xml", f"<object><name>car</name>{box}{box}</object><object><name> </name>{box}</object>")
    assert open_dataset(tmp_path).dropped == {"malformed box": 1, "object without a name": 1}


def test_voc__corners_that_count_from_zero_are_noted(tmp_path: Path) -> None:
    voc_file(tmp_path / "a.xml", box="0 31 100 90")
    data = open_dataset(tmp_path)
    assert rows(data) == [([0, 30, 100, 90], 0, False)]
    assert data.notes == {"corner at 0, where VOC counts from 1": 1}


def test_voc__a_size_that_is_none(tmp_path: Path) -> None:
    voc_file(tmp_path / "a.xml", "<size><width>1e400</width><height>x</height></size>")
    image(tmp_path / "a.jpg", 200, 120)
    data = open_dataset(tmp_path)
    assert (data.samples[0].width, data.samples[0].height) == (200, 120)
    assert list(data.notes) == ["image size that is no number of pixels (that of the file taken)"]
