"""Models that are timed without training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torchvision
from study_inside import main
from torch import nn
from torchvision.models.detection import FasterRCNN
from torchvision.models.detection.anchor_utils import AnchorGenerator
from torchvision.ops import MultiScaleRoIAlign

from ptedge.training.study.timing import untrained
from ptedge.training.study.timing.graphs import time_in_turn


class Body(nn.Sequential):
    out_channels = 4


def small_detector(name: str, **settings: Any) -> FasterRCNN:
    """torchvision's detector on one convolution, under whatever name."""
    settings = {key: settings[key] for key in ("num_classes", "min_size", "max_size")}
    return FasterRCNN(
        Body(nn.Conv2d(3, 4, 16, stride=16)),
        rpn_anchor_generator=AnchorGenerator(((16.0,),), ((1.0,),)),
        box_roi_pool=MultiScaleRoIAlign(["0"], 7, 2),
        rpn_post_nms_top_n_test=5,
        **settings,
    )


def test_write_torchvision__a_graph_of_bytes_that_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torchvision.models, "get_model", small_detector)
    file = tmp_path / "new" / "theirs.onnx"
    status, _, _ = main(["torchvision", "fasterrcnn_resnet50_fpn", "64x96", file], untrained.main)
    assert status == 0
    assert time_in_turn([file], 1, 1)[str(file)]["ms"] > 0


def test_write_torchvision__unknown_detector(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(untrained.ConfigError, match="no detector 'yolo'; there are fasterrcnn"):
        untrained.write_torchvision("yolo", (64, 96), tmp_path / "out.onnx")
