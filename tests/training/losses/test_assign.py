"""Matching and sampling by hand."""

from __future__ import annotations

import pytest
import torch

from ptedge.training.losses.assign import BACKGROUND, IGNORED, Sampling, choose_samples, match, sample

# two objects of 10 x 10, far apart
BOXES = torch.tensor([[0.0, 0.0, 10.0, 10.0], [50.0, 50.0, 60.0, 60.0]])


def _shifted(x: float, box: int = 0) -> list[float]:
    return (BOXES[box] + torch.tensor([x, 0.0, x, 0.0])).tolist()


def test_match__thresholds_by_hand() -> None:
    # a shift by x leaves IoU (10 - x) / (10 + x): 1, 9/11 = 0.82, 6/14 = 0.43, 5/15 = 0.33, 1/19
    candidates = torch.tensor([_shifted(x) for x in (0.0, 1.0, 4.0, 5.0, 9.0)])
    matched = match(candidates, BOXES[:1], 0.7, 0.3, best_for_each=False)
    assert matched.tolist() == [0, 0, IGNORED, IGNORED, BACKGROUND]
    assert match(candidates, BOXES[:1], 0.5, 0.5, best_for_each=False).tolist() == [0, 0] + [BACKGROUND] * 3


def test_match__at_the_threshold_counts() -> None:
    half = torch.tensor([[0.0, 0.0, 10.0, 5.0]])  # IoU exactly 1/2
    assert match(half, BOXES[:1], 0.5, 0.5, best_for_each=False).tolist() == [0]
    assert match(half, BOXES[:1], 0.6, 0.5, best_for_each=False).tolist() == [IGNORED]


def test_match__takes_the_box_with_the_larger_overlap() -> None:
    candidates = torch.tensor([_shifted(1.0, 1), _shifted(1.0, 0)])
    assert match(candidates, BOXES, 0.7, 0.3, best_for_each=False).tolist() == [1, 0]


def test_match__best_for_each_box() -> None:
    # the best of box 0 has IoU 1/3, the best of box 1 just 1/19 (twice); each becomes a match
    candidates = torch.tensor([_shifted(5.0), _shifted(6.0), _shifted(9.0, 1), _shifted(-9.0, 1)])
    assert match(candidates, BOXES, 0.7, 0.3, best_for_each=False).tolist() == [IGNORED] + [BACKGROUND] * 3
    assert match(candidates, BOXES, 0.7, 0.3, best_for_each=True).tolist() == [0, BACKGROUND, 1, 1]


def test_match__a_boxes_best_stands_for_the_box_it_overlaps_most() -> None:
    # the only candidate is the best that both boxes have; it covers 6 rows of the first and 9 of the second
    boxes = torch.tensor([[0.0, 0.0, 10.0, 10.0], [0.0, 5.0, 10.0, 15.0]])
    candidate = torch.tensor([[0.0, 4.0, 10.0, 14.0]])
    assert match(candidate, boxes, 0.9, 0.3, best_for_each=True).tolist() == [1]
    assert match(candidate, boxes.flip(0), 0.9, 0.3, best_for_each=True).tolist() == [0]


def test_match__the_best_of_one_box_may_stand_for_another() -> None:
    # box 1 is found by the first candidate alone (IoU 3 / 17), which overlaps box 0 more (5 / 15)
    boxes = torch.tensor([[0.0, 0.0, 10.0, 10.0], [0.0, 12.0, 10.0, 22.0]])
    candidates = torch.tensor([[0.0, 5.0, 10.0, 15.0], [0.0, 0.0, 10.0, 10.0]])
    assert match(candidates, boxes, 0.7, 0.3, best_for_each=True).tolist() == [0, 0]


def test_match__best_for_each_needs_some_overlap() -> None:
    candidates = torch.tensor([[20.0, 20.0, 30.0, 30.0]])
    assert match(candidates, BOXES, 0.7, 0.3, best_for_each=True).tolist() == [BACKGROUND]


@pytest.mark.parametrize("best_for_each", [True, False])
def test_match__no_boxes_or_no_candidates(best_for_each: bool) -> None:
    assert match(BOXES, torch.zeros(0, 4), 0.7, 0.3, best_for_each=best_for_each).tolist() == [BACKGROUND] * 2
    assert match(torch.zeros(0, 4), torch.zeros(0, 4), 0.5, 0.5, best_for_each=best_for_each).tolist() == []


def test_match__a_flat_box_matches_nothing() -> None:
    flat = torch.tensor([[5.0, 0.0, 5.0, 10.0]])
    candidates = torch.cat([BOXES, flat])
    assert match(candidates, flat, 0.5, 0.5, best_for_each=True).tolist() == [BACKGROUND] * 3


def test_match__ignore_regions() -> None:
    region = torch.tensor([[0.0, 0.0, 100.0, 20.0], [200.0, 0.0, 210.0, 10.0]])
    candidates = torch.tensor(
        [
            _shifted(0.0),  # the object itself, inside the region: still a match
            [20.0, 0.0, 40.0, 20.0],  # wholly inside
            [20.0, 9.0, 40.0, 29.0],  # 11 of 20 rows inside
            [20.0, 11.0, 40.0, 31.0],  # 9 of 20 rows inside
            [300.0, 0.0, 310.0, 10.0],  # outside
        ]
    )
    matched = match(candidates, BOXES[:1], 0.7, 0.3, best_for_each=True, ignore=region)
    assert matched.tolist() == [0, IGNORED, IGNORED, BACKGROUND, BACKGROUND]
    assert match(candidates, BOXES[:1], 0.7, 0.3, best_for_each=True, ignore=torch.zeros(0, 4)).tolist() == [
        0,
        *[BACKGROUND] * 4,
    ]


def test_match__ignore_regions_without_boxes() -> None:
    matched = match(BOXES, torch.zeros(0, 4), 0.5, 0.5, best_for_each=False, ignore=BOXES[1:])
    assert matched.tolist() == [BACKGROUND, IGNORED]


@pytest.mark.parametrize(
    ("positives", "negatives", "expected"),
    [
        (100, 500, (16, 48)),  # a quarter of 64
        (5, 500, (5, 59)),  # too few positives: negatives fill up
        (100, 10, (16, 10)),  # too few negatives: positives do not
        (0, 20, (0, 20)),
        (0, 0, (0, 0)),
    ],
)
def test_sample__counts(positives: int, negatives: int, expected: tuple[int, int]) -> None:
    matched = torch.tensor([3] * positives + [BACKGROUND] * negatives + [IGNORED] * 30, dtype=torch.int64)
    positive, negative = sample(matched, 64, 0.25, torch.Generator().manual_seed(0))
    assert (len(positive), len(negative)) == expected
    assert (matched[positive] == 3).all() and (matched[negative] == BACKGROUND).all()
    chosen = torch.cat([positive, negative]).tolist()
    assert len(set(chosen)) == len(chosen)


def test_sample__follows_the_generator_alone() -> None:
    matched = torch.tensor([0] * 50 + [BACKGROUND] * 50)
    first = sample(matched, 20, 0.5, torch.Generator().manual_seed(1))
    torch.manual_seed(99)
    again = sample(matched, 20, 0.5, torch.Generator().manual_seed(1))
    other = sample(matched, 20, 0.5, torch.Generator().manual_seed(2))
    assert first[0].tolist() == again[0].tolist() and first[1].tolist() == again[1].tolist()
    assert first[0].tolist() != other[0].tolist()


def test_choose_samples__by_hand() -> None:
    anchors = torch.tensor([_shifted(0.0), _shifted(200.0), _shifted(4.0)])  # box 0, background, between the thresholds
    proposals = [torch.tensor([_shifted(300.0), _shifted(1.0, 1)]), torch.tensor([_shifted(0.0)])]
    chosen = choose_samples(
        anchors, proposals, [BOXES, BOXES[:0]], Sampling(4, 0.5, 8, 0.5), torch.Generator().manual_seed(0)
    )
    first, second = chosen.anchors
    assert (first.positive.tolist(), first.box.tolist(), first.negative.tolist()) == ([0], [0], [1])
    assert (second.positive.tolist(), second.box.tolist()) == ([], []) and len(second.negative) == 3
    # the boxes are proposals too, after those that were found; positives first
    assert chosen.matches[0].tolist() == [1, 0, 1, BACKGROUND]
    expected = [_shifted(1.0, 1), _shifted(0.0), _shifted(0.0, 1), _shifted(300.0)]
    assert chosen.proposals[0].tolist() == expected
    assert chosen.matches[1].tolist() == [BACKGROUND]


def _rows_left(count: int) -> list[float]:
    """A candidate with the first ``count`` of the 20 rows of a box 20 x 20: IoU count / 20."""
    return [0.0, 0.0, 20.0, float(count)]


def test_choose_samples__thresholds_near_the_limits() -> None:
    box = torch.tensor([[0.0, 0.0, 20.0, 20.0]])
    overlaps = [20, 15, 13, 11, 9, 7, 5]  # IoU 1, 0.75, 0.65, 0.55, 0.45, 0.35, 0.25; the first is the box's best
    candidates = torch.tensor([_rows_left(count) for count in overlaps])
    chosen = choose_samples(candidates, [candidates], [box], Sampling(20, 1.0, 20, 1.0), torch.Generator())
    anchors = chosen.anchors[0]
    assert (anchors.positive.tolist(), anchors.negative.tolist()) == ([0, 1], [6])  # from 0.7; below 0.3
    found = chosen.proposals[0][chosen.matches[0] == 0]
    assert found[:, 3].tolist() == [20, 15, 13, 11, 20]  # from 0.5, and the box itself
    assert chosen.proposals[0][chosen.matches[0] == BACKGROUND][:, 3].tolist() == [9, 7, 5]


def test_choose_samples__an_anchor_below_the_threshold_is_some_boxes_best() -> None:
    box = torch.tensor([[0.0, 0.0, 20.0, 20.0]])
    candidates = torch.tensor([_rows_left(9), _rows_left(7)])
    chosen = choose_samples(candidates, [candidates], [box], Sampling(20, 1.0, 20, 1.0), torch.Generator())
    assert chosen.anchors[0].positive.tolist() == [0]  # an anchor may be
    assert chosen.matches[0].tolist() == [0, BACKGROUND, BACKGROUND]  # a proposal may not: only the box itself


def test_choose_samples__counts_and_shares_of_each_stage() -> None:
    box = torch.tensor([[0.0, 0.0, 20.0, 20.0]])
    both = torch.cat([box.repeat(30, 1), box.repeat(30, 1) + 100])
    chosen = choose_samples(both, [both] * 2, [box] * 2, Sampling(8, 0.5, 20, 0.1), torch.Generator().manual_seed(0))
    for anchors, matched in zip(chosen.anchors, chosen.matches, strict=True):
        assert (len(anchors.positive), len(anchors.negative)) == (4, 4)
        assert sorted(matched.tolist()) == [BACKGROUND] * 18 + [0] * 2


def test_choose_samples__a_generator_an_image() -> None:
    box = torch.tensor([[0.0, 0.0, 20.0, 20.0]])
    anchors = torch.cat([box.repeat(30, 1), box.repeat(30, 1) + 100])
    anchors[:, 3] += torch.arange(60) / 100  # told apart by their height

    def drawn(*seeds: int) -> list[list[list[float]]]:
        draws = [torch.Generator().manual_seed(seed) for seed in seeds]
        count = len(seeds)
        chosen = choose_samples(anchors, [anchors] * count, [box] * count, Sampling(8, 0.5, 8, 0.5), draws)
        of_rpn = [anchors[torch.cat([one.positive, one.negative]), 3].tolist() for one in chosen.anchors]
        return [of_rpn, [rows[:, 3].tolist() for rows in chosen.proposals]]

    for (first, second), (again_second, again_first) in zip(drawn(1, 2), drawn(2, 1), strict=True):
        assert (first, second) == (again_first, again_second) and first != second


def test_choose_samples__regions_and_proposals_of_every_image() -> None:
    draws, none = torch.Generator(), torch.zeros(0, 4)
    with pytest.raises(ValueError, match="argument"):
        choose_samples(BOXES, [BOXES] * 2, [BOXES] * 2, Sampling(), draws, ignore=[none])
    with pytest.raises(ValueError, match="argument"):
        choose_samples(BOXES, [BOXES], [BOXES] * 2, Sampling(), draws)


def test_choose_samples__without_background_draws_positives_alone() -> None:
    anchors = torch.tensor([_shifted(0.0), _shifted(200.0)])
    chosen = choose_samples(
        anchors,
        [torch.tensor([_shifted(300.0)])],
        [BOXES[:1]],
        Sampling(4, 1.0, 4, 1.0),
        torch.Generator(),
        background=False,
    )
    assert chosen.anchors[0].positive.tolist() == [0] and len(chosen.anchors[0].negative) == 0
    assert chosen.matches[0].tolist() == [0] and chosen.proposals[0].tolist() == BOXES[:1].tolist()


def test_choose_samples__an_ignore_region_is_no_background() -> None:
    far = torch.tensor([_shifted(200.0)])
    chosen = choose_samples(far, [far], [BOXES[:0]], Sampling(4, 0.5, 4, 0.5), torch.Generator(), ignore=[far])
    assert len(chosen.anchors[0].negative) == 0 and len(chosen.proposals[0]) == 0


@pytest.mark.parametrize(
    ("field", "value", "allowed"),
    [
        ("rpn_count", 0, "at least 1"),
        ("roi_count", 0, "at least 1"),
        ("rpn_positive", 1.1, "at least 0 and at most 1"),
        ("roi_positive", -0.1, "at least 0 and at most 1"),
    ],
)
def test_sampling__refuses_with_name_value_and_range(field: str, value: float, allowed: str) -> None:
    with pytest.raises(ValueError, match=f"^{field} is {value}; it must be {allowed}$"):
        Sampling(**{field: value})  # type: ignore[arg-type]
