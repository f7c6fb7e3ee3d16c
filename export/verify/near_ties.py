"""Which detections float32 does not decide: the checkpoint's answers with every decision nudged a little."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from ptedge.backends.checkpoint_predictor import to_detections
from ptedge.detections import Detections
from ptedge.detector.config import CLUSTER_IOU, ModelConfig
from ptedge.detector.model import ProbabilisticFasterRCNN

# how far a result may be from a decision (cut or tie) to count as undecided
FEATURE_NOISE = 1e-5  # relative: what float32 convolutions of two libraries differ by
THRESHOLD_MARGIN = 1e-4  # of IoU thresholds
SCORE_MARGIN = 1e-3  # relative, of the score threshold
DRAWS = 6  # noisy repetitions


def detect_with(
    model: ProbabilisticFasterRCNN, features: Tensor, config: ModelConfig, cluster_iou: float = CLUSTER_IOU
) -> Detections:
    """Eager detections of one image from its features [1, C, h, w], under other settings than the model's own."""
    return to_detections(model.detect_features(features, config, cluster_iou)[0])


@torch.no_grad()
def disturbed(model: ProbabilisticFasterRCNN, image: Tensor) -> Iterator[Detections]:
    """Eager answers for one image with every decision nudged: what they disagree on, float32 does not decide.

    Args:
        model: in eval mode, on the CPU.
        image: [1, 3, H, W] uint8.
    """
    config = model.config
    features = model.features(image)
    before, after = config.rpn_test_top_n
    for sign in (-1, 1):
        yield detect_with(model, features, replace(config, nms=_nudge(config.nms, sign)))
        yield detect_with(model, features, replace(config, rpn_nms=_nudge(config.rpn_nms, sign)))
        if config.clustered:
            yield detect_with(model, features, config, _nudge(CLUSTER_IOU, sign))
        threshold = min(1.0, config.score_threshold * (1 + sign * SCORE_MARGIN))
        yield detect_with(model, features, replace(config, score_threshold=threshold))
    yield detect_with(model, features, replace(config, rpn_test_top_n=(max(1, before - 1), after)))
    generator = torch.Generator().manual_seed(0)
    for _ in range(DRAWS):
        noise = torch.randn(features.shape, generator=generator) * FEATURE_NOISE
        yield detect_with(model, features * (1 + noise), config)


def _nudge(threshold: float, sign: int) -> float:
    return min(1.0, max(0.0, threshold + sign * THRESHOLD_MARGIN))
