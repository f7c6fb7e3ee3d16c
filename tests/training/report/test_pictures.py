from __future__ import annotations

import base64
import json
from pathlib import Path

import cv2
import numpy as np
import pytest
from made_findings import Frames, boxes

from ptedge.detections import Detections
from ptedge.training.report.pictures import (
    Model,
    View,
    compare,
    difference_of,
    doubt_of,
    least_sure,
    most_changed,
    read_answers,
)


def test_doubt_of__one_for_a_score_of_a_half() -> None:
    assert doubt_of(boxes((0, 0, 9, 9), score=0.5)) == pytest.approx(1)
    assert doubt_of(boxes((0, 0, 9, 9), (0, 0, 5, 5), score=0.9)) == pytest.approx(2 * 0.36)
    assert doubt_of(Detections.empty()) == 0


def test_difference_of__boxes_without_a_partner() -> None:
    one = boxes((0, 0, 10, 10), (50, 50, 60, 60))
    assert difference_of(one, boxes((0, 0, 10, 10))) == 1
    assert difference_of(one, Detections.empty()) == 2
    assert difference_of(one, boxes((0, 0, 10, 10), (90, 90, 99, 99))) == 2
    other_class = boxes((0, 0, 10, 10), (50, 50, 60, 60))
    other_class.labels[:] = 1
    assert difference_of(one, other_class) == 4


def test_compare__draws_each_model_in_its_colour_at_one_size() -> None:
    box = {"b": boxes((20, 20, 60, 60)), "a": Detections.empty()}
    models = [Model("source", (255, 0, 0), answers=box), Model("adapted", (0, 0, 255), answers=box)]
    views = compare(models, Frames(["a", "b"]), ("car",), 9)  # type: ignore[arg-type]
    assert [view.name for view in views] == ["a", "b"]
    data = [base64.b64decode(uri.partition(",")[2]) for uri in views[1].pictures]
    red, blue = (cv2.imdecode(np.frombuffer(d, np.uint8), cv2.IMREAD_COLOR) for d in data)
    assert red is not None and blue is not None
    assert red.shape == blue.shape == (384, 640, 3)  # 120 x 200 made 640 wide
    side = slice(80, 180), 64  # the left side of the box, 20 * 3.2 from the left
    assert red[side][:, 2].mean() > red[side][:, 0].mean() + 90
    assert blue[side][:, 0].mean() > blue[side][:, 2].mean() + 90


def test_most_changed__keeps_the_order_of_frames() -> None:
    def view(name: str, more: int) -> View:
        return View(
            name,
            (boxes((0, 0, 9, 9)), boxes(*[(0, 0, 9, 9)] + [(50.0 * i, 50, 50.0 * i + 9, 59) for i in range(more)])),
            float(more),
            ("", ""),
        )

    views = [view("a", 0), view("b", 3), view("c", 1), view("d", 2)]
    assert [v.name for v in most_changed(views, 2)] == ["b", "d"]
    assert [v.name for v in least_sure(views, 9)] == ["b", "d", "c"]  # none without a doubt


def test_read_answers__passes_over_broken_lines_and_other_classes(tmp_path: Path) -> None:
    good = {"file": "images/1.jpg", "model": "ab" * 32, "detections": boxes((0, 0, 9, 9)).to_json(["car"])}
    other = {**good, "file": "images/2.jpg", "detections": [{**good["detections"][0], "label": 7}]}  # type: ignore[dict-item]
    lines = [json.dumps(good), json.dumps(other), "{", '{"file": 3, "detections": []}', "[]"]
    (tmp_path / "frames.jsonl").write_text("\n".join(lines))
    answers, models = read_answers(tmp_path, 1)
    assert list(answers) == ["1.jpg"] and models == {"ab" * 32}
    assert read_answers(tmp_path / "none", 1) == ({}, set())
