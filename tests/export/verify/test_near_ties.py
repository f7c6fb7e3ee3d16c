"""Disturbed answers: every decision nudged both ways, and noise on the features."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from ptedge.artifacts.checkpoint import load_checkpoint
from ptedge.export.verify.compare import compare
from ptedge.export.verify.near_ties import DRAWS, detect_with, disturbed


def test_disturbed__near_the_undisturbed_answer_and_always_the_same(checkpoint: Path) -> None:
    model = load_checkpoint(checkpoint).build()
    generator = torch.Generator().manual_seed(0)
    image = torch.randint(0, 256, (1, 3, 96, 128), dtype=torch.uint8, generator=generator)
    plain = detect_with(model, model.features(image), model.config)
    variants = list(disturbed(model, image))
    # two thresholds of suppression, one of clusters and one of scores, each way; the cut
    assert len(variants) == 2 * 4 + 1 + DRAWS
    assert len(plain) > 5
    for variant in variants:
        assert compare(plain, variant).matched > 0.8 * len(plain)
    for a, b in zip(variants, disturbed(model, image), strict=True):
        np.testing.assert_array_equal(a.boxes, b.boxes)


def test_disturbed__without_clusters_their_threshold_is_no_decision(checkpoint: Path) -> None:
    model = load_checkpoint(checkpoint).build()
    model.config = replace(model.config, sigma_rule="own")
    assert len(list(disturbed(model, torch.zeros(1, 3, 96, 128, dtype=torch.uint8)))) == 2 * 3 + 1 + DRAWS
