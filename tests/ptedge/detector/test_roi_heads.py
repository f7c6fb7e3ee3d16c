"""Scores, the ROI head, and detections against a slow loop."""

from __future__ import annotations

import math

import pytest
import torch
from slow_cluster import slow_cluster_sigma
from slow_nms import slow_nms
from torch import Tensor

from ptedge.detector.config import ROI_WEIGHTS
from ptedge.detector.gaussian import corner_sigma, decode
from ptedge.detector.roi_heads import RawDetections, ROIHead, ROIOutput, class_scores, postprocess

SIZE = (64, 96)  # height, width
NO_HIDDEN = torch.empty(0)  # detections do not look at it


def test_class_scores__both_rules_by_hand() -> None:
    logits = torch.tensor([[math.log(6.0), math.log(3.0), 0.0]])  # 0.6, 0.3, background 0.1
    variances = torch.tensor([[[0.1, 0.2, 0.3, 0.4], [1.0, 1.0, 0.0, 0.0]]])  # means 1/4 and 1/2
    torch.testing.assert_close(class_scores(logits, variances, "class"), torch.tensor([[0.6, 0.3]]))
    torch.testing.assert_close(class_scores(logits, variances, "certainty"), torch.tensor([[0.45, 0.15]]))


def _output(count: int, classes: int, seed: int) -> tuple[ROIOutput, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    corner = torch.rand(count, 2, generator=generator) * torch.tensor([60.0, 40.0])
    size = 10 + torch.rand(count, 2, generator=generator) * 30
    return (
        ROIOutput(
            torch.randn(count, classes + 1, generator=generator) * 2,
            torch.randn(count, classes, 4, generator=generator),
            torch.rand(count, classes, 4, generator=generator),
            NO_HIDDEN,
        ),
        torch.cat([corner, corner + size], dim=1),
    )


def _detect(
    output: ROIOutput,
    proposals: Tensor,
    rule: str,
    threshold: float = 0.1,
    candidates: int = 40,
    limit: int = 9,
    cluster_iou: float | None = None,
) -> RawDetections:
    return postprocess(
        output,
        proposals,
        SIZE,
        score_rule=rule,
        score_threshold=threshold,
        nms_threshold=0.4,
        candidates=candidates,
        max_detections=limit,
        cluster_iou=cluster_iou,
    )


@pytest.mark.parametrize("rule", ["class", "certainty"])
@pytest.mark.parametrize("candidates", [12, 40])
@pytest.mark.parametrize("cluster_iou", [None, 0.3])
def test_postprocess__against_a_slow_loop(rule: str, candidates: int, cluster_iou: float | None) -> None:
    output, proposals = _output(25, 3, seed=2)
    found = _detect(output, proposals, rule, candidates=candidates, cluster_iou=cluster_iou)

    p = output.logits.softmax(dim=-1)
    pairs = []
    for r in range(25):
        for k in range(3):
            score = float(p[r, k]) * (1 - float(output.variances[r, k].mean()) if rule == "certainty" else 1)
            pairs.append((score, r, k))
    pairs = [pair for pair in sorted(pairs, reverse=True)[:candidates] if pair[0] > 0.1]
    rows, labels = [r for _, r, _ in pairs], [k for _, _, k in pairs]
    decoded = torch.stack([decode(output.deltas[r, k], proposals[r], ROI_WEIGHTS) for _, r, k in pairs])
    clipped = decoded.clone()
    clipped[:, 0::2] = clipped[:, 0::2].clamp(0, 96)
    clipped[:, 1::2] = clipped[:, 1::2].clamp(0, 64)
    kept = slow_nms(clipped, list(range(len(pairs))), 0.4, labels)[:9]

    assert len(found.boxes) == len(kept) > 3
    torch.testing.assert_close(found.boxes, clipped[kept])
    torch.testing.assert_close(found.scores, torch.tensor([pairs[i][0] for i in kept]))
    assert found.labels.tolist() == [labels[i] for i in kept]
    own = [rows[i] for i in kept]
    torch.testing.assert_close(found.logits, output.logits[own])
    torch.testing.assert_close(found.proposals, proposals[own])
    torch.testing.assert_close(found.variances, output.variances[own, found.labels])
    # a candidate's own sigma belongs to the box before it was clipped; how far they lie apart to what is reported
    sigma = corner_sigma(output.variances[rows, labels], decoded, proposals[rows], ROI_WEIGHTS)
    if cluster_iou is not None:
        assert not decoded.equal(clipped)
        scores = torch.tensor([score for score, _, _ in pairs])
        sigma[kept] = slow_cluster_sigma(kept, clipped, scores, sigma, torch.tensor(labels))
    torch.testing.assert_close(found.sigma, sigma[kept])
    torch.testing.assert_close(found.entropy, -(p[own] * p[own].log()).sum(dim=1))


@pytest.mark.parametrize("cluster_iou", [None, 0.3])
def test_postprocess__nothing_above_the_threshold(cluster_iou: float | None) -> None:
    output, proposals = _output(5, 2, seed=0)
    found = _detect(output, proposals, "class", threshold=1.0, cluster_iou=cluster_iou)
    assert found.boxes.shape == found.sigma.shape == (0, 4)
    assert found.logits.shape == (0, 3)


@pytest.mark.parametrize("cluster_iou", [None, 0.3])
def test_postprocess__no_proposals(cluster_iou: float | None) -> None:
    output, proposals = _output(0, 2, seed=0)
    assert len(_detect(output, proposals, "class", cluster_iou=cluster_iou).boxes) == 0


def test_postprocess__the_rule_of_sigma_changes_nothing_else() -> None:
    output, proposals = _output(25, 3, seed=2)
    own, cluster = (_detect(output, proposals, "class", cluster_iou=iou) for iou in (None, 0.3))
    for name in ("boxes", "scores", "labels", "logits", "variances", "proposals", "entropy"):
        assert torch.equal(getattr(own, name), getattr(cluster, name))
    assert not torch.equal(own.sigma, cluster.sigma)


def test_postprocess__a_box_outside_the_input_takes_no_slot() -> None:
    deltas = torch.zeros(2, 1, 4)
    deltas[0, 0, 0] = 100.0  # ten widths to the right: wholly outside, although its score is the best
    output = ROIOutput(torch.tensor([[3.0, 0.0], [2.0, 0.0]]), deltas, torch.full((2, 1, 4), 0.5), NO_HIDDEN)
    found = _detect(output, torch.tensor([[10.0, 10.0, 30.0, 30.0], [50.0, 10.0, 70.0, 30.0]]), "class", limit=1)
    torch.testing.assert_close(found.boxes, torch.tensor([[50.0, 10.0, 70.0, 30.0]]))


def test_postprocess__overlap_of_two_classes_stays() -> None:
    logits = torch.tensor([[2.0, 2.0, 0.0]])
    output = ROIOutput(logits, torch.zeros(1, 2, 4), torch.full((1, 2, 4), 0.5), NO_HIDDEN)
    found = _detect(output, torch.tensor([[10.0, 10.0, 30.0, 30.0]]), "class")
    assert sorted(found.labels.tolist()) == [0, 1]


@pytest.mark.parametrize("probabilistic", [True, False])
def test_roi_head__shapes(probabilistic: bool) -> None:
    head = ROIHead(4, 2, probabilistic, 1e-3, hidden=8)
    output = head(torch.randn(2, 4, 4, 6), [torch.tensor([[0.0, 0.0, 20.0, 20.0]] * 3), torch.zeros(0, 4)])
    assert output.logits.shape == (3, 3)
    assert output.deltas.shape == output.variances.shape == (3, 2, 4)
    assert bool(output.variances.any()) == probabilistic


def test_roi_head__light_looks_at_fewer_channels() -> None:
    torch.manual_seed(0)
    light, full = ROIHead(4, 2, True, 1e-3, hidden=8, reduced=3), ROIHead(4, 2, True, 1e-3, hidden=8)
    assert light.reduce is not None and light.fc1.in_features == 3 * 49
    # RoIAlign is linear, so the two first layers are one: a full head with their product says the same
    with torch.no_grad():
        first = light.fc1.weight.reshape(8, 3, 49)
        mix = light.reduce.weight.reshape(3, 4)
        full.fc1.weight.copy_(torch.einsum("ork,rc->ock", first, mix).reshape(8, 4 * 49))
        full.fc1.bias.copy_(light.fc1.bias + torch.einsum("ork,r->o", first, light.reduce.bias))
        for name in ("fc2", "logits", "deltas", "variances"):
            getattr(full, name).load_state_dict(getattr(light, name).state_dict())
        features, boxes = torch.randn(1, 4, 4, 6), [torch.tensor([[8.0, 8.0, 60.0, 40.0], [20.0, 0.0, 70.0, 30.0]])]
        for got, expected in zip(
            vars(light(features, boxes)).values(), vars(full(features, boxes)).values(), strict=True
        ):
            torch.testing.assert_close(got, expected, atol=1e-5, rtol=1e-4)


def test_roi_head__pools_a_constant_map_to_the_constant() -> None:
    head = ROIHead(1, 1, True, 1e-3, hidden=2)
    with torch.no_grad():
        head.fc1.weight.fill_(1.0)
        head.fc1.bias.zero_()
        head.fc2.weight.copy_(torch.eye(2))
        head.fc2.bias.zero_()
        head.logits.weight.copy_(torch.eye(2))
        logits = head(torch.full((1, 1, 4, 6), 0.5), [torch.tensor([[20.0, 20.0, 70.0, 50.0]])]).logits
    torch.testing.assert_close(logits, torch.full((1, 2), 0.5 * 49))  # the 49 cells of the RoIAlign


def test_postprocess__no_more_pairs_than_candidates_enter() -> None:
    # ten boxes that do not touch, all above the threshold
    proposals = torch.tensor([[8.0 * i, 0.0, 8.0 * i + 6.0, 6.0] for i in range(10)])
    output = ROIOutput(torch.zeros(10, 2), torch.zeros(10, 1, 4), torch.full((10, 1, 4), 0.5), NO_HIDDEN)
    assert len(_detect(output, proposals, "class", candidates=4).boxes) == 4
    assert len(_detect(output, proposals, "class", candidates=40).boxes) == 9  # the limit of what leaves
