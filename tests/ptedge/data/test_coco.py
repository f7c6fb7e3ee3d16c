"""COCO by hand-written examples: boxes, labels, ignore regions, what is left out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from labelled_files import image, rows, text

from ptedge.data import check_images, open_dataset, require_images
from ptedge.data.coco import write_coco
from ptedge.errors import InputError


def coco(**changes: Any) -> dict[str, Any]:
    document: dict[str, Any] = {
        "categories": [{"id": 7, "name": "bus"}, {"id": 3, "name": "car"}],
        "images": [
            {"id": 20, "file_name": "b.png", "width": 100, "height": 80},
            {"id": 10, "file_name": "a.png", "width": 100, "height": 80},
        ],
        "annotations": [
            {"id": 1, "image_id": 20, "category_id": 7, "bbox": [10, 20, 30, 40]},
            {"id": 2, "image_id": 20, "category_id": 3, "bbox": [-5, 70, 20, 20], "iscrowd": 1},
            {"id": 3, "image_id": 20, "category_id": 3, "bbox": [5, 5, 0, 9]},
            {"id": 4, "image_id": 20, "category_id": 3, "bbox": [100, 5, 9, 9]},
            {"id": 5, "image_id": 20, "category_id": 3, "bbox": [1, 2, 3]},
            {"id": 6, "image_id": 99, "category_id": 3, "bbox": [1, 2, 3, 4]},
            {"id": 7, "image_id": 20, "category_id": 99, "bbox": [1, 2, 3, 4]},
        ],
    }
    return {**document, **changes}


def test_coco__boxes_gaps_in_ids_and_dropped(tmp_path: Path) -> None:
    path = text(tmp_path / "labels.json", json.dumps(coco()))
    image(tmp_path / "images" / "b.png")
    image(tmp_path / "images" / "a.png")
    data = open_dataset(path)
    assert (data.format, data.class_names, len(data), data.num_boxes) == ("coco", ("car", "bus"), 2, 1)
    assert rows(data, 0) == [([10, 20, 40, 60], 1, False), ([0, 70, 15, 80], 0, True)]
    assert rows(data, 1) == []  # an image without objects stays in
    assert [sample.image_id for sample in data.samples] == [20, 10]
    assert data.dropped == {
        "no area": 1,
        "outside the image": 1,
        "malformed box": 1,
        "image id not listed": 1,
        "category id not listed": 1,
    }
    require_images(data)


@pytest.mark.parametrize("place", ["b.png", "images/b.png", "../images/b.png", "../labels/b.png"])
def test_coco__finds_images(tmp_path: Path, place: str) -> None:
    path = text(tmp_path / "annotations" / "set_labels.json", json.dumps(coco()))
    file = image(tmp_path / "annotations" / place)
    assert open_dataset(path).samples[0].path.resolve() == file.resolve()


def test_coco__missing_images_are_listed(tmp_path: Path) -> None:
    data = open_dataset(text(tmp_path / "labels.json", json.dumps(coco())))
    assert check_images(data) == [(tmp_path / "b.png", "missing"), (tmp_path / "a.png", "missing")]
    with pytest.raises(InputError, match=r"2 of 2 image files are missing: .*b\.png"):
        require_images(data)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "not valid JSON"),
        ('{"images": []}', r"neither COCO .* it holds the keys \['images'\]"),
        ("[1]", "a list"),
        (json.dumps(coco(images=[{"id": 1}])), "file_name"),
        (json.dumps(coco(images=[])), "no image"),
        (json.dumps(coco(images=[{"id": 1, "file_name": "a"}] * 2)), "two images"),
        (json.dumps(coco(categories=[])), "no class"),
    ],
)
def test_coco__broken(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        open_dataset(text(tmp_path / "labels.json", content))


def test_write_coco__round_trip(tmp_path: Path) -> None:
    image(tmp_path / "images" / "a.png")
    image(tmp_path / "images" / "b.png")
    data = open_dataset(text(tmp_path / "labels.json", json.dumps(coco())))
    write_coco(data, tmp_path / "out" / "new.json", description="test", licence="MIT")
    document = json.loads((tmp_path / "out" / "new.json").read_text())
    assert document["info"]["description"] == "test" and document["licenses"][0]["name"] == "MIT"
    again = open_dataset(tmp_path / "out" / "new.json")
    assert again.class_names == data.class_names
    assert [rows(again, i) for i in range(2)] == [rows(data, i) for i in range(2)]
    assert again.samples[0].path == data.samples[0].path.resolve()
