"""What a calibrated model answers without its calibration."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_detector import CLASS_NAMES, tiny_config, use_tiny_detector
from tiny_model import ANSWER, tiny_bundle, tiny_onnx

from ptedge.artifacts.bundle import open_bundle
from ptedge.artifacts.calibrated_bundle import write_calibrated
from ptedge.artifacts.checkpoint import Checkpoint, save_checkpoint
from ptedge.backends.uncalibrated import uncalibrated_bundle, uncalibrated_checkpoint
from ptedge.calibration import SideCalibration
from ptedge.detector.model import ProbabilisticFasterRCNN

GIVEN = SideCalibration((0.25, 0.0, -0.125, 0.0), (2.0, 1.0, 0.5, 4.0))


@pytest.mark.parametrize("calibrated", [True, False])
def test_uncalibrated_bundle__answers_as_it_was_exported(tmp_path: Path, calibrated: bool) -> None:
    bundle = tiny_bundle(tmp_path / "b", tiny_onnx())
    if calibrated:
        bundle = write_calibrated(bundle, GIVEN, bundle.path)
    with uncalibrated_bundle(bundle, "cpu") as predictor:
        found = predictor.detect(np.zeros((64, 96, 3), np.uint8))
    np.testing.assert_allclose(found.boxes, ANSWER["boxes"])
    np.testing.assert_allclose(found.sigma, ANSWER["sigma"])
    assert open_bundle(bundle.path) == bundle  # it is left as it is


def test_uncalibrated_checkpoint__answers_as_it_was_trained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_tiny_detector(monkeypatch)
    torch.manual_seed(0)
    plain = Checkpoint(tiny_config(), CLASS_NAMES, ProbabilisticFasterRCNN(tiny_config(), 2).state_dict())
    save_checkpoint(tmp_path / "plain.pt", plain)
    save_checkpoint(tmp_path / "calibrated.pt", dataclasses.replace(plain, calibration=GIVEN))
    image = np.random.default_rng(0).integers(0, 256, (64, 96, 3), dtype=np.uint8)
    with (
        uncalibrated_checkpoint(tmp_path / "plain.pt", 1) as one,
        uncalibrated_checkpoint(tmp_path / "calibrated.pt", 1) as two,
    ):
        np.testing.assert_array_equal(one.detect(image).boxes, two.detect(image).boxes)
        np.testing.assert_array_equal(one.detect(image).sigma, two.detect(image).sigma)
