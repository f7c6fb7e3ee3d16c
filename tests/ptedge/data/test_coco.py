"""COCO by hand-written examples: boxes, labels, ignore regions, what is left out."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from labelled_files import image, rows, text

from ptedge.data import check_images, open_dataset, require_images
from ptedge.data.coco import coco_category_ids, write_coco
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


def one_box(path: Path, size: tuple[int, int] = (200, 120), file_name: str = "a.png", **changes: Any) -> Path:
    """A COCO file with one car [40 30 60 60] (x y w h) in one image; a change to ``None`` takes the key away."""
    entry = {"id": 1, "image_id": 1, "category_id": 1, "bbox": [40, 30, 60, 60], **changes}
    document = {
        "images": [{"id": 1, "file_name": file_name, "width": size[0], "height": size[1]}],
        "annotations": [{key: value for key, value in entry.items() if value is not None}],
        "categories": [{"id": 1, "name": "car"}],
    }
    return text(path, json.dumps(document))


@pytest.mark.parametrize(("value", "ignore"), [*((v, False) for v in ("0", [0], False, 0, "")), ("1", True), (1, True)])
def test_coco__forms_of_iscrowd(tmp_path: Path, value: object, ignore: bool) -> None:
    data = open_dataset(one_box(tmp_path / "a.json", iscrowd=value))
    assert rows(data) == [([40, 30, 100, 90], 0, ignore)]


@pytest.mark.parametrize("value", [2, "2", [0, 1], {}, "crowd", -1])
def test_coco__iscrowd_that_is_neither(tmp_path: Path, value: object) -> None:
    data = open_dataset(one_box(tmp_path / "a.json", iscrowd=value))
    assert rows(data) == [] and data.dropped == {"iscrowd is neither 0 nor 1": 1}


def test_coco__a_box_around_the_outline(tmp_path: Path) -> None:
    outline = [40, 30, 100, 30, 100, 90, 40, 90]
    for bbox, given in ((None, [outline]), (None, [outline[:6], outline[2:]]), ([], [outline])):
        data = open_dataset(one_box(tmp_path / "a.json", bbox=bbox, segmentation=given))
        assert rows(data) == [([40, 30, 100, 90], 0, False)]
    rle = open_dataset(one_box(tmp_path / "a.json", bbox=None, segmentation={"size": [120, 200], "counts": "abc"}))
    assert rle.dropped == {"no bbox, and a mask in RLE": 1}
    for given in ([], None, [[1, 2, 3]], [[1, 2, 3, 4, 5, "a"]], "abc", [outline, 3]):
        data = open_dataset(one_box(tmp_path / "a.json", bbox=None, segmentation=given))
        assert data.dropped == {"malformed box": 1}


def ids(path: Path, image_id: Any, category_id: Any, image: Any, category: Any) -> Path:
    document = {
        "images": [{"id": image, "file_name": "a.png", "width": 200, "height": 120}],
        "annotations": [{"image_id": image_id, "category_id": category_id, "bbox": [40, 30, 60, 60]}],
        "categories": [{"id": 9, "name": "bus"}, {"id": category, "name": "car"}],
    }
    return text(path, json.dumps(document))


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ((7, "1", "7", 1), ("car", "bus")),
        (("7", 1.0, 7, "1"), ("car", "bus")),
        (("x", "car", "x", "car"), ("bus", "car")),  # text after numbers
        ((7, 10, 7, 10), ("bus", "car")),  # 9 before 10
    ],
)
def test_coco__ids_as_text_find_those_as_numbers(
    tmp_path: Path, given: tuple[Any, ...], names: tuple[str, ...]
) -> None:
    data = open_dataset(ids(tmp_path / "a.json", *given))
    assert data.class_names == names and rows(data) == [([40, 30, 100, 90], names.index("car"), False)]
    assert data.samples[0].image_id == given[2]
    assert coco_category_ids(tmp_path / "a.json", ["car", "bus"]) == [given[1] if given[1] in ("car", 10) else 1, 9]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((1, 1, [1], 1), r"image 0 has the id \[1\]"),
        ((1, 1, None, 1), "image 0 has the id None"),
        ((1, 1, 1, None), "category 1 has the id None"),
        ((1, 1, 1, "9"), "two categories have the id 9"),
    ],
)
def test_coco__ids_that_are_none(tmp_path: Path, given: tuple[Any, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        open_dataset(ids(tmp_path / "a.json", *given))


def test_coco__an_annotation_with_an_unhashable_id_is_counted(tmp_path: Path) -> None:
    data = open_dataset(ids(tmp_path / "a.json", [1], {"a": 1}, 1, 1))
    assert data.dropped == {"image id not listed": 1}


def test_coco__units_of_boxes(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"relative to the image; coco counts pixels"):
        open_dataset(one_box(tmp_path / "a.json", bbox=[0.2, 0.25, 0.3, 0.5]))
    corners = open_dataset(one_box(tmp_path / "a.json", bbox=[40, 30, 100, 90]))
    assert corners.notes == {"box that could be x1 y1 x2 y2, as all here; COCO has x y width height": 1}
    over = open_dataset(one_box(tmp_path / "a.json", bbox=[40, 30, 180, 60]))
    assert set(over.notes) == {"box cut at the image's border (more than 1 pixel over)", *corners.notes}
    for bbox in ([60, 30, 60, 60], [0, 30, 60, 60], [40, 0, 60, 60], [40, 30, 60, 20]):
        assert not open_dataset(one_box(tmp_path / "a.json", bbox=bbox)).notes
    for bbox in ([40, 30, 250, 60], [40, 30, 60, 150]):  # no corners: they would lie outside
        notes = open_dataset(one_box(tmp_path / "a.json", bbox=bbox)).notes
        assert notes == {"box cut at the image's border (more than 1 pixel over)": 1}


@pytest.mark.parametrize("place", ["images/train", "train", "images", "."])
def test_coco__the_part_in_the_name_of_the_json(tmp_path: Path, place: str) -> None:
    file = image(tmp_path / place / "a.png", 200, 120)
    data = open_dataset(one_box(tmp_path / "annotations" / "instances_train.json"))
    assert data.samples[0].path.resolve() == file.resolve()


@pytest.mark.parametrize("name", [None, 3.5, [], "", {"a": 1}])
def test_coco__a_file_name_that_is_none(tmp_path: Path, name: Any) -> None:
    with pytest.raises(InputError, match="image 0 has the file_name"):
        open_dataset(one_box(tmp_path / "a.json", file_name=name))


def test_write_coco__a_name_that_no_json_can_hold(tmp_path: Path) -> None:
    image(tmp_path / "a.png", 200, 120)
    data = open_dataset(one_box(tmp_path / "a.json"))
    odd = replace(data.samples[0], path=Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.png")))
    with pytest.raises(InputError, match="is no UTF-8 text"):
        write_coco(replace(data, samples=(odd,)), tmp_path / "b.json")
