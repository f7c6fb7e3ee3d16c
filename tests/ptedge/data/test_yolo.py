"""YOLO by hand-written examples: boxes, labels, ignore regions, what is left out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from labelled_files import image, rows, text

from ptedge.data import open_dataset, require_images
from ptedge.errors import InputError


def yolo(root: Path) -> Path:
    image(root / "images" / "train" / "a2.png")
    image(root / "images" / "train" / "a10.png")
    image(root / "images" / "val" / "b.png", 200, 100)
    text(root / "labels" / "train" / "a2.txt", "1 0.5 0.5 0.2 0.5\n0 0.05 0.5 0.2 0.1\n\n0 0.1 0.1 0.3 0.1 0.3 0.4\n")
    text(root / "labels" / "val" / "b.txt", "0 0.5 0.5 1 1")
    content = "path: /not/here\ntrain: images/train  # comment\nval: images/val\nnc: 2\nnames: ['car', \"bus\"]\n"
    return text(root / "data.yaml", content)


def test_yolo__relative_boxes(tmp_path: Path) -> None:
    data = open_dataset(yolo(tmp_path))
    assert (data.format, data.class_names) == ("yolo", ("car", "bus"))
    assert [sample.path.name for sample in data.samples] == ["a2.png", "a10.png"]
    expected = [([40, 20, 60, 60], 1, False), ([0, 36, 15, 44], 0, False), ([10, 8, 30, 32], 0, False)]
    for (box, label, ignore), (other, *rest) in zip(rows(data), expected, strict=True):
        assert box == pytest.approx(other, abs=1e-4) and [label, ignore] == rest
    assert rows(data, 1) == []
    assert (data.samples[0].width, data.samples[0].height) == (100, 80)


def test_yolo__split_and_folder(tmp_path: Path) -> None:
    yolo(tmp_path)
    data = open_dataset(tmp_path, split="val")
    assert rows(data) == [([0, 0, 200, 100], 0, False)]
    with pytest.raises(InputError, match=r"no split 'test'; it names \['train', 'val'\]"):
        open_dataset(tmp_path, split="test")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("train: images/train\nnc: 3\nnames: [car, bus]", "names 2 classes, but nc says 3"),
        ("train: images/train\nnames: [car, [bus]]", r"the name of class 1 is \['bus'\]"),
        ("train: images/train\nnames: {0: car, 1: ~}", "the name of class 1 is None"),
        ("train: images/train\nnames: {car: 0}", "no class names"),
        ("train: {a: images/train}\nnames: [car, bus]", r"train holds \{'a'"),
        ("path: [.]\ntrain: images/train\nnames: [car, bus]", "path holds"),
    ],
)
def test_yolo__data_yaml_that_does_not_fit(tmp_path: Path, content: str, message: str) -> None:
    path = yolo(tmp_path)
    path.write_text(content)
    with pytest.raises(InputError, match=message):
        open_dataset(path)


def test_yolo__names_of_a_map_count_from_its_ids(tmp_path: Path) -> None:
    path = yolo(tmp_path)
    path.write_text("train: images/train\nnames:\n  1: driver's door  # left\n  0: car\n")
    data = open_dataset(path)
    assert data.class_names == ("car", "driver's door")
    assert data.samples[0].labels.tolist() == [1, 0, 0]


def test_yolo__a_yaml_of_another_program_beside_the_data(tmp_path: Path) -> None:
    yolo(tmp_path)
    text(tmp_path / "compose.yml", "- !other [x]")
    assert open_dataset(tmp_path).format == "yolo"


def test_yolo__folder_with_classes_file(tmp_path: Path) -> None:
    for name in ("a", "b"):
        image(tmp_path / "images" / f"{name}.jpg")
    text(tmp_path / "labels" / "a.txt", "0 0.5 0.5 0.2 0.5")
    with pytest.raises(InputError, match="no class names"):
        open_dataset(tmp_path)
    text(tmp_path / "classes.txt", "car\nbus\n")
    data = open_dataset(tmp_path)
    assert data.class_names == ("car", "bus") and len(data) == 2  # b has no label file: no objects


def test_yolo__labels_apart_from_images_take_only_labelled_images(tmp_path: Path) -> None:
    for name in ("a", "b"):
        image(tmp_path / "images" / f"{name}.jpg")
    text(tmp_path / "some" / "a.txt", "0 0.5 0.5 0.2 0.5")
    text(tmp_path / "some" / "labels.txt", "car")
    data = open_dataset(tmp_path / "some")
    assert [sample.path.name for sample in data.samples] == ["a.jpg"]


def test_yolo__ids_as_names(tmp_path: Path) -> None:
    image(tmp_path / "a.jpg")
    text(tmp_path / "a.txt", "0 0.5 0.5 0.2 0.5\n3 0.5 0.5 0.1 0.1")
    toml = text(tmp_path / "d.toml", 'format = "yolo"\n[class_map]\n3 = "car"')
    data = open_dataset(toml)
    assert data.class_names == ("car",) and data.dropped == {"class not listed: 0": 1}
    np.testing.assert_allclose(data.samples[0].boxes, [[45, 36, 55, 44]], atol=1e-4)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("0 0.5 0.5 0.2", "line 1 is no YOLO label"),
        ("a b c d e", "is no YOLO label"),
        ("5 0.5 0.5 0.1 0.1", "class 5 has no name"),
        ("0 50 50 20 20", "in pixels"),
    ],
)
def test_yolo__broken_lines(tmp_path: Path, line: str, message: str) -> None:
    image(tmp_path / "a.jpg")
    text(tmp_path / "a.txt", line)
    text(tmp_path / "classes.txt", "car")
    with pytest.raises(InputError, match=message):
        open_dataset(tmp_path)


def test_yolo__unreadable_image_is_counted(tmp_path: Path) -> None:
    text(tmp_path / "classes.txt", "car")
    text(tmp_path / "a.txt", "0 0.5 0.5 0.1 0.1")
    (tmp_path / "a.jpg").write_bytes(b"broken")
    assert open_dataset(tmp_path).dropped == {"image unreadable": 1}


def labelled(folder: Path, place: str = "images/train/a.png", line: str = "0 0.35 0.5 0.3 0.5") -> None:
    image(folder / place, 200, 120)
    text((folder / place.replace("images", "labels")).with_suffix(".txt"), line)


def boxes(path: Path, **options: Any) -> list[list[int]]:
    data = open_dataset(path, **options)
    require_images(data)
    return [[round(v) for v in box] for sample in data.samples for box in sample.boxes.tolist()]


@pytest.mark.parametrize(
    ("train", "lists"),
    [
        ("[images/train/a.png]", {}),
        ("train.txt", {"train.txt": "data/images/train/a.png\n"}),
        ("train.txt", {"train.txt": "images\\train\\a.png\n\n"}),
        ("sub/train.txt", {"sub/train.txt": "./../images/train/a.png\n"}),
        ("data/sub/list.txt", {"sub/list.txt": "/home/someone/images/train/a.png\r\n"}),
        ("..\\images\\train", {}),
        ("[images/train, images/train/a.png]", {}),
    ],
)
def test_yolo__ways_to_name_the_images(tmp_path: Path, train: str, lists: dict[str, str]) -> None:
    labelled(tmp_path)
    for name, content in lists.items():
        text(tmp_path / name, content)
    path = text(tmp_path / "data.yaml", f"path: .\ntrain: {train}\nnames: [car]")
    assert boxes(path) == [[40, 30, 100, 90]]
    twice = {"image listed more than once (read once)": 1}
    assert open_dataset(path).notes == (twice if "images/train, " in train else {})


def test_yolo__a_dot_in_a_list_counts_from_the_list(tmp_path: Path) -> None:
    labelled(tmp_path / "sub", "images/a.png")
    labelled(tmp_path, "images/a.png", "0 0.5 0.5 1 1")  # another file of that name
    text(tmp_path / "sub" / "dot.txt", "./images/a.png")
    text(tmp_path / "sub" / "plain.txt", "images/a.png")
    for name, expected in (("dot", [40, 30, 100, 90]), ("plain", [0, 0, 200, 120])):
        assert boxes(text(tmp_path / "data.yaml", f"train: sub/{name}.txt\nnames: [car]")) == [expected]


def test_yolo__darknet_folder(tmp_path: Path) -> None:
    text(tmp_path / "obj.data", "classes = 1\ntrain = data/train.txt\nnames = data/obj.names\nbackup = backup/\n")
    text(tmp_path / "obj.names", "car\n")
    text(tmp_path / "train.txt", "data/obj_train_data/f.png\n")
    image(tmp_path / "obj_train_data" / "f.png", 200, 120)
    text(tmp_path / "obj_train_data" / "f.txt", "0 0.35 0.5 0.3 0.5")
    assert boxes(tmp_path) == [[40, 30, 100, 90]]
    (tmp_path / "obj.data").unlink()
    assert boxes(tmp_path) == [[40, 30, 100, 90]]  # the list alone tells, and is no label file
    text(tmp_path / "obj.data", "classes = 2\ntrain = train.txt\nnames = obj.names\n")
    with pytest.raises(InputError, match="names 1 classes, but classes says 2"):
        open_dataset(tmp_path)
    text(tmp_path / "obj.data", "train = train.txt\nnames = none.names\n")
    with pytest.raises(InputError, match=r"the class names 'none.names', which do not exist"):
        open_dataset(tmp_path)


def test_yolo__the_last_images_of_a_path_stands_for_labels(tmp_path: Path) -> None:
    image(tmp_path / "images" / "x" / "images" / "a.png", 200, 120)
    text(tmp_path / "images" / "x" / "labels" / "a.txt", "0 0.35 0.5 0.3 0.5")
    text(tmp_path / "labels" / "x" / "images" / "a.txt", "0 0.5 0.5 1 1")
    path = text(tmp_path / "data.yaml", "train: images/x/images\nnames: [car]")
    assert boxes(path) == [[40, 30, 100, 90]]


def test_yolo__what_was_not_read_is_counted(tmp_path: Path) -> None:
    labelled(tmp_path)
    labelled(tmp_path, "images/train/b.jpg")
    (tmp_path / "images" / "train" / "b.jpg").rename(tmp_path / "images" / "train" / "b.jfif")
    for name in ("c.heic", "d.dng"):
        (tmp_path / "images" / "train" / name).touch()
    text(tmp_path / "labels" / "train" / "e.txt", "0 0.5 0.5 0.1 0.1")
    text(tmp_path / "images" / "train" / "notes.txt", "made by hand")
    image(tmp_path / "images" / "train" / "f.png")
    data = open_dataset(text(tmp_path / "data.yaml", "train: images/train\nnames: [car]"))
    assert [sample.path.name for sample in data.samples] == ["a.png", "b.jfif", "f.png"]
    assert data.passed_over == {
        ".dng file (convert it to JPEG or PNG)": 1,
        ".heic file (convert it to JPEG or PNG)": 1,
        "label file without an image": 1,
    }
    assert data.notes == {"image without a label file (taken as without objects)": 1}


def test_yolo__equal_lines_are_one_object(tmp_path: Path) -> None:
    labelled(tmp_path, line="\n".join(["0 0.35 0.5 0.3 0.5"] * 3))
    path = text(tmp_path / "data.yaml", "train: images/train\nnames: [car]")
    assert boxes(path) == [[40, 30, 100, 90]] and open_dataset(path).dropped == {"duplicate box": 2}


def test_yolo__names_with_a_mark_or_a_hole(tmp_path: Path) -> None:
    labelled(tmp_path, "images/a.png")
    (tmp_path / "classes.txt").write_bytes(b"\xef\xbb\xbfcar\r\nbus\r\n\r\n")
    assert open_dataset(tmp_path).class_names == ("car", "bus")
    text(tmp_path / "classes.txt", "car\n\nbus\n")
    with pytest.raises(InputError, match=r"classes\.txt line 2 is empty"):
        open_dataset(tmp_path)


def test_yolo__a_part_that_is_the_whole_file_system(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="whole file system"):
        open_dataset(text(tmp_path / "data.yaml", "train: /\nnames: [car]"))


def test_yolo__two_images_of_one_stem_share_their_label(tmp_path: Path) -> None:
    labelled(tmp_path, "images/a.png")
    image(tmp_path / "images" / "a.jpg", 200, 120)
    text(tmp_path / "classes.txt", "car")
    assert boxes(tmp_path) == [[40, 30, 100, 90]] * 2
