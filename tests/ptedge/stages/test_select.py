"""Selection between and behind two stages, by hand; that it is the graph's is a test of the export."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ptedge.graph_contract import output_signature
from ptedge.stages.select import Rules, Selector
from ptedge.stages.settings import Selection

SELECTION = Selection(anchors=((16.0, 16.0),), proposals=(3, 2), proposal_nms=0.7, candidates=4, nms=0.5)
RULES = Rules(
    selection=SELECTION,
    input_size=(16, 64),  # four cells beside each other, an anchor on each
    score_rule="class",
    clustered=False,
    score_threshold=0.2,
    max_detections=3,
    side_offset=(0.0, 0.0, 0.0, 0.0),
    sigma_scale=(1.0, 1.0, 1.0, 1.0),
)


def test_propose__best_first_clipped_and_filled_with_zeros() -> None:
    deltas = np.zeros((2, 4, 4), np.float32)
    deltas[0, 3, 0] = 0.5  # half over the right border
    objectness = np.array([[1, 0, 2, 3], [5, 0, -1, -2]], np.float32)
    deltas[1, 1, 0] = -1.0  # onto the best
    deltas[1, 2, 0] = 2.0  # beyond the border: no area
    proposals, counts = Selector(RULES).propose({"objectness": objectness, "anchor_deltas": deltas})
    assert counts == [2, 1]
    assert proposals.tolist() == [[[56, 0, 64, 16], [32, 0, 48, 16]], [[0, 0, 16, 16], [0, 0, 0, 0]]]


def test_propose__of_equal_scores_the_first_anchors() -> None:
    outputs = {"objectness": np.zeros((1, 4), np.float16), "anchor_deltas": np.zeros((1, 4, 4), np.float16)}
    proposals, counts = Selector(RULES).propose(outputs)
    assert counts == [2] and proposals[0, :, 0].tolist() == [0, 16] and proposals.dtype == np.float32


PROPOSALS = np.array([[[0, 0, 16, 16], [1, 0, 17, 16], [32, 0, 48, 16], [0, 0, 0, 0]]], np.float32)


def outputs(probabilities: list[list[float]]) -> dict[str, np.ndarray]:
    """Of a second stage that leaves boxes where they are; class probabilities with the background last."""
    logits = np.log(np.array([probabilities], np.float32))
    deltas = np.zeros((*logits.shape[:2], logits.shape[2] - 1, 4), np.float32)
    return {"logits": logits, "box_deltas": deltas, "variances": np.full_like(deltas, 0.25)}


def test_detect__scores_classes_and_padding() -> None:
    rows = [[0.6, 0.1, 0.3], [0.5, 0.3, 0.2], [0.1, 0.15, 0.75], [0.9, 0.05, 0.05]]
    found = Selector(RULES).detect(outputs(rows), PROPOSALS, [3])
    assert {name: (value.shape, value.dtype) for name, value in found.items()} == output_signature(1, 3)
    assert found["num_detections"].tolist() == [2] and found["converged"].tolist() == [1]
    np.testing.assert_allclose(found["scores"], [[0.6, 0.3, 0]], rtol=1e-6)  # 0.5 of the first class is suppressed
    assert found["labels"].tolist() == [[0, 1, 0]]
    assert found["boxes"][0].tolist() == [[0, 0, 16, 16], [1, 0, 17, 16], [0, 0, 0, 0]]
    side = np.sqrt((0.5 * 16 / 10) ** 2 + (0.5 * 16 / 5) ** 2 / 4)
    np.testing.assert_allclose(found["sigma"], [[[side] * 4, [side] * 4, [0] * 4]], rtol=1e-5)
    nats = -sum(p * np.log(p) for p in rows[0])
    np.testing.assert_allclose(found["entropy"][0, 0], nats, rtol=1e-5)


def test_detect__rules_of_a_model() -> None:
    rows = [[0.6, 0.4], [0.5, 0.5], [0.3, 0.7], [0.9, 0.1]]
    sides = replace(RULES, side_offset=(0.25, 0.0, -0.25, 0.0), sigma_scale=(2.0, 1.0, 1.0, 1.0))
    found = Selector(sides).detect(outputs(rows), PROPOSALS, [3])
    assert found["boxes"][0, 1].tolist() == [28, 0, 52, 16]
    assert found["boxes"][0, 0].tolist() == [0, 0, 20, 16]  # clipped again
    np.testing.assert_allclose(found["sigma"][0, 0, 0], 2 * found["sigma"][0, 0, 1], rtol=1e-6)
    certain = Selector(replace(RULES, score_rule="certainty")).detect(outputs(rows), PROPOSALS, [3])
    np.testing.assert_allclose(certain["scores"], [[0.45, 0.225, 0]], rtol=1e-5)  # times 1 - 0.25
    few = replace(RULES, selection=replace(SELECTION, candidates=2))
    assert Selector(few).detect(outputs(rows), PROPOSALS, [3])["num_detections"].tolist() == [1]
    assert Selector(replace(RULES, max_detections=1)).detect(outputs(rows), PROPOSALS, [3])["scores"].shape == (1, 1)


def test_detect__nothing_there() -> None:
    rows = [[0.1, 0.9]] * 4
    for counts in ([4], [0]):
        for clustered in (True, False):
            found = Selector(replace(RULES, clustered=clustered)).detect(outputs(rows), PROPOSALS, counts)
            assert not any(found[name].any() for name in found if name != "converged")


def test_detect__a_vanilla_detector_has_no_variances() -> None:
    given = outputs([[0.6, 0.4]] * 4)
    del given["variances"]
    assert not Selector(RULES).detect(given, PROPOSALS, [1])["sigma"].any()
