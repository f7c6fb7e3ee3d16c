"""Ignore regions left as they are, left out, or taken as boxes, for each format that has them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from labelled_files import image, rows, text

from ptedge.data import open_dataset
from ptedge.data.dataset import DROPPED, KEPT
from ptedge.data.report import unusable_boxes
from ptedge.errors import ConfigError

CAR, REGION = [10, 20, 30, 50], [50, 50, 60, 70]


def cityscapes(root: Path, regions: str) -> Path:
    objects = [
        {"label": "car", "polygon": [[10, 20], [30, 20], [30, 50]]},
        {"label": "cargroup", "polygon": [[50, 50], [60, 50], [60, 70]]},
    ]
    document = {"imgWidth": 100, "imgHeight": 80, "objects": objects}
    text(root / "gtFine" / "val" / "ulm" / "ulm_01_gtFine_polygons.json", json.dumps(document))
    return text(root / "d.toml", f'format = "cityscapes"\nclasses = ["car"]\n{regions}')


def voc(root: Path, regions: str) -> Path:
    found = "".join(
        f"<object><name>car</name><difficult>{hard}</difficult><bndbox><xmin>{x1 + 1}</xmin><ymin>{y1 + 1}</ymin>"
        f"<xmax>{x2}</xmax><ymax>{y2}</ymax></bndbox></object>"
        for hard, (x1, y1, x2, y2) in ((0, CAR), (1, REGION))
    )
    text(root / "Annotations" / "a.xml", f"<annotation><filename>a.jpg</filename>{found}</annotation>")
    image(root / "JPEGImages" / "a.jpg")
    return text(root / "d.toml", f'format = "voc"\nclasses = ["car"]\n{regions}')


def kitti(root: Path, regions: str) -> Path:
    label = "{} 0.00 0 -1.57 {} 2.85 2.63 12.34 0.47 1.49 69.44 -1.56"
    lines = [label.format("Car", " ".join(map(str, CAR))), label.format("DontCare", " ".join(map(str, REGION)))]
    text(root / "label_2" / "000001.txt", "\n".join(lines))
    image(root / "image_2" / "000001.png")
    return text(root / "d.toml", f'format = "kitti"\nclasses = ["car"]\n{regions}\n[class_map]\nCar = "car"')


@pytest.mark.parametrize(("make", "label"), [(cityscapes, 0), (voc, 0), (kitti, -1)])
def test_regions__are_left_alone_unless_told_otherwise(make: object, label: int, tmp_path: Path) -> None:
    for key in ("", 'regions = "ignore"'):
        data = open_dataset(make(tmp_path, key))  # type: ignore[operator]
        assert rows(data) == [(CAR, 0, False), (REGION, label, True)]
        assert data.notes == {} and data.num_boxes == 1


@pytest.mark.parametrize("make", [cityscapes, voc, kitti])
def test_regions__dropped_are_counted_and_no_fault(make: object, tmp_path: Path) -> None:
    data = open_dataset(make(tmp_path, 'regions = "drop"'))  # type: ignore[operator]
    assert rows(data) == [(CAR, 0, False)]
    assert data.notes == {DROPPED: 1} and unusable_boxes(data) == 0


@pytest.mark.parametrize("make", [cityscapes, voc])
def test_regions__kept_are_boxes_like_any_other(make: object, tmp_path: Path) -> None:
    data = open_dataset(make(tmp_path, 'regions = "keep"'))  # type: ignore[operator]
    assert rows(data) == [(CAR, 0, False), (REGION, 0, False)]
    assert data.notes == {KEPT: 1} and data.num_boxes == 2


def test_regions__that_stand_for_every_class_are_no_boxes(tmp_path: Path) -> None:
    data = open_dataset(kitti(tmp_path, 'regions = "keep"'))
    assert rows(data) == [(CAR, 0, False), (REGION, -1, True)] and data.notes == {}


@pytest.mark.parametrize(
    ("keys", "message"),
    [('regions = "skip"', "regions is 'skip'; it must be one of"), ('regions = "keep"\nignore = ["bus"]', "Leave one")],
)
def test_regions__wrong_values(keys: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=message):
        open_dataset(voc(tmp_path, keys))
