"""How fast the exported graph is on ONNX Runtime's CPU, beside others of the same size.

Graphs with the same backbone, input size and number of proposals, timed in turn within one process:

- ``ours``: the graph that ``ptedge export`` writes;
- ``torchvision``: torchvision's Faster R-CNN, exported as it comes (NonMaxSuppression, NonZero, RoiAlign);
- ``dense``: only the layers nobody can avoid: backbone, RPN convolutions, fully connected layers on R rows;
- ``light``: ours with the light head and the proposals of ``ptedge train --preset edge``, random weights;
- ``backbone``: from the picture to its features.

Run: python tests/bench/export_latency.py [--size 240x416] [--classes 1] [--threads 1] [--checkpoint model.pt]
"""

from __future__ import annotations

import argparse
import io
import json
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torchvision.models.detection import FasterRCNN
from torchvision.models.detection.anchor_utils import AnchorGenerator
from torchvision.ops import MultiScaleRoIAlign

from ptedge.artifacts.checkpoint import load_checkpoint
from ptedge.config import to_dict
from ptedge.detector.config import ModelConfig, config_of_file
from ptedge.detector.model import ProbabilisticFasterRCNN
from ptedge.export.to_onnx import model_to_onnx
from ptedge.training.recipes.presets import EDGE, preset_values


class Dense(nn.Module):
    """Backbone, RPN convolutions, and the ROI head's linear layers on given rows."""

    def __init__(self, model: ProbabilisticFasterRCNN) -> None:
        super().__init__()
        self.model = model

    def forward(self, images: Tensor, pooled: Tensor) -> tuple[Tensor, ...]:
        model = self.model
        features = model.backbone(model.normalise(images))
        hidden = F.relu(model.rpn_head.conv(features))
        head = model.roi_head
        rows = F.relu(head.fc2(F.relu(head.fc1(pooled))))
        variances = [] if head.variances is None else [head.variances(rows)]
        rpn = model.rpn_head
        return rpn.objectness(hidden), rpn.deltas(hidden), head.logits(rows), head.deltas(rows), *variances


class Features(nn.Module):
    """The backbone."""

    def __init__(self, model: ProbabilisticFasterRCNN) -> None:
        super().__init__()
        self.model = model

    def forward(self, images: Tensor) -> Tensor:
        features: Tensor = self.model.features(images)
        return features


class _Body(nn.Module):
    def __init__(self, backbone: Any) -> None:
        super().__init__()
        self.body = backbone
        self.out_channels = backbone.channels

    def forward(self, x: Tensor) -> Tensor:
        features: Tensor = self.body(x)
        return features


class Torchvision(nn.Module):
    """torchvision's detector on our backbone, settings and input; uint8 in, as ours."""

    def __init__(self, model: ProbabilisticFasterRCNN) -> None:
        super().__init__()
        config = model.config
        height, width = config.input_size
        before, after = config.rpn_test_top_n
        self.detector = FasterRCNN(
            _Body(model.backbone),
            num_classes=model.num_classes + 1,
            min_size=min(height, width),
            max_size=max(height, width),
            rpn_anchor_generator=AnchorGenerator((config.anchor_sizes,), (config.anchor_ratios,)),
            box_roi_pool=MultiScaleRoIAlign(["0"], 7, 2),
            rpn_pre_nms_top_n_test=before,
            rpn_post_nms_top_n_test=after,
            rpn_nms_thresh=config.rpn_nms,
            box_score_thresh=config.score_threshold,
            box_nms_thresh=config.nms,
            box_detections_per_img=config.max_detections,
        ).eval()
        # the same RPN weights, so that as many proposals survive NMS as in ours
        head = self.detector.rpn.head
        head.conv[0][0].load_state_dict(model.rpn_head.conv.state_dict())
        head.cls_logits.load_state_dict(model.rpn_head.objectness.state_dict())
        head.bbox_pred.load_state_dict(model.rpn_head.deltas.state_dict())

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        found = self.detector([images[0].float() / 255.0])[0]
        return found["boxes"], found["scores"], found["labels"]


def to_onnx(module: nn.Module, inputs: tuple[Tensor, ...], names: list[str]) -> bytes:
    """Trace any module to ONNX of opset 17."""
    file: Any = io.BytesIO()  # torch types it as a path, and takes a file as well
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        torch.onnx.export(module, inputs, file, dynamo=False, opset_version=17, input_names=names)
    return bytes(file.getvalue())


def open_session(model: bytes, threads: int) -> onnxruntime.InferenceSession:
    """A CPU session with everything ONNX Runtime optimises by default."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def interleave(calls: dict[str, Callable[[], Any]], repeats: int) -> dict[str, list[float]]:
    """Seconds of each call, taken in turn so that a busy machine hurts all alike."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(5):
        for call in calls.values():
            call()
    for _ in range(repeats):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - start)
    return times


def main() -> None:
    """Measure and print one JSON document."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="240x416")
    parser.add_argument("--classes", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--proposals", help="before,after NMS, instead of the model's own")
    parser.add_argument("--repeats", type=int, default=40)
    parser.add_argument(
        "--checkpoint", type=Path, help="trained weights instead of random ones; gives size and classes"
    )
    parser.add_argument("--image", type=Path, help="a frame instead of noise")
    options = parser.parse_args()
    torch.manual_seed(0)
    if options.checkpoint is not None:
        model = load_checkpoint(options.checkpoint).build()
    else:
        height, width = (int(side) for side in options.size.split("x"))
        model = ProbabilisticFasterRCNN(ModelConfig(input_size=(height, width)), options.classes).eval()
    if options.proposals is not None:
        before, after = (int(count) for count in options.proposals.split(","))
        model.config = replace(model.config, rpn_test_top_n=(before, after))
    size, config = model.config.input_size, model.config
    images = torch.randint(0, 256, (1, 3, *size), dtype=torch.uint8)
    if options.image is not None:
        from ptedge.frames.images import read_image
        from ptedge.preprocess import Letterbox

        image = read_image(options.image)
        placed = Letterbox(image.shape[1], image.shape[0], *size).image(image)
        images = torch.from_numpy(np.ascontiguousarray(placed.transpose(2, 0, 1))).unsqueeze(0)
    with torch.no_grad():
        proposals = model.proposals(model.rpn(model.features(images)), training=False)
    pooled = torch.randn(config.rpn_test_top_n[1], model.roi_head.fc1.in_features)
    ours = open_session(model_to_onnx(model, size, 1), options.threads)
    theirs = open_session(to_onnx(Torchvision(model).eval(), (images,), ["images"]), options.threads)
    dense = open_session(to_onnx(Dense(model).eval(), (images, pooled), ["images", "pooled"]), options.threads)
    edge = config_of_file(to_dict(config) | preset_values(EDGE, "train")["model"], "the light model")
    light = ProbabilisticFasterRCNN(edge, model.num_classes).eval()
    small = open_session(model_to_onnx(light, size, 1), options.threads)
    backbone = open_session(to_onnx(Features(model).eval(), (images,), ["images"]), options.threads)
    feed = {"images": images.numpy()}
    calls: dict[str, Callable[[], Any]] = {
        "ours": lambda: ours.run(None, feed),
        "torchvision": lambda: theirs.run(None, feed),
        "dense": lambda: dense.run(None, {**feed, "pooled": pooled.numpy()}),
        "light": lambda: small.run(None, feed),
        "backbone": lambda: backbone.run(None, feed),
    }
    times = interleave(calls, options.repeats)
    medians = {name: statistics.median(values) * 1e3 for name, values in times.items()}
    report = {
        "size": list(size),
        "backbone": config.backbone,
        "classes": model.num_classes,
        "threads": options.threads,
        "proposals": {"before": config.rpn_test_top_n[0], "after": config.rpn_test_top_n[1], "kept": len(proposals[0])},
        "converged": bool(ours.run(["converged"], feed)[0][0]),
        "median_ms": {name: round(value, 2) for name, value in medians.items()},
        "ratio_to_torchvision": round(medians["ours"] / medians["torchvision"], 3),
        "ratio_to_dense": round(medians["ours"] / medians["dense"], 3),
        "light": {name: round(medians["light"] / medians[name], 3) for name in ("ours", "torchvision", "backbone")},
        "onnxruntime": onnxruntime.__version__,
    }
    json.dump(report, sys.stdout, indent=2)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
