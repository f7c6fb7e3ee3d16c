from __future__ import annotations

import json

from tiny_model import tiny_manifest

from ptedge.artifacts.manifest import Manifest
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
