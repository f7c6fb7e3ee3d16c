"""Every format by a hand-written example: boxes, labels, ignore regions, what is left out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from places import SHARED

from ptedge.data import Dataset, check_images, open_dataset, require_images
from ptedge.data.coco import write_coco
from ptedge.errors import ConfigError, InputError


def image(path: Path, width: int = 100, height: int = 80) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    assert cv2.imwrite(str(path), np.zeros((height, width, 3), np.uint8))
    return path


def text(path: Path, content: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, "utf-8")
    return path


def rows(dataset: Dataset, i: int = 0) -> list[tuple[list[float], int, bool]]:
    sample = dataset.samples[i]
    assert sample.boxes.dtype == np.float32 and sample.boxes.shape == (len(sample.labels), 4)
    assert sample.labels.dtype == np.int64 and sample.ignore.dtype == np.bool_
    return list(zip(sample.boxes.tolist(), sample.labels.tolist(), sample.ignore.tolist(), strict=True))


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


def cityscapes(root: Path) -> None:
    objects = [
        {"label": "road", "polygon": [[0, 0], [99, 0], [99, 79]]},
        {"label": "car", "polygon": [[10, 20], [30, 15], [25, 50], [-3, 40]]},
        {"label": "cargroup", "polygon": [[50, 50], [60, 50], [60, 70]]},
        {"label": "bicycle", "polygon": [[1, 1], [4, 1], [4, 5]], "deleted": 1},
    ]
    document = {"imgWidth": 100, "imgHeight": 80, "objects": objects}
    text(root / "gtFine" / "val" / "ulm" / "ulm_01_gtFine_polygons.json", json.dumps(document))


def test_cityscapes__polygons_and_groups(tmp_path: Path) -> None:
    cityscapes(tmp_path)
    file = image(tmp_path / "leftImg8bit" / "val" / "ulm" / "ulm_01_leftImg8bit.png")
    toml = text(tmp_path / "d.toml", 'format = "cityscapes"\nsplit = "val"')
    data = open_dataset(toml)
    assert data.class_names == ("person", "rider", "car", "truck", "bus", "train", "motorcycle", "bicycle")
    assert rows(data) == [([0, 15, 30, 50], 2, False), ([50, 50, 60, 70], 2, True)]
    assert data.samples[0].path == file and data.dropped == {}
    with pytest.raises(InputError, match=r"gtFine has no split to train on .*it names \['val'\]"):
        open_dataset(text(tmp_path / "t.toml", 'format = "cityscapes"'), use="train")
    with pytest.raises(InputError, match="looks like Cityscapes"):
        open_dataset(tmp_path)


def test_cityscapes__foggy(tmp_path: Path) -> None:
    cityscapes(tmp_path)
    folder = tmp_path / "leftImg8bit_foggy" / "val" / "ulm"
    file = image(folder / "ulm_01_leftImg8bit_foggy_beta_0.02.png")
    head = 'format = "foggy_cityscapes"\nsplit = "val"\nclasses = ["car"]\n'
    data = open_dataset(text(tmp_path / "d.toml", head + "beta = 0.02"))
    assert (data.format, data.class_names) == ("foggy_cityscapes", ("car",)) and data.samples[0].path == file
    with pytest.raises(ConfigError, match=r"beta is 0\.03"):
        open_dataset(text(tmp_path / "d.toml", head + "beta = 0.03"))


def test_bdd100k__boxes_crowd_and_ignored_categories(tmp_path: Path) -> None:
    corners = {"x1": 1.5, "y1": 2, "x2": 30, "y2": 40}
    labels = [
        {"category": "car", "box2d": corners, "attributes": {"crowd": False}},
        {"category": "car", "box2d": corners, "attributes": {"crowd": True}},
        {"category": "trailer", "box2d": corners},
        {"category": "bus", "poly2d": [{"vertices": [[5, 6], [9, 3]], "closed": True}, {"vertices": [[2, 8]]}]},
        {"category": "lane/road curb", "poly2d": [{"vertices": [[5, 6], [9, 3]], "closed": False}]},
        {"category": "car"},
    ]
    frames = [{"name": "a.jpg", "videoName": "v", "labels": labels}, {"name": "b.jpg", "labels": None}]
    path = text(tmp_path / "labels.json", json.dumps(frames))
    file = image(tmp_path / "images" / "v" / "a.jpg")
    data = open_dataset(path)
    assert (data.format, data.class_names, data.dropped) == ("bdd100k", ("bus", "car"), {"malformed box": 1})
    assert rows(data) == [
        ([1.5, 2, 30, 40], 1, False),
        ([1.5, 2, 30, 40], 1, True),
        ([1.5, 2, 30, 40], -1, True),
        ([2, 3, 9, 8], 0, False),
    ]
    assert data.samples[0].path == file and rows(data, 1) == []


@pytest.mark.skipif(not (SHARED / "carla_to_road").is_dir(), reason="shared/data/carla_to_road is absent")
def test_real__carla_in_three_formats() -> None:
    source = SHARED / "carla_to_road" / "source"
    data = open_dataset(source / "train.json", class_names=["car"])
    assert (len(data), data.num_boxes, data.dropped) == (580, 1105, {})
    require_images(data)
    assert data.samples[0].boxes.tolist() == [[241, 181, 287, 218], [314, 193, 324, 201]]
    road = open_dataset(SHARED / "carla_to_road" / "target" / "val.json")
    assert (len(road), road.num_boxes) == (124, 93)
    voc, yolo_data = open_dataset(source / "voc"), open_dataset(source / "yolo")
    require_images(voc)
    assert len(voc) == len(yolo_data) == 40
    assert set(voc.class_names) == set(yolo_data.class_names)
    boxes = {sample.path.name: sample.boxes for sample in yolo_data.samples}
    for sample in voc.samples:  # the YOLO labels were made with another rounding: half a pixel in all
        np.testing.assert_allclose(sample.boxes, boxes[sample.path.name], atol=1.01)


@pytest.mark.skipif(not (SHARED / "formats").is_dir(), reason="shared/data/formats is absent")
def test_real__kitti_and_bdd100k() -> None:
    data = open_dataset(SHARED / "formats" / "kitti")
    require_images(data)
    assert data.class_names == ("Car", "Cyclist", "Pedestrian", "Truck")
    np.testing.assert_allclose(data.samples[0].boxes[0], [599.41, 156.40, 629.75, 189.25], rtol=1e-6)
    bdd = open_dataset(SHARED / "formats" / "bdd100k" / "example_ignore_annotation.json")
    assert (len(bdd), bdd.class_names, bdd.samples[0].ignore.tolist()) == (2, ("person",), [True, False])
