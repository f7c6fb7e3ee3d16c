"""BDD100k by hand-written examples: boxes, labels, ignore regions, what is left out."""

from __future__ import annotations

import json
from pathlib import Path

from labelled_files import image, rows, text

from ptedge.data import open_dataset


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
