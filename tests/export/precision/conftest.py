"""A tiny detector in every precision, and a small graph with and without int8."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnx import numpy_helper
from small_graph import small_graph
from tiny_detector import CLASS_NAMES, tiny_config, use_tiny_detector, write_pictures

from ptedge.artifacts.checkpoint import Checkpoint, save_checkpoint
from ptedge.detector.model import ProbabilisticFasterRCNN
from ptedge.export.precision.quantize import to_int8
from ptedge.export.to_bundle import export_checkpoint

FRAMES = np.random.default_rng(0).integers(0, 256, (8, 3, 16, 16), dtype=np.uint8)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ``model.pt`` of the tiny detector, ``images`` and a bundle of each precision."""
    folder = tmp_path_factory.mktemp("tiny")
    write_pictures(folder, 12)
    with pytest.MonkeyPatch.context() as patch:
        use_tiny_detector(patch)
        torch.manual_seed(3)
        model = ProbabilisticFasterRCNN(tiny_config(), len(CLASS_NAMES))
        with torch.no_grad():  # answers that differ from place to place, so that few decisions are ties
            model.rpn_head.objectness.weight.mul_(30)
            model.roi_head.deltas.weight.mul_(30)
            model.roi_head.logits.weight.mul_(5)
        save_checkpoint(folder / "model.pt", Checkpoint(tiny_config(), CLASS_NAMES, model.state_dict()))
        for precision in ("fp32", "fp16", "int8"):
            frames = str(folder / "images") if precision == "int8" else None
            export_checkpoint(folder / "model.pt", folder / precision, precision=precision, calibrate=frames)
    return folder


@pytest.fixture(scope="module")
def graphs() -> tuple[Any, Any]:
    """Three convolutions and a predictor, and the same with all three in int8, where rounding shows."""
    proto = onnx.load_from_string(small_graph(weight=1))
    random = np.random.default_rng(1)
    for tensor in proto.graph.initializer:
        tensor.CopyFrom(numpy_helper.from_array(random.normal(size=(3, 3, 1, 1)).astype(np.float32), tensor.name))
    return proto, to_int8(proto, FRAMES, method="minmax")
