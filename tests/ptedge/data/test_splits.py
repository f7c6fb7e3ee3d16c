"""Parts of a data set: which one is read, and never another in silence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from labelled_files import image, text

from ptedge.data import open_dataset
from ptedge.data.splits import Use, choose_split, listed_names
from ptedge.errors import InputError


@pytest.mark.parametrize(
    ("available", "wanted", "use", "expected"),
    [
        (["train", "val", "test"], None, "look", "train"),
        (["train", "val", "test"], None, "train", "train"),
        (["train", "val", "test"], None, "score", "val"),
        (["train", "test"], None, "score", "test"),
        (["train", "valid"], None, "score", "valid"),
        (["train", "valid"], "val", "look", "valid"),
        (["trainval", "val"], None, "train", "trainval"),
        (["other"], None, "look", "other"),
        (["train", "val"], "train", "score", "train"),  # asked for by name
        (["night", "val"], "night", "train", "night"),
    ],
)
def test_choose_split__what_fits(available: list[str], wanted: str | None, use: Use, expected: str) -> None:
    assert choose_split(available, wanted, use, "d") == expected


@pytest.mark.parametrize(
    ("available", "wanted", "use", "message"),
    [
        (["train"], None, "score", r"no split to score on \(val or test\); it names \['train'\]"),
        (["trainval", "train"], None, "score", "no split to score on"),
        (["val"], None, "train", "no split to train on"),
        (["train", "val"], "nonsense", "look", "no split 'nonsense'"),
        ([], "val", "look", "it names none"),
    ],
)
def test_choose_split__refused(available: list[str], wanted: str | None, use: Use, message: str) -> None:
    with pytest.raises(InputError, match=message):
        choose_split(available, wanted, use, "d")


def test_listed_names__a_name_that_ends_like_a_column(tmp_path: Path) -> None:
    listing = text(tmp_path / "val.txt", "my image 1\nother -1\n\nother -1\nx  1\nsome thing\n")
    assert listed_names(listing, {"my image 1", "other", "x"}) == ["my image 1", "other", "x", "some thing"]
    assert listed_names(listing, ()) == ["my image", "other", "x", "some thing"]


def voc(root: Path) -> None:
    box = "<bndbox><xmin>2</xmin><ymin>3</ymin><xmax>50</xmax><ymax>60</ymax></bndbox>"
    for name in ("a", "b", "c"):
        text(root / "Annotations" / f"{name}.xml", f"<annotation><object><name>car</name>{box}</object></annotation>")
        image(root / "JPEGImages" / f"{name}.jpg")
    text(root / "ImageSets" / "Main" / "train.txt", "a\nb\n")
    text(root / "ImageSets" / "Main" / "val.txt", "c\n")


def names(path: Path, split: str | None = None, use: Use = "look") -> list[str]:
    return [sample.path.stem for sample in open_dataset(path, split=split, use=use).samples]


def test_voc__lists_are_parts(tmp_path: Path) -> None:
    voc(tmp_path)
    toml = text(tmp_path / "t.toml", 'format = "voc"')
    for path in (tmp_path, toml):
        assert names(path) == ["a", "b", "c"]
        assert names(path, "val") == ["c"]
        assert names(path, use="train") == ["a", "b"]
        assert names(path, use="score") == ["c"]
        with pytest.raises(InputError, match=r"no split 'nonsense'; it names \['train', 'val'\]"):
            names(path, "nonsense")
    (tmp_path / "ImageSets" / "Main" / "val.txt").unlink()
    with pytest.raises(InputError, match="no split to score on"):
        names(tmp_path, use="score")
    with pytest.raises(InputError, match=r"lists 'z', but .*has no XML file"):
        text(tmp_path / "ImageSets" / "Main" / "val.txt", "z")
        names(tmp_path, "val")


def test_description__the_option_goes_before_the_file(tmp_path: Path) -> None:
    voc(tmp_path)
    toml = text(tmp_path / "t.toml", 'format = "voc"\nsplit = "train"')
    assert names(toml, use="score") == ["a", "b"]  # named by a person
    assert names(toml, "val") == ["c"]


def test_kitti__lists_are_parts(tmp_path: Path) -> None:
    for name in ("1", "2"):
        text(tmp_path / "training" / "label_2" / f"{name}.txt", "Car 0 0 0 1 1 9 9 0 0 0 0 0 0 0")
        image(tmp_path / "training" / "image_2" / f"{name}.png")
    with pytest.raises(InputError, match="no split 'val'; it names none"):
        names(tmp_path, "val")
    assert names(tmp_path, use="score") == ["1", "2"]  # no parts: the whole is what was given
    text(tmp_path / "ImageSets" / "train.txt", "1")
    text(tmp_path / "ImageSets" / "val.txt", "2")
    assert names(tmp_path, "val") == ["2"] == names(tmp_path, use="score")
    assert open_dataset(tmp_path, split="val").split == "val"


def test_yolo__scoring_never_reads_train(tmp_path: Path) -> None:
    for part, name in (("train", "t"), ("val", "v")):
        image(tmp_path / "images" / part / f"{name}.png")
        text(tmp_path / "labels" / part / f"{name}.txt", "0 0.5 0.5 0.2 0.2")
    yaml = text(tmp_path / "data.yaml", "train: images/train\nval: images/val\nnames: [car]")
    assert (names(yaml), names(yaml, use="train"), names(yaml, use="score")) == (["t"], ["t"], ["v"])
    yaml.unlink()
    text(tmp_path / "classes.txt", "car")  # the same folders without a data.yaml
    assert (names(tmp_path), names(tmp_path, "val"), names(tmp_path, use="score")) == (["t"], ["v"], ["v"])
    with pytest.raises(InputError, match="no split 'test'"):
        names(tmp_path, "test")


@pytest.mark.parametrize("kind", ["coco", "bdd100k"])
def test_one_json__has_no_parts(tmp_path: Path, kind: str) -> None:
    image(tmp_path / "a.png")
    box2d = {"x1": 1, "y1": 1, "x2": 50, "y2": 60}
    document: object = [{"name": "a.png", "labels": [{"category": "car", "box2d": box2d}]}]
    if kind == "coco":
        images = [{"id": 1, "file_name": "a.png"}]
        annotations = [{"image_id": 1, "category_id": 1, "bbox": [1, 1, 50, 60]}]
        document = {"images": images, "annotations": annotations, "categories": [{"id": 1, "name": "car"}]}
    path = text(tmp_path / "a.json", json.dumps(document))
    toml = text(tmp_path / "d.toml", f'format = "{kind}"\nannotations = "a.json"\nsplit = "val"')
    assert names(path, use="score") == ["a"]
    for place, split in ((path, "val"), (toml, None)):
        with pytest.raises(InputError, match="has no splits, so there is no split 'val'"):
            names(place, split)


def test_coco__files_called_as_parts_beside_one_another(tmp_path: Path) -> None:
    for part in ("train", "val"):
        images = [{"id": 1, "file_name": f"{part}.png"}]
        annotations = [{"image_id": 1, "category_id": 1, "bbox": [60, 30, 50, 60]}]
        document = {"images": images, "annotations": annotations, "categories": [{"id": 1, "name": "car"}]}
        text(tmp_path / "annotations" / f"instances_{part}2017.json", json.dumps(document))
        image(tmp_path / "images" / f"{part}2017" / f"{part}.png")
    assert (names(tmp_path), names(tmp_path, "val")) == (["train"], ["val"])
    assert (names(tmp_path, use="train"), names(tmp_path, use="score")) == (["train"], ["val"])
    assert open_dataset(tmp_path, split="val").samples[0].path.is_file()
    text(tmp_path / "annotations" / "captions_val2017.json", "{}")
    with pytest.raises(InputError, match="no labelled data set"):
        names(tmp_path)
