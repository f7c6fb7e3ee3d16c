"""What annotation tools give back, in the folders and with the keys that they use, is read as it is."""

from __future__ import annotations

import json
from pathlib import Path

import cv2
import numpy as np
import pytest

from ptedge.data import open_dataset

NAMES = ("00000001_a.jpg", "00000002_b.jpg")  # as a field folder calls them
BOX = [10.0, 20.0, 30.0, 60.0]
COCO_EXTRA = {"segmentation": [], "area": 800.0, "iscrowd": 0, "attributes": {"occluded": False, "score": "0.9"}}
VOC = """<annotation><folder/><filename>{name}</filename><size><width>80</width><height>72</height><depth/></size>
<segmented>0</segmented><object><name>car</name><truncated>0</truncated><occluded>0</occluded><difficult>0</difficult>
<bndbox><xmin>10.0</xmin><ymin>20.0</ymin><xmax>30.0</xmax><ymax>60.0</ymax></bndbox></object></annotation>"""
LINE = "0 0.250000 0.555556 0.250000 0.555556\n"


def pictures(folder: Path) -> None:
    folder.mkdir(parents=True)
    for name in NAMES:
        cv2.imwrite(str(folder / name), np.zeros((72, 80, 3), np.uint8))


def coco(first_id: int = 1, prefix: str = "", **extra: object) -> str:
    images = [
        {"id": i, "file_name": prefix + n, "width": 80, "height": 72} for i, n in enumerate(NAMES, start=first_id)
    ]
    boxes = [
        {"id": i, "image_id": image["id"], "category_id": first_id, "bbox": [10, 20, 20, 40], **extra}
        for i, image in enumerate(images)
    ]
    return json.dumps({"images": images, "annotations": boxes, "categories": [{"id": first_id, "name": "car"}]})


def cvat_coco(folder: Path) -> Path:
    """CVAT, COCO 1.0, unpacked into the folder that ``field export --to cvat`` wrote: its images are there already."""
    pictures(folder / "images")
    (folder / "annotations").mkdir()
    (folder / "annotations" / "instances_default.json").write_text(coco(**COCO_EXTRA))
    return folder / "annotations" / "instances_default.json"


def cvat_coco_with_images(folder: Path) -> Path:
    pictures(folder / "images" / "default")
    (folder / "annotations").mkdir()
    (folder / "annotations" / "instances_default.json").write_text(coco(**COCO_EXTRA))
    return folder / "annotations" / "instances_default.json"


def cvat_yolo(folder: Path) -> Path:
    """CVAT, YOLO 1.1."""
    pictures(folder / "obj_train_data")
    for name in NAMES:
        (folder / "obj_train_data" / f"{Path(name).stem}.txt").write_text(LINE)
    (folder / "obj.names").write_text("car\n")
    (folder / "obj.data").write_text("classes = 1\ntrain = data/train.txt\nnames = data/obj.names\nbackup = backup/\n")
    (folder / "train.txt").write_text("".join(f"data/obj_train_data/{name}\n" for name in NAMES))
    return folder / "obj.data"


def cvat_ultralytics(folder: Path) -> Path:
    """CVAT, Ultralytics YOLO Detection 1.0."""
    pictures(folder / "images" / "train")
    (folder / "labels" / "train").mkdir(parents=True)
    for name in NAMES:
        (folder / "labels" / "train" / f"{Path(name).stem}.txt").write_text(LINE)
    (folder / "data.yaml").write_text("names:\n  0: car\npath: .\ntrain: train.txt\n")
    (folder / "train.txt").write_text("".join(f"data/images/train/{name}\n" for name in NAMES))
    return folder / "data.yaml"


def cvat_voc(folder: Path) -> Path:
    """CVAT, Pascal VOC 1.1."""
    pictures(folder / "JPEGImages")
    for part in ("Annotations", "ImageSets/Main"):
        (folder / part).mkdir(parents=True)
    for name in NAMES:
        (folder / "Annotations" / f"{Path(name).stem}.xml").write_text(VOC.format(name=name))
    (folder / "ImageSets" / "Main" / "default.txt").write_text("".join(f"{Path(name).stem}\n" for name in NAMES))
    (folder / "labelmap.txt").write_text("# label:color_rgb:parts:actions\nbackground:::\ncar:128,0,0::\n")
    return folder


def label_studio_coco(folder: Path) -> Path:
    """Label Studio, COCO with images: ids from 0, names with their folder."""
    pictures(folder / "images")
    (folder / "result.json").write_text(coco(0, "images/", segmentation=[], ignore=0, iscrowd=0, area=800))
    return folder / "result.json"


def fiftyone_coco(folder: Path) -> Path:
    """FiftyOne, COCODetectionDataset."""
    pictures(folder / "data")
    (folder / "labels.json").write_text(coco(0, supercategory=None, **COCO_EXTRA))
    return folder / "labels.json"


@pytest.mark.parametrize(
    "layout",
    [cvat_coco, cvat_coco_with_images, cvat_yolo, cvat_ultralytics, cvat_voc, label_studio_coco, fiftyone_coco],
)
def test_open_dataset__reads_what_a_tool_gives_back(layout: object, tmp_path: Path) -> None:
    dataset = open_dataset(layout(tmp_path / "back"))  # type: ignore[operator]
    assert tuple(dataset.class_names) == ("car",)
    assert [sample.path.name for sample in dataset.samples] == list(NAMES)
    for sample in dataset.samples:
        assert sample.path.is_file()
        np.testing.assert_allclose(sample.boxes, [BOX], atol=1.0 if layout is cvat_voc else 1e-2)
