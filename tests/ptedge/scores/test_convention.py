"""Every convention on one small case, by hand."""

from __future__ import annotations

import pytest
from scored_boxes import make_detections, make_sample

from ptedge.scores.average_precision import DetectionMetrics, evaluate_detections
from ptedge.scores.convention import CONVENTIONS, VOC, convention_named, counted_images

# Boxes A, B and C, of which C is never found; an image with an ignore region only; one without anything.
SAMPLES = [
    make_sample([([0, 0, 10, 10], 0, False), ([0, 4, 10, 14], 0, False), ([60, 60, 90, 90], 0, False)], 1),
    make_sample([([0, 0, 50, 50], 0, True)], 2),
    make_sample([], 3),
]
# The first is A. The second overlaps A by 0.82 and B by 0.54. The third is B. The fourth is a false alarm.
FOUND = [
    make_detections([([0, 0, 10, 10], 0.9, 0), ([0, 1, 10, 11], 0.8, 0), ([0, 4, 10, 14], 0.7, 0)]),
    make_detections([]),
    make_detections([([0, 0, 10, 10], 0.95, 0)]),
]


def scores(name: str) -> DetectionMetrics:
    return evaluate_detections(FOUND, SAMPLES, ("car",), CONVENTIONS[name])


@pytest.mark.parametrize(
    ("name", "images", "ap50", "ap75"),
    [
        # wrong, right, right (takes B), wrong: precision 1/2 and 2/3 at recall 1/3 and 2/3
        # at 0.75 wrong, right, wrong, right: 1/2 and 2/4
        ("voc", 3, 2 / 3 * 2 / 3, 1 / 2 * 2 / 3),
        # the same without the first one; at 0.75 right, wrong, right
        ("voc-labelled", 1, 2 / 3, 1 / 3 + 1 / 3 * 2 / 3),
        # recall 0 to 0.66 are 67 of the 101 points
        ("coco", 3, 67 / 101 * 2 / 3, 67 / 101 * 1 / 2),
        # the second one's best box is A, which is taken: wrong, right, wrong, right
        ("devkit", 3, 1 / 2 * 2 / 3, 1 / 2 * 2 / 3),
        ("devkit-labelled", 1, 1 / 3 + 1 / 3 * 2 / 3, 1 / 3 + 1 / 3 * 2 / 3),
    ],
)
def test_conventions__by_hand(name: str, images: int, ap50: float, ap75: float) -> None:
    got = scores(name)
    assert (got.images, got.boxes) == (images, 3)
    assert (got.ap50, got.ap75) == (pytest.approx(ap50), pytest.approx(ap75))
    assert got.per_class["car"].ap50 == got.ap50


def test_conventions__ap_is_cocos_over_the_images_that_count() -> None:
    assert scores("voc").ap == scores("coco").ap == scores("devkit").ap
    assert scores("voc-labelled").ap == scores("devkit-labelled").ap > scores("voc").ap


def test_conventions__the_one_asked_for_by_nobody_is_voc() -> None:
    assert evaluate_detections(FOUND, SAMPLES, ("car",)) == scores("voc")
    assert next(iter(CONVENTIONS)) == VOC.name == "voc"


def test_counted_images__keep_their_order_and_their_detections() -> None:
    found, samples = counted_images(FOUND[::-1], SAMPLES[::-1], CONVENTIONS["voc-labelled"])
    assert [sample.image_id for sample in samples] == [1] and len(found[0]) == 3


def test_convention_named__refuses_what_is_none() -> None:
    assert convention_named("coco").all_point is False
    with pytest.raises(ValueError, match="convention is 'voc07'; it must be one of voc, voc-labelled, coco, devkit"):
        convention_named("voc07")
