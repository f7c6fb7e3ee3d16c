"""Two detectors' boxes made one: by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from ptedge.detector.config import ROI_WEIGHTS
from ptedge.detector.gaussian import class_entropy, corner_sigma
from ptedge.detector.roi_heads import RawDetections
from ptedge.training.losses.merge import (
    ForeignBoxes,
    MergeRule,
    certainty,
    class_distribution,
    measured_sigma,
    merge_boxes,
    side_variance,
)

SIZE = (100, 200)


def own(boxes: Any, p: Any, variance: float = 0.1, labels: Any = None) -> RawDetections:
    """Detections with their own boxes as proposals."""
    box, probabilities = torch.tensor(boxes).reshape(-1, 4), torch.tensor(p)
    label = probabilities[:, :-1].argmax(dim=1) if labels is None else torch.tensor(labels)
    variances = torch.full_like(box, variance)
    scores = probabilities[torch.arange(len(box)), label]
    sigma = corner_sigma(variances, box, box, ROI_WEIGHTS)
    return RawDetections(box, scores, label, probabilities.log(), variances, box, sigma, class_entropy(probabilities))


def foreign(*rows: tuple[list[float], float, int]) -> ForeignBoxes:
    boxes = torch.tensor([box for box, _, _ in rows]).reshape(-1, 4)
    return ForeignBoxes(boxes, torch.tensor([s for _, s, _ in rows]), torch.tensor([label for _, _, label in rows]))


def merge(one: RawDetections, other: ForeignBoxes, sigma: float = 0.05, **rule: Any) -> RawDetections:
    return merge_boxes(one, other, MergeRule(**rule), sigma, SIZE)


def test_certainty__of_distributions() -> None:
    p = torch.tensor([[0.5, 0.5], [1.0, 0.0], [0.8, 0.2]])
    entropy = -(0.8 * math.log(0.8) + 0.2 * math.log(0.2))
    assert certainty(p).tolist() == pytest.approx([0.0, 1.0, 1 - entropy / math.log(2)], abs=1e-6)


def test_class_distribution__score_and_background() -> None:
    p = class_distribution(torch.tensor([0.75, 0.1]), torch.tensor([1, 0]), 2)
    assert torch.allclose(p, torch.tensor([[0.0, 0.75, 0.25], [0.1, 0.0, 0.9]]))


def test_side_variance__gives_the_sigma_it_was_made_of() -> None:
    box, reference = torch.tensor([[10.0, 10, 50, 30]]), torch.tensor([[0.0, 0, 80, 10]])
    for proposal in (box, reference):
        variance = side_variance(0.05, box, proposal)
        sigma = corner_sigma(variance, box, proposal, ROI_WEIGHTS)
        assert sigma[0].tolist() == pytest.approx([2.0, 1.0, 2.0, 1.0])
    # 0.5 (0.05 * 10)^2 and 2 (0.05 * 5)^2
    assert side_variance(0.05, box, box)[0].tolist() == pytest.approx([0.125] * 4)


def test_merge__boxes_alone_stay_and_join() -> None:
    mine = own([[0.0, 0, 40, 20]], [[0.6, 0.1, 0.3]])
    found = merge(mine, foreign(([100.0, 50, 140, 90], 0.9, 1), ([150.0, 50, 260, 90], 0.2, 0)))
    assert found.boxes.tolist() == [[100, 50, 140, 90], [0, 0, 40, 20], [150, 50, 200, 90]]  # by score, cut at the edge
    assert found.scores.tolist() == pytest.approx([0.9, 0.6, 0.2]) and found.labels.tolist() == [1, 0, 0]
    p = found.logits.softmax(dim=-1)
    assert torch.allclose(p, torch.tensor([[0, 0.9, 0.1], [0.6, 0.1, 0.3], [0.2, 0, 0.8]]), atol=1e-5)
    assert found.variances[:, 0].tolist() == pytest.approx([0.125, 0.1, 0.125])
    assert torch.equal(found.proposals, found.boxes)
    assert found.sigma[0].tolist() == pytest.approx([2.0] * 4)
    assert found.entropy[0] == pytest.approx(-(0.9 * math.log(0.9) + 0.1 * math.log(0.1)))


def test_merge__a_pair_is_the_mixture() -> None:
    # equally sure: each weighs a half. Centres differ by 4 of 40 pixels: 10 * 0.1 = 1 in delta space
    mine = own([[0.0, 0, 40, 20]], [[0.8, 0.2]])
    found = merge(mine, foreign(([4.0, 0, 44, 20], 0.8, 0)))
    assert found.boxes[0].tolist() == pytest.approx([2, 0, 42, 20])
    assert found.logits.softmax(dim=-1)[0].tolist() == pytest.approx([0.8, 0.2])
    assert found.scores.tolist() == pytest.approx([0.8])
    # mean of 0.1 and 0.125, and a quarter of the squared difference in x
    assert found.variances[0].tolist() == pytest.approx([0.3625, 0.1125, 0.1125, 0.1125], abs=1e-5)
    assert torch.equal(found.proposals, mine.proposals)


def test_merge__the_surer_one_weighs_more() -> None:
    mine = own([[0.0, 0, 40, 20]], [[0.6, 0.4]])
    other = foreign(([4.0, 0, 44, 20], 0.9, 0))
    sure = [s * (1 + (s * math.log(s) + (1 - s) * math.log(1 - s)) / math.log(2)) for s in (0.6, 0.9)]
    for weight in (1.0, 0.25):
        share = weight * sure[1] / (sure[0] + weight * sure[1])
        found = merge(mine, other, weight=weight)
        assert found.boxes[0, 0] == pytest.approx(4 * share)
        assert found.scores[0] == pytest.approx(0.6 + 0.3 * share)
    assert merge(mine, other, weight=0.0).boxes[0].tolist() == pytest.approx([0, 0, 40, 20], abs=1e-5)


def test_merge__two_that_know_nothing_share_equally() -> None:
    found = merge(own([[0.0, 0, 40, 20]], [[0.5, 0.5]]), foreign(([4.0, 0, 44, 20], 0.5, 0)))
    assert found.boxes[0].tolist() == pytest.approx([2, 0, 42, 20])


@pytest.mark.parametrize("change", [{"iou": 0.9}, {"label": 1}, {"min_score": 0.85}])
def test_merge__what_is_no_pair(change: dict[str, Any]) -> None:
    mine = own([[0.0, 0, 40, 20]], [[0.7, 0.1, 0.2]])
    other = foreign(([4.0, 0, 44, 20], 0.8, change.pop("label", 0)))
    found = merge(mine, other, **change)
    assert len(found.boxes) == (1 if "min_score" in change else 2)
    assert [0, 0, 40, 20] in found.boxes.tolist()


@pytest.mark.parametrize("mine", [0, 1])
@pytest.mark.parametrize("theirs", [0, 1])
def test_merge__of_nothing(mine: int, theirs: int) -> None:
    one = own([[0.0, 0, 40, 20]], [[0.7, 0.3]])
    one = RawDetections(**{name: value[:mine] for name, value in vars(one).items()})
    other = foreign(([100.0, 50, 140, 90], 0.9, 0))
    other = ForeignBoxes(other.boxes[:theirs], other.scores[:theirs], other.labels[:theirs])
    found = merge(one, other)
    assert len(found.boxes) == mine + theirs and found.logits.shape == (mine + theirs, 2)


def test_merge__outside_the_picture_is_dropped() -> None:
    mine = own([[0.0, 0, 40, 20]], [[0.7, 0.3]])
    assert len(merge(mine, foreign(([210.0, 50, 240, 90], 0.9, 0))).boxes) == 1


def test_measured_sigma__of_two_pairs() -> None:
    mine = own([[0.0, 0, 40, 20], [100.0, 0, 140, 20]], [[0.7, 0.3], [0.7, 0.3]])
    shifted: Tensor = mine.boxes + torch.tensor([4.0, 0, 4, 0])
    other = ForeignBoxes(shifted, mine.scores, mine.labels)
    # of four sides two are off by a tenth: mean square 0.005, half of it 0.0025
    assert measured_sigma([mine], [other], 0.5) == (pytest.approx(0.05), 2)
    assert measured_sigma([mine], [replace(other, labels=other.labels + 1)], 0.5) == (0.0, 0)


@pytest.mark.parametrize("change", [{"iou": 1.5}, {"sigma": -0.1}, {"weight": -1.0}, {"min_score": 2.0}])
def test_merge_rule__names_what_is_wrong(change: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=f"teacher_boxes.{next(iter(change))}"):
        MergeRule(**change)  # type: ignore[arg-type]
