"""The readers of the annotation tools themselves read what is written for them; each is skipped where it is absent."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_field import collect, found

from ptedge.data import open_dataset
from ptedge.runtime.field import open_field
from ptedge.runtime.prelabels.choose import write_prelabels

# the packages of others warn about themselves
pytestmark = pytest.mark.filterwarnings("ignore")
BOX, SIGMA = [0, 0, 10, 40], 1.5


@pytest.fixture
def exported(tmp_path: Path) -> Any:
    """Writes two images of 80 x 72 with one box each as a format, and returns the folder."""

    def export(form: str) -> Path:
        collect(tmp_path / "field", count=2, detections=lambda i: found(sigma=SIGMA))
        write_prelabels(open_field(tmp_path / "field"), tmp_path / "out", form, 0.3, "CC0")
        return tmp_path / "out"

    return export


def package(name: str, submodule: str | None = None) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip(submodule or name, reason=f"{name} is not installed", exc_type=ImportError)


@pytest.mark.parametrize(("form", "theirs"), [("cvat", "cvat"), ("coco", "coco"), ("yolo", "yolo")])
def test_datumaro__reads(exported: Any, form: str, theirs: str) -> None:
    datumaro = package("datumaro")
    out = exported(form)
    if form == "coco":  # datumaro wants its own names of folders
        (out / "annotations").mkdir()
        (out / "annotations.json").rename(out / "annotations" / "instances_default.json")
    dataset = datumaro.Dataset.import_from(str(out), theirs)
    items = list(dataset)
    assert len(items) == 2
    for item in items:
        assert tuple(item.media.size) == (72, 80)  # height, width
        (box,) = item.annotations
        np.testing.assert_allclose(box.points, BOX, atol=0.01)
        label = dataset.categories()[datumaro.AnnotationType.label][box.label].name
        assert label == "car"
        if form == "cvat":
            assert float(box.attributes["score"]) == pytest.approx(0.8)
            assert float(box.attributes["sigma_x2"]) == SIGMA
    if form == "coco":
        assert box.attributes["score"] == pytest.approx(0.8)


def test_datumaro__what_cvat_gives_back_is_read_here(exported: Any, tmp_path: Path) -> None:
    datumaro = package("datumaro")
    dataset = datumaro.Dataset.import_from(str(exported("cvat")), "cvat")
    dataset.transform("random_split", splits=[("train", 0.5), ("val", 0.5)])  # its YOLO wants both
    for theirs in ("coco_instances", "voc_detection", "yolo_ultralytics"):
        back = tmp_path / theirs
        dataset.export(str(back), theirs, save_media=True)
        where = {"coco_instances": back / "annotations" / "instances_train.json"}.get(theirs, back)
        read = open_dataset(where, split=None if theirs == "coco_instances" else "train")
        assert "car" in read.class_names, theirs
        (sample,) = read.samples
        assert sample.path.is_file()
        np.testing.assert_allclose(sample.boxes, [BOX], atol=1.01 if theirs == "voc_detection" else 0.05)


def test_label_studio__accepts_tasks_and_gives_them_back_as_coco(exported: Any, tmp_path: Path) -> None:
    interface = package("label-studio-sdk", "label_studio_sdk.label_interface")
    converter = package("label-studio-sdk", "label_studio_sdk.converter")
    out = exported("labelstudio")
    config = (out / "label_config.xml").read_text()
    tasks = json.loads((out / "tasks.json").read_text())
    project = interface.LabelInterface(config)
    project.validate()
    for task in tasks:
        assert project.validate_task({"data": task["data"]})
        assert all(project.validate_prediction(prediction) for prediction in task["predictions"])
    # as if every prediction had been accepted
    accepted = [
        {"id": i, "data": task["data"], "annotations": [{"id": i, "completed_by": {"id": 1}, **task["predictions"][0]}]}
        for i, task in enumerate(tasks)
    ]
    (tmp_path / "tasks.json").write_text(json.dumps(accepted))
    made = converter.Converter(config, str(tmp_path), download_resources=False)
    made.convert_to_coco(str(tmp_path / "tasks.json"), str(tmp_path / "back"), str(out / "images"), is_dir=False)
    document = json.loads((tmp_path / "back" / "result.json").read_text())
    assert [category["name"] for category in document["categories"]] == ["car"]
    np.testing.assert_allclose([entry["bbox"] for entry in document["annotations"]], [BOX] * 2, atol=0.01)


def test_ultralytics__finds_nothing_wrong_with_the_labels(exported: Any) -> None:
    verify = package("ultralytics", "ultralytics.data.utils").verify_image_label
    out = exported("yolo")
    for image in sorted((out / "images" / "train").iterdir()):
        label = out / "labels" / "train" / f"{image.stem}.txt"
        _, boxes, shape, _, _, missing, found_, empty, corrupt, message = verify(
            (str(image), str(label), "", False, 1, 0, 0, False)
        )
        assert (missing, found_, empty, corrupt, message) == (0, 1, 0, 0, "")
        assert shape == (72, 80)
        np.testing.assert_allclose(boxes, [[0, 5 / 80, 20 / 72, 10 / 80, 40 / 72]], atol=1e-5)


def test_fiftyone__its_importer_reads(exported: Any) -> None:
    importers = package("fiftyone", "fiftyone.utils.data.importers")
    importer = importers.FiftyOneImageDetectionDatasetImporter(dataset_dir=str(exported("fiftyone")))
    importer.setup()
    read = list(importer)
    assert len(read) == 2
    for path, _, detections in read:
        assert Path(path).is_file()
        (box,) = detections.detections
        np.testing.assert_allclose(box.bounding_box, [0, 0, 10 / 80, 40 / 72], atol=1e-5)
        assert (box.label, box.confidence) == ("car", pytest.approx(0.8))
        assert box["sigma_x1"] == SIGMA
