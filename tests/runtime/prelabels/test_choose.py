"""What is written for annotation tools, by hand and by ptedge's own readers; the tools' own are in test_tools.py."""

from __future__ import annotations

import json
import os
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from click.testing import CliRunner
from made_field import collect

from ptedge.data import open_dataset
from ptedge.detections import Detections
from ptedge.errors import OutputError
from ptedge.runtime.field import FieldFolder, open_field
from ptedge.runtime.field_cli import FORMATS as OFFERED
from ptedge.runtime.field_cli import field
from ptedge.runtime.prelabels.choose import FORMATS, write_prelabels


def several(i: int) -> Detections:
    """In an image of 80 x 72: a box within, one over the border, one beside the image, one of a low score."""
    return Detections(
        np.array([[10, 20, 30, 60], [60, 50, 100, 90], [90, 10, 120, 30], [0, 0, 40, 40]], np.float32),
        np.array([0.9, 0.6, 0.5, 0.1], np.float32),
        np.zeros(4, np.int64),
        np.array([[1, 2, 3, 4]] * 4, np.float32),
        np.zeros(4, np.float32),
    )


@pytest.fixture
def folder(tmp_path: Path) -> FieldFolder:
    collect(tmp_path / "field", count=2, detections=several)
    return open_field(tmp_path / "field")


def written(folder: FieldFolder, out: Path, form: str) -> Path:
    frames = write_prelabels(folder, out, form, 0.3, "CC0")
    assert (frames.images, frames.boxes) == (2, 4)
    assert {why: count for why, count in frames.left_out.items() if count} == {
        "score below 0.3": 2,
        "smaller than a pixel within the image": 2,
    }
    return out


@pytest.mark.parametrize(("form", "data"), [("coco", "annotations.json"), ("yolo", "data.yaml")])
def test_write_prelabels__our_own_readers_find_the_same_boxes(
    folder: FieldFolder, tmp_path: Path, form: str, data: str
) -> None:
    dataset = open_dataset(written(folder, tmp_path / "out", form) / data)
    assert dataset.class_names == ("car",)
    assert [sample.path.is_file() for sample in dataset.samples] == [True, True]
    for sample in dataset.samples:
        np.testing.assert_allclose(sample.boxes, [[10, 20, 30, 60], [60, 50, 80, 72]], atol=1e-3)


def test_write_prelabels__coco_has_scores_and_sigma(folder: FieldFolder, tmp_path: Path) -> None:
    document = json.loads((written(folder, tmp_path / "out", "coco") / "annotations.json").read_text())
    first = document["annotations"][0]
    assert (first["bbox"], first["score"], first["sigma"]) == ([10, 20, 20, 40], 0.9, [1, 2, 3, 4])
    assert document["licenses"][0]["name"] == "CC0"


def test_write_prelabels__yolo_lines(folder: FieldFolder, tmp_path: Path) -> None:
    out = written(folder, tmp_path / "out", "yolo")
    lines = sorted((out / "labels" / "train").glob("*.txt"))[0].read_text().splitlines()
    # (10 + 30) / 2 / 80, (20 + 60) / 2 / 72, 20 / 80, 40 / 72
    assert lines[0] == "0 0.250000 0.555556 0.250000 0.555556"
    assert len(lines) == 2


def test_write_prelabels__cvat(folder: FieldFolder, tmp_path: Path) -> None:
    out = written(folder, tmp_path / "out", "cvat")
    root = ElementTree.fromstring((out / "annotations.xml").read_text())
    assert [label.text for label in root.findall("meta/task/labels/label/name")] == ["car"]
    image = root.findall("image")[1]
    assert image.attrib["id"] == "1" and (out / "images" / image.attrib["name"]).is_file()
    box = image.findall("box")[1]
    assert [box.attrib[side] for side in ("xtl", "ytl", "xbr", "ybr")] == ["60.00", "50.00", "80.00", "72.00"]
    values = {attribute.attrib["name"]: attribute.text for attribute in box}
    assert values == {"score": "0.6000", "sigma_x1": "1.00", "sigma_y1": "2.00", "sigma_x2": "3.00", "sigma_y2": "4.00"}


def test_write_prelabels__label_studio(folder: FieldFolder, tmp_path: Path) -> None:
    out = written(folder, tmp_path / "out", "labelstudio")
    task = json.loads((out / "tasks.json").read_text())[0]
    name = task["data"]["image"].removeprefix("/data/local-files/?d=images/")
    assert (out / "images" / name).is_file()
    region = task["predictions"][0]["result"][0]
    assert region["value"]["x"] == 12.5 and region["value"]["width"] == 25  # of 80 pixels
    assert region["value"]["y"] == 27.7778 and region["value"]["height"] == 55.5556  # of 72
    assert (region["score"], region["meta"]["sigma"]) == (0.9, [1, 2, 3, 4])
    assert task["predictions"][0]["score"] == 0.75  # of the two that are there


def test_write_prelabels__fiftyone(folder: FieldFolder, tmp_path: Path) -> None:
    out = written(folder, tmp_path / "out", "fiftyone")
    document = json.loads((out / "labels.json").read_text())
    assert document["classes"] == ["car"]
    name, boxes = next(iter(document["labels"].items()))
    assert (out / "data" / f"{name}.jpg").is_file()
    assert boxes[1]["bounding_box"] == [0.75, 0.694444, 0.25, 0.305556]
    assert (boxes[1]["label"], boxes[1]["confidence"], boxes[1]["attributes"]["sigma_y2"]) == (0, 0.6, 4)


@pytest.mark.parametrize("form", FORMATS)
def test_write_prelabels__hostile_class_names_stay_names(tmp_path: Path, form: str) -> None:
    collect(tmp_path / "field", count=1)
    about = json.loads((tmp_path / "field" / "field.json").read_text())
    name = "<a href='x'>\"&: 'ü"
    about["class_names"] = [name]
    (tmp_path / "field" / "field.json").write_text(json.dumps(about))
    out = tmp_path / "out"
    write_prelabels(open_field(tmp_path / "field"), out, form, 0.3, "CC0")
    if form == "cvat":
        root = ElementTree.fromstring((out / "annotations.xml").read_text())
        assert (
            root.findall("image/box")[0].attrib["label"] == root.findall("meta/task/labels/label/name")[0].text == name
        )
    elif form == "labelstudio":
        root = ElementTree.fromstring((out / "label_config.xml").read_text())
        assert root.findall("RectangleLabels/Label")[0].attrib["value"] == name
    elif form == "fiftyone":
        assert json.loads((out / "labels.json").read_text())["classes"] == [name]
    else:
        assert open_dataset(out / {"coco": "annotations.json", "yolo": "data.yaml"}[form]).class_names == (name,)


def test_write_prelabels__images_are_the_same_files_or_copies(
    folder: FieldFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError("another disk")

    source = next((folder.path / "images").iterdir())
    assert os.path.samefile(source, written(folder, tmp_path / "linked", "coco") / "images" / source.name)
    monkeypatch.setattr(os, "link", refuse)
    copy = written(folder, tmp_path / "copied", "coco") / "images" / source.name
    assert not os.path.samefile(source, copy) and copy.read_bytes() == source.read_bytes()
    source.unlink()
    with pytest.raises(OutputError, match=source.name):
        write_prelabels(folder, tmp_path / "gone", "coco", 0.3, "CC0")


def test_write_prelabels__labels_corrected_by_hand_are_not_written_over(folder: FieldFolder, tmp_path: Path) -> None:
    out = written(folder, tmp_path / "out", "cvat")
    with pytest.raises(OutputError, match="is not an empty folder"):
        write_prelabels(folder, out, "cvat", 0.3, "CC0")


def test_export__to_a_folder_tells_what_it_left_out(folder: FieldFolder, tmp_path: Path) -> None:
    assert OFFERED == FORMATS
    words = ["export", str(folder.path), "--to", "yolo", "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(field, words, catch_exceptions=False)
    assert done.exit_code == 0
    assert "2 images, 4 boxes" in done.output
    assert "boxes left out: 2 score below 0.3, 2 smaller than a pixel" in done.output
