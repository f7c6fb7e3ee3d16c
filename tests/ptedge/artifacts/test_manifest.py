from __future__ import annotations

import json

import pytest
from tiny_model import tiny_manifest

from ptedge.artifacts.manifest import Manifest
from ptedge.calibration import CalibrationOrigin, SideCalibration
from ptedge.detector.config import EARLIER, SCORE_RULES


def test_manifest__json_round_trip() -> None:
    manifest = tiny_manifest(files={"model.onnx": "00"})
    assert Manifest.from_json(json.loads(json.dumps(manifest.to_json())), "here") == manifest


def test_manifest__default_score_rule_is_one_that_detectors_have() -> None:
    assert tiny_manifest().score_rule in SCORE_RULES


def test_manifest__of_a_time_before_clusters_says_so() -> None:
    values = tiny_manifest().to_json()
    del values["sigma_rule"]
    assert Manifest.from_json(values, "here").sigma_rule == EARLIER["sigma_rule"] == "own"


GIVEN = SideCalibration(
    (0.1, -0.05, 0.0, 0.02),
    (1.5, 1.0, 0.5, 2.0),
    {"0.9": (1.6, 1.7, 1.8, 1.9)},
    CalibrationOrigin("labels", boxes=30, images=12, data="aa", model="bb"),
)


def test_with_calibration__is_there_and_read_again_and_taken_off() -> None:
    manifest = tiny_manifest().with_calibration(GIVEN)
    assert (manifest.side_offset, manifest.sigma_scale) == (GIVEN.offset, GIVEN.scale)
    read = Manifest.from_json(json.loads(json.dumps(manifest.to_json())), "here")
    assert read == manifest and read.calibration == GIVEN
    assert read.with_calibration(None) == tiny_manifest() and tiny_manifest().calibration is None


def test_scale_after_graph__in_schema_1_alone() -> None:
    scale = (1.5, 1.0, 0.5, 2.0)
    assert tiny_manifest(sigma_scale=scale, schema=1).scale_after_graph == scale
    assert tiny_manifest(sigma_scale=scale).scale_after_graph == (1.0, 1.0, 1.0, 1.0)


def test_manifest__schema_1_has_no_offset() -> None:
    with pytest.raises(ValueError, match="belong to schema 2"):
        tiny_manifest(schema=1, side_offset=(0.1, 0.0, 0.0, 0.0))
