"""Settings of the detector: what the checkpoint, the bundle and every command must agree on. No torch here."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ptedge.config import from_dict, require, require_one_of

STRIDE = 16  # of the single feature map; method.md section 1
MOST_SIDE = 16384  # pixels
BACKBONES = ("vgg16", "resnet50", "mobilenet_v3_large", "efficientnet_lite0")
# numbers of the box maths, which torch, the exported graph and the device without torch share
Weights = tuple[float, float, float, float]  # of a head's deltas tx, ty, tw, th
ROI_WEIGHTS: Weights = (10.0, 10.0, 5.0, 5.0)
RPN_WEIGHTS: Weights = (1.0, 1.0, 1.0, 1.0)
MAX_LOG_SCALE = math.log(1000.0 / 16.0)  # a box grows at most this much from its reference: exp stays finite
CLUSTER_IOU = 0.3  # candidates above this speak of the same object
CLUSTER_WIDTH = 0.1  # how fast a candidate's weight falls with 1 - IoU
SCORE_RULES = ("class", "certainty")
SIGMA_RULES = ("cluster", "own")
# what a file of a time before a setting existed leaves out: models answer as they did then
EARLIER: Mapping[str, Any] = {"sigma_rule": "own", "variance_ceiling": 1.0, "roi_channels": 0, "roi_hidden": 1024}


@dataclass(frozen=True)
class ModelConfig:
    """Settings of the Probabilistic Faster R-CNN.

    Attributes:
        backbone: one of ``BACKBONES``, cut at stride 16.
        weights: ImageNet weights of the backbone: ``auto`` (an installed package that ships them, else the
            library's own download), ``none`` (random), or a path (.pth state dict, .safetensors; for
            ``vgg16`` also Keras' .h5).
        input_size: (height, width) in pixels, multiples of 16; images are letterboxed into it.
        frozen_stages: the first n backbone stages get no gradient.
        probabilistic: Gaussian box heads; ``False`` gives the vanilla detector (sigma is then 0).
        variance_floor: lowest variance in delta space, in (0, 1).
        variance_ceiling: highest variance of the ROI head, in its delta space. The paper's 1 holds sigma below 0.14 of
            a side; 16 lets it reach 0.57.
        roi_channels: channels that the ROI head looks at, made by a 1 x 1 convolution before RoIAlign (light head); 0:
            the feature map as it is.
        roi_hidden: width of the ROI head's two fully connected layers.
        anchor_sizes: square roots of anchor areas in input pixels.
        anchor_ratios: anchor height / width.
        rpn_train_top_n: (before, after) NMS: proposals an image in training.
        rpn_test_top_n: (before, after) NMS: proposals an image at inference and for the teacher.
        rpn_nms: IoU threshold of the proposals' NMS.
        score_rule: ``class`` (class probability) or ``certainty`` (times 1 - mean variance of the four deltas).
        sigma_rule: whose variances make the sigma of a detection: ``cluster`` (all candidates that overlap it, and how
            far they lie apart) or ``own`` (its own alone). Training is the same under both.
        score_threshold: detections below are dropped.
        nms: IoU threshold of the class-wise NMS.
        candidates: at most this many (proposal, class) pairs enter that NMS, best scores first.
        max_detections: at most this many leave it.
    """

    backbone: str = "efficientnet_lite0"
    weights: str = "auto"
    input_size: tuple[int, int] = (384, 640)
    frozen_stages: int = 2
    probabilistic: bool = True
    variance_floor: float = 1e-3
    variance_ceiling: float = 1.0
    roi_channels: int = 0
    roi_hidden: int = 1024
    anchor_sizes: tuple[float, ...] = (128.0, 256.0, 512.0)
    anchor_ratios: tuple[float, ...] = (0.5, 1.0, 2.0)
    rpn_train_top_n: tuple[int, int] = (1000, 300)
    rpn_test_top_n: tuple[int, int] = (600, 300)
    rpn_nms: float = 0.7
    score_rule: str = "class"
    sigma_rule: str = "cluster"
    score_threshold: float = 0.05
    nms: float = 0.5
    candidates: int = 400
    max_detections: int = 100

    def __post_init__(self) -> None:
        require_one_of("backbone", self.backbone, BACKBONES)
        require_one_of("score_rule", self.score_rule, SCORE_RULES)
        require_one_of("sigma_rule", self.sigma_rule, SIGMA_RULES)
        check_input_size(self.input_size)
        require("frozen_stages", self.frozen_stages, 0, 5)
        require("variance_floor", self.variance_floor, 0, 0.5, open_low=True)
        require("variance_ceiling", self.variance_ceiling, 1, 100)
        require("roi_channels", self.roi_channels, 0, 4096)
        require("roi_hidden", self.roi_hidden, 8, 4096)
        for size in self.anchor_sizes:
            require("an anchor size", size, 1)
        for ratio in self.anchor_ratios:
            require("an anchor ratio", ratio, 0.05, 20)
        if not self.anchor_sizes or not self.anchor_ratios:
            raise ValueError("anchor_sizes and anchor_ratios need at least one value each")
        for name in ("rpn_train_top_n", "rpn_test_top_n"):
            for count in getattr(self, name):
                require(f"a count of {name}", count, 1, 3840)  # 3840: TensorRT's limit of TopK
        require("rpn_nms", self.rpn_nms, 0, 1)
        require("score_threshold", self.score_threshold, 0, 1)
        require("nms", self.nms, 0, 1)
        require("candidates", self.candidates, 1, 3840)
        require("max_detections", self.max_detections, 1, self.candidates)

    @property
    def num_anchors(self) -> int:
        """Anchor shapes a cell, A."""
        return len(self.anchor_sizes) * len(self.anchor_ratios)

    @property
    def clustered(self) -> bool:
        """Whether sigma is that of the cluster; a vanilla detector has none."""
        return self.probabilistic and self.sigma_rule == "cluster"


def config_of_file(values: Mapping[str, Any], where: str) -> ModelConfig:
    """Settings that a checkpoint holds, of whatever age.

    Args:
        values: plain ones, by name.
        where: file, for messages.

    Raises:
        ConfigError: unknown key, wrong type or value out of range.
    """
    return from_dict(ModelConfig, {**EARLIER, **values}, where)


def nearest_input_size(size: tuple[int, int]) -> tuple[int, int]:
    """The (height, width) nearest to a size that the stride divides; a size that is allowed is its own nearest.

    Args:
        size: (height, width) in pixels.
    """
    height, width = (max(STRIDE, round(side / STRIDE) * STRIDE) for side in size)
    return height, width


def check_input_size(size: tuple[int, int]) -> None:
    """Refuse a size of the network's input that the stride does not divide.

    Args:
        size: (height, width) in pixels.

    Raises:
        ValueError: with the side, its value and the nearest that is allowed.
    """
    if any(side > MOST_SIDE for side in size):
        raise ValueError(f"input size is {size[0]} x {size[1]}; a side has {MOST_SIDE} pixels at most")
    for name, value, near in zip(("height", "width"), size, nearest_input_size(size), strict=True):
        if value != near:
            raise ValueError(f"input {name} is {value}; it must be a multiple of {STRIDE}, for example {near}")
