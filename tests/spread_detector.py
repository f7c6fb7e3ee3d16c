"""An untrained detector whose answers differ from place to place, and noise to show it: tests of the exported graph."""

from __future__ import annotations

import torch
from torch import Tensor

from ptedge.detector.config import ModelConfig
from ptedge.detector.model import ProbabilisticFasterRCNN

CONFIG = ModelConfig(
    weights="none",
    input_size=(96, 128),
    anchor_sizes=(16.0, 32.0, 64.0),
    rpn_test_top_n=(150, 40),
    candidates=60,
    max_detections=30,
)


def make_model(config: ModelConfig = CONFIG, num_classes: int = 1) -> ProbabilisticFasterRCNN:
    torch.manual_seed(1)
    model = ProbabilisticFasterRCNN(config, num_classes).eval()
    with torch.no_grad():
        # fresh heads answer almost alike everywhere; spread them, so that no decision is a tie
        model.rpn_head.objectness.weight.mul_(30)
        model.roi_head.deltas.weight.mul_(30)
        model.roi_head.logits.weight.mul_(5)  # not so far that probabilities round to 1
    return model


def noise(batch: int, size: tuple[int, int] = (96, 128)) -> Tensor:
    generator = torch.Generator().manual_seed(5)
    return torch.randint(0, 256, (batch, 3, *size), dtype=torch.uint8, generator=generator)
