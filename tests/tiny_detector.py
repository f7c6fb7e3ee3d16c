"""A detector small enough for tests: a backbone of two convolutions, and a few labelled pictures."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from torch import nn

from ptedge.detector.backbone import BUILDERS, Stages
from ptedge.detector.config import ModelConfig
from ptedge.detector.roi_heads import ROIHead

NAME = "efficientnet_lite0"  # the name under which tests put the tiny backbone
HEIGHT, WIDTH = 64, 96
CLASS_NAMES = ("car", "person")
COLOURS = ((200, 40, 40), (40, 80, 220))  # BGR, by label


def tiny_builder() -> tuple[nn.Module, Stages, int]:
    """Two stages of stride 4 with BatchNorm, 8 channels out."""
    body = nn.Module()
    layers = nn.Sequential(
        nn.Conv2d(3, 4, 5, stride=4, padding=2),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.Conv2d(4, 8, 5, stride=4, padding=2),
        nn.BatchNorm2d(8),
        nn.ReLU(),
    )
    body.features = layers
    return body, [layers[:3], layers[3:]], 8


def use_tiny_detector(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the tiny backbone and a narrow head in place: a step takes milliseconds, a checkpoint some hundred kB."""
    monkeypatch.setitem(BUILDERS, NAME, tiny_builder)
    monkeypatch.setattr("ptedge.detector.model.ROIHead", narrow_head(32))


def narrow_head(most: int) -> Callable[..., ROIHead]:
    """The ROI head with no more hidden units than this, whatever the settings say."""

    def narrow(*arguments: Any, **named: Any) -> ROIHead:
        return ROIHead(*arguments, **{**named, "hidden": min(named["hidden"], most)})

    return narrow


def tiny_config(**changes: Any) -> ModelConfig:
    """Settings of a 64 x 96 detector with three anchors; every value that a test leans on is set here."""
    values: dict[str, Any] = {
        "backbone": NAME,
        "weights": "none",
        "input_size": (HEIGHT, WIDTH),
        "frozen_stages": 0,
        "probabilistic": True,
        "variance_floor": 1e-3,
        "anchor_sizes": (24.0,),
        "anchor_ratios": (0.5, 1.0, 2.0),
        "rpn_train_top_n": (60, 20),
        "rpn_test_top_n": (60, 20),
        "rpn_nms": 0.7,
        "score_rule": "class",
        "sigma_rule": "cluster",
        "score_threshold": 0.05,
        "nms": 0.5,
        "candidates": 40,
        "max_detections": 10,
    }
    return ModelConfig(**(values | changes))


def write_pictures(folder: Path, count: int, seed: int = 0) -> Path:
    """``count`` noisy 96 x 64 pictures, each with one coloured rectangle; the last one has none.

    Returns:
        The COCO file; the pictures lie in ``images`` beside it.
    """
    rng = np.random.default_rng(seed)
    (folder / "images").mkdir(parents=True)
    images, annotations = [], []
    for i in range(count):
        picture = rng.integers(90, 130, (HEIGHT, WIDTH, 3), dtype=np.uint8)
        name = f"{i:03d}.png"
        if i < count - 1:
            label = i % 2
            x, y = int(rng.integers(0, 60)), int(rng.integers(0, 30))
            w, h = int(rng.integers(20, 34)), int(rng.integers(16, 30))
            picture[y : y + h, x : x + w] = COLOURS[label]
            box = {"id": i, "image_id": i, "category_id": label + 1, "bbox": [x, y, w, h], "area": w * h, "iscrowd": 0}
            annotations.append(box)
        cv2.imwrite(str(folder / "images" / name), picture)
        images.append({"id": i, "file_name": name, "width": WIDTH, "height": HEIGHT})
    categories = [{"id": k + 1, "name": name} for k, name in enumerate(CLASS_NAMES)]
    path = folder / "data.json"
    path.write_text(json.dumps({"images": images, "annotations": annotations, "categories": categories}), "utf-8")
    return path
