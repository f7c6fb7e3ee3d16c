"""Two stages as one runner, on stand-ins for the stages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from tiny_model import tiny_manifest

from ptedge.backends.runner import TimedRunner
from ptedge.backends.split import SplitRunner, TimedSplitRunner, pair_stages, rules_of
from ptedge.errors import ArtifactError
from ptedge.graph_contract import OUTPUTS
from ptedge.stages.settings import Selection

SELECTION = Selection(anchors=((16.0, 16.0),), proposals=(4, 2), proposal_nms=0.7, candidates=4, nms=0.5)
MANIFEST = tiny_manifest(selection=SELECTION, input_size=(16, 64))


class Stage:
    """A runner that gives what it is told and keeps what it was fed with."""

    def __init__(self, answer: dict[str, np.ndarray], feature_type: Any = np.float32) -> None:
        self.backend, self.reason, self.closed = "cpu", "asked for", 0
        self.inputs = {"features": ((1, 2, 1, 4), np.dtype(feature_type))}
        self.output_names, self.answer = tuple(answer), answer
        self.feeds: dict[str, np.ndarray] = {}

    def infer(self, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        self.feeds = dict(feeds)
        return self.answer

    def close(self) -> None:
        self.closed += 1


class TimedStage(Stage):
    def infer_timed(self, feeds: Mapping[str, np.ndarray]) -> tuple[dict[str, np.ndarray], dict[str, float]]:
        return self.infer(feeds), {"h2d": 0.1, "compute": 2.0, "d2h": 0.2, "enqueue": 0.3}

    def time_launches(self, calls: int) -> float:
        return 0.5 * calls


def first(kind: type[Stage] = Stage) -> Any:
    objectness = np.array([[0, 3, 0, 0]], np.float32)
    features = np.ones((1, 2, 1, 4), np.float32)
    return kind({"features": features, "objectness": objectness, "anchor_deltas": np.zeros((1, 4, 4), np.float32)})


def second(kind: type[Stage] = Stage, feature_type: Any = np.float32) -> Any:
    logits = np.log(np.array([[[0.9, 0.05, 0.05], [0.05, 0.05, 0.9]]], np.float32))
    rows = np.zeros((1, 2, 2, 4), np.float32)
    return kind({"logits": logits, "box_deltas": rows, "variances": rows + 0.1}, feature_type)


def test_infer__the_outputs_of_the_one_graph() -> None:
    before, behind = first(), second(feature_type=np.float16)
    with pair_stages(before, behind, MANIFEST) as runner:
        assert (runner.backend, runner.reason) == ("cpu", "asked for, in two stages")
        assert runner.output_names == OUTPUTS and runner.inputs == before.inputs
        found = runner.infer({"images": np.zeros((1, 3, 16, 64), np.uint8)})
    assert behind.feeds["features"].dtype == np.float16
    assert behind.feeds["proposals"].tolist() == [[[16, 0, 32, 16], [0, 0, 16, 16]]]
    assert found["num_detections"].tolist() == [1] and found["boxes"][0, 0].tolist() == [16, 0, 32, 16]
    assert not isinstance(runner, TimedRunner)
    assert before.closed == behind.closed == 1


def test_infer_timed__both_stages_together() -> None:
    stages = first(TimedStage), second(TimedStage)
    for stage, graph in zip(stages, ("CUDA graph", "enqueue (no memory)"), strict=True):
        stage.name, stage.graph, stage.memory = "first.engine", graph, "pinned"
    runner = pair_stages(*stages, MANIFEST)
    assert isinstance(runner, TimedRunner) and isinstance(runner, TimedSplitRunner)
    assert (runner.name, runner.memory) == ("first.engine", "pinned")
    assert runner.graph == "CUDA graph; second stage: enqueue (no memory)"
    found, times = runner.infer_timed({"images": np.zeros((1, 3, 16, 64), np.uint8)})
    assert found["num_detections"].tolist() == [1]
    assert times == pytest.approx({"h2d": 0.2, "compute": 4.0, "d2h": 0.4, "enqueue": 0.6})
    assert runner.time_launches(3) == 3.0


def test_pair_stages__what_are_no_two_stages_of_a_model() -> None:
    before, other = first(), first()
    with pytest.raises(ArtifactError, match=r"which is not what the two stages.*ptedge export CHECKPOINT --split"):
        pair_stages(before, other, MANIFEST)
    assert before.closed == other.closed == 1
    without = second()
    without.output_names = ("logits", "box_deltas")
    with pytest.raises(ArtifactError, match="not what the two stages"):
        pair_stages(first(), without, MANIFEST)
    vanilla = tiny_manifest(selection=Selection(**{**vars(SELECTION), "probabilistic": False}), input_size=(16, 64))
    assert isinstance(pair_stages(first(), without, vanilla), SplitRunner)


def test_rules_of__the_manifest() -> None:
    rules = rules_of(tiny_manifest(selection=SELECTION, sigma_rule="cluster", sigma_scale=(1, 2, 3, 4)))
    assert rules.clustered and rules.sigma_scale == (1, 2, 3, 4) and rules.max_detections == 5
    assert not rules_of(tiny_manifest(selection=SELECTION)).clustered
    with pytest.raises(ArtifactError, match=r"does not say how to select between two stages.*ptedge export"):
        rules_of(tiny_manifest())
