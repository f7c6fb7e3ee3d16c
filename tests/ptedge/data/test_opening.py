"""Which format a path is, class lists, and TOML descriptions."""

from __future__ import annotations

import json
from pathlib import Path

import cv2
import numpy as np
import pytest

from ptedge.data import open_dataset, with_class_names
from ptedge.data.classes import ClassRules, class_table
from ptedge.errors import ClassMismatchError, ConfigError, InputError


def coco(path: Path, *names: str) -> Path:
    """One image, one box a class; category ids descend."""
    document = {
        "categories": [{"id": i, "name": name} for i, name in enumerate(names)],
        "images": [{"id": 1, "file_name": "a.png", "width": 50, "height": 50}],
        "annotations": [{"image_id": 1, "category_id": i, "bbox": [i, 0, 9, 9]} for i in range(len(names))],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document))
    return path


def toml(path: Path, content: str) -> Path:
    path.write_text(content, "utf-8")
    return path


def test_open_dataset__same_classes_in_another_order_are_remapped(tmp_path: Path) -> None:
    path = coco(tmp_path / "a.json", "car", "bus", "person")
    data = open_dataset(path, class_names=["person", "car", "bus"])
    assert data.class_names == ("person", "car", "bus")
    assert data.samples[0].labels.tolist() == [1, 2, 0]
    assert data.samples[0].boxes[:, 0].tolist() == [0, 1, 2]


@pytest.mark.parametrize("names", [["car"], ["car", "bus", "person"], ["car", "truck"]])
def test_open_dataset__other_classes_are_refused(tmp_path: Path, names: list[str]) -> None:
    path = coco(tmp_path / "a.json", "car", "bus")
    with pytest.raises(ClassMismatchError) as caught:
        open_dataset(path, class_names=names)
    for part in ("['car', 'bus']", str(names), "class_map", "a.json"):
        assert part in str(caught.value)


def test_open_dataset__collected_classes_may_be_fewer(tmp_path: Path) -> None:
    box = "<bndbox><xmin>1</xmin><ymin>1</ymin><xmax>5</xmax><ymax>5</ymax></bndbox>"
    (tmp_path / "a.xml").write_text(f"<annotation><object><name>bus</name>{box}</object></annotation>")
    data = open_dataset(tmp_path, class_names=["car", "bus"])
    assert data.class_names == ("car", "bus") and data.samples[0].labels.tolist() == [1]
    with pytest.raises(ClassMismatchError):
        open_dataset(tmp_path, class_names=["car"])


def test_with_class_names__regions_of_every_class_stay(tmp_path: Path) -> None:
    (tmp_path / "image_2").mkdir()
    (tmp_path / "label_2").mkdir()
    line = "0 0 0 1 1 9 9 0 0 0 0 0 0 0"
    (tmp_path / "label_2" / "1.txt").write_text(f"Car {line}\nDontCare {line}\nBus {line}")
    data = with_class_names(open_dataset(tmp_path), ["Car", "Bus"])
    assert data.samples[0].labels.tolist() == [0, -1, 1]


def test_open_dataset__folder_with_one_json(tmp_path: Path) -> None:
    coco(tmp_path / "annotations" / "only.json", "car")
    assert open_dataset(tmp_path).format == "coco"
    coco(tmp_path / "annotations" / "second.json", "car")
    with pytest.raises(InputError, match="annotations/"):
        open_dataset(tmp_path)


def test_open_dataset__says_what_was_found(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        open_dataset(tmp_path / "nothing")
    with pytest.raises(InputError, match="it holds nothing"):
        open_dataset(tmp_path)
    (tmp_path / "a.mp4").touch()
    (tmp_path / "sub").mkdir()
    with pytest.raises(InputError, match=r"1 \.mp4, sub/"):
        open_dataset(tmp_path)
    with pytest.raises(InputError, match=r"a\.mp4 is no labelled data set"):
        open_dataset(tmp_path / "a.mp4")
    for name in ("x.json", "y.json"):
        coco(tmp_path / name, "car")
    with pytest.raises(InputError, match=r"several json files \(x\.json, y\.json\)"):
        open_dataset(tmp_path)


def test_description__class_map_classes_and_ignore(tmp_path: Path) -> None:
    coco(tmp_path / "set" / "a.json", "vehicle", "lorry", "person", "sign")
    content = """
        format = "coco"
        root = "set"
        annotations = "a.json"
        classes = ["person", "car"]
        ignore = ["lorry"]
        [class_map]
        vehicle = "car"
    """
    data = open_dataset(toml(tmp_path / "d.toml", content))
    sample = data.samples[0]
    assert data.class_names == ("person", "car")
    assert sample.labels.tolist() == [1, -1, 0] and sample.ignore.tolist() == [False, True, False]
    assert data.dropped == {"class not listed: sign": 1}


def test_description__images_elsewhere(tmp_path: Path) -> None:
    coco(tmp_path / "a.json", "car")
    (tmp_path / "pictures").mkdir()
    assert cv2.imwrite(str(tmp_path / "pictures" / "a.png"), np.zeros((50, 50, 3), np.uint8))
    content = 'format = "coco"\nannotations = "a.json"\nimages = "pictures"'
    assert open_dataset(toml(tmp_path / "d.toml", content)).samples[0].path == tmp_path / "pictures" / "a.png"


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        ("format = ", ConfigError, "not valid TOML"),
        ('annotations = "a.json"', ConfigError, "key format is missing"),
        ('format = "coc"', ConfigError, "format is 'coc'; it must be one of coco"),
        ('format = "coco"\nanotations = "a.json"', ConfigError, "did you mean 'annotations'"),
        ('format = "coco"', InputError, "needs annotations"),
        ('format = "coco"\nannotations = "b.json"', InputError, r"points to .*b\.json, which does not exist"),
        ('format = "coco"\nannotations = "a.json"\nbeta = 0.02', ConfigError, "beta goes with"),
        ('format = "coco"\nannotations = "a.json"\nclasses = ["bus", "bus"]', ConfigError, "twice"),
        ('format = "coco"\nannotations = "a.json"\nclasses = ["bus"]', InputError, "which hold: car"),
        ('format = "coco"\nannotations = "a.json"\nclass_map = 3', ConfigError, "class_map is a table"),
        (
            'format = "coco"\nannotations = "a.json"\nclasses = ["bus"]\nclass_map = {car = "buss"}',
            ConfigError,
            r"\['buss'\]",
        ),
    ],
)
def test_description__errors(tmp_path: Path, content: str, error: type[Exception], message: str) -> None:
    coco(tmp_path / "a.json", "car")
    with pytest.raises(error, match=message):
        open_dataset(toml(tmp_path / "d.toml", content))


def test_class_table__label() -> None:
    rules = ClassRules(None, {"vehicle": "car", "auto": "car"}, frozenset({"crowd"}))
    table = class_table(["vehicle", "bus", "auto", "crowd"], rules, "x")
    assert table.names == ("car", "bus")
    assert table.label("auto") == (0, False)
    assert table.label("crowd") == (-1, True)
    assert table.label("tram") is None
    mapped = class_table(["vehicle"], ClassRules(("car", "bus"), {"vehicle": "bus"}, frozenset({"bus"})), "x")
    assert mapped.label("vehicle") == (1, True) and mapped.label("car") == (0, False)
