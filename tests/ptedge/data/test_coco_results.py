"""Detections as COCO json; what the sink of a run makes of it is in the runtime's tests."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from ptedge.data.coco_results import CocoWriter, coco_results
from ptedge.detections import Detections
from ptedge.errors import OutputError

FOUND = Detections(
    np.array([[10, 20, 40.125, 60], [1, 2, 3, 4]], np.float32),
    np.array([0.9, 0.5], np.float32),
    np.array([0, 1]),
    np.array([[1, 2, 3, 4], [0.5, 0.5, 0.5, 0.5]], np.float32),
    np.array([0.25, 0.75], np.float32),
)


def test_coco_results__a_list_beside_a_ground_truth() -> None:
    found = coco_results([FOUND, Detections.empty()], ["a", "b"], [3, 7])
    assert found == [
        {"image_id": "a", "category_id": 3, "bbox": [10, 20, 30.125, 40], "score": 0.9, "sigma": [1, 2, 3, 4]},
        {"image_id": "a", "category_id": 7, "bbox": [1, 2, 2, 2], "score": 0.5, "sigma": [0.5] * 4},
    ]


def test_coco_writer__the_document(tmp_path: Path) -> None:
    writer = CocoWriter(tmp_path / "d.json", ("car", "Fußgänger"), "test", "MIT")
    writer.add("a.jpg", 120, 80, FOUND)
    writer.add("b.jpg", 90, 60, Detections.empty())
    assert not list(tmp_path.iterdir())  # spooled to files without a name
    writer.close()
    document = json.loads((tmp_path / "d.json").read_text("utf-8"))
    assert list(document) == ["info", "licenses", "categories", "images", "annotations"]
    assert document["info"].pop("date_created") and document["info"].pop("version").startswith("ptedge ")
    assert document == {
        "info": {"description": "test"},
        "licenses": [{"id": 1, "name": "MIT", "url": ""}],
        "categories": [{"id": 1, "name": "car"}, {"id": 2, "name": "Fußgänger"}],
        "images": [
            {"id": 1, "file_name": "a.jpg", "width": 120, "height": 80, "license": 1},
            {"id": 2, "file_name": "b.jpg", "width": 90, "height": 60, "license": 1},
        ],
        "annotations": [
            {
                **{"id": 1, "image_id": 1, "category_id": 1, "bbox": [10, 20, 30.12, 40], "area": 1205, "iscrowd": 0},
                **{"score": 0.9, "sigma": [1, 2, 3, 4]},
            },
            {
                **{"id": 2, "image_id": 1, "category_id": 2, "bbox": [1, 2, 2, 2], "area": 4, "iscrowd": 0},
                **{"score": 0.5, "sigma": [0.5] * 4},
            },
        ],
    }


def test_coco_writer__place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot write"):
        CocoWriter(tmp_path / "file" / "x.json", ("car",), "test")
