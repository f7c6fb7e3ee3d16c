"""A run's folder as the loop logs it, for tests of what is read from it and drawn."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from ptedge.training.watch.guard import Trip

TRIP = asdict(Trip(4, "max_boxes_ratio", 6.0, 4.0, "rollback", 2, 0.2))


def write_run(folder: Path, count: int = 8) -> Path:
    """A run of source-free adaptation as the loop logs it."""
    folder.mkdir(parents=True)
    lines: list[dict[str, Any]] = []
    for step in range(1, count + 1):
        line: dict[str, Any] = {"step": step, "loss": 1 / step, "target_rpn_cls": 0.1, "lr": 1e-4, "grad_norm": 5.0}
        line |= {"pseudo_boxes": 5.0, "class_entropy": 0.3, "box_variance": 0.5, "class_weight": 0.6, "box_weight": 0.4}
        line["anchors"] = [[16.0 + step, 16.0], [32.0, 30.0]]
        line["monitor"] = {"boxes": 4.0, "classes": [0.5, 0.5], "source_agreement": 0.9, "sigma": None}
        if step == 4:
            line["guard"] = TRIP
        lines.append(line)
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (folder / "metrics.jsonl").write_text(text + '{"step": 9, "lo', "utf-8")  # killed while it wrote
    return folder


def is_picture(path: Path) -> bool:
    """Whether a file is a PNG that is neither small nor empty."""
    picture = cv2.imread(str(path))
    return picture is not None and min(picture.shape[:2]) > 200 and len(np.unique(picture)) > 20
