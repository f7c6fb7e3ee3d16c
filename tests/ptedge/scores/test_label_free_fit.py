"""From signs to the scale of sigma and to AP: laws put in come out, and where nothing can be said nothing is."""

import math
from pathlib import Path

import numpy as np
import pytest
from made_answers import found

from ptedge.data.dataset import Sample
from ptedge.errors import InputError
from ptedge.scores.label_free import Answers, Signs
from ptedge.scores.label_free_fit import LabelledSet, estimate, fit_label_free, labelled_set


def made_sets() -> list[LabelledSet]:
    """Ten kinds in three strengths: the scale is the root of the disagreement, AP50 is the score."""
    sets = []
    for kind in range(10):
        for strength in range(3):
            q = math.exp((kind - 5) / 3 + strength / 2)
            score = 0.2 + 0.05 * kind + 0.02 * strength
            signs = Signs(8, 20, (q, q, q, 4 * q), score, 0.5, 0.5, 0.5, 0.5)
            root = math.sqrt(q)
            sets.append(LabelledSet(str(kind), signs, 20, (root, root, 2 * root, 1.0), score, score / 2))
    return sets


def test_fit__the_laws_that_were_put_in() -> None:
    fit = fit_label_free(made_sets(), "own")
    slopes = [side.slopes[0] for side in fit.sides]
    assert slopes == pytest.approx([0.5 / 1.1] * 3 + [0])
    assert fit.ap50.slopes == pytest.approx([1 / 1.1, 0])
    assert (fit.sets, fit.images) == (30, 240)
    said = estimate(fit, Signs(30, 12, (1.0, 1.0, 1.0, 4.0), 0.445, 0.5, 0.5, 0.5, 0.5), "own")
    assert said.ap50 == pytest.approx(0.445, abs=0.02)
    assert said.ap75 == pytest.approx(0.2225, abs=0.01)
    assert said.scale == pytest.approx((1, 1, 2, 1), rel=0.05)
    assert (said.frames, said.pairs, said.outside) == (30, 12, ())
    assert said.ap50_error == fit.ap50.error


def test_estimate__beyond_what_was_seen_is_told() -> None:
    said = estimate(
        fit_label_free(made_sets(), "own"), Signs(30, 12, (1e9, 1.0, 1.0, 4.0), 0.99, 0.5, 0.5, 0.5, 0.5), "own"
    )
    assert said.outside == ("score", "disagreement")


def test_estimate__no_detection_is_no_ap_and_few_pairs_are_no_scale() -> None:
    fit = fit_label_free(made_sets(), "own")
    nan = math.nan
    said = estimate(fit, Signs(30, 0, None, nan, nan, nan, nan, nan), "own")
    assert (said.ap50, said.ap75, said.scale, said.outside) == (0, 0, None, ())
    assert estimate(fit, Signs(30, 4, (1.0, 1.0, 1.0, 4.0), 0.4, 0.5, 0.5, 0.5, 0.5), "own").scale is None


def test_estimate__no_scale_for_sigma_by_another_rule() -> None:
    signs = Signs(30, 12, (1.0, 1.0, 1.0, 4.0), 0.4, 0.5, 0.5, 0.5, 0.5)
    own, cluster = (estimate(fit_label_free(made_sets(), "own"), signs, rule) for rule in ("own", "cluster"))
    assert own.scale is not None and cluster.scale is None
    assert own.ap50 == cluster.ap50


def test_fit__nothing_found_is_refused() -> None:
    nan = math.nan
    empty = [LabelledSet(kind, Signs(8, 0, None, nan, nan, nan, nan, nan), 0, None, 0.0, 0.0) for kind in "ab"]
    with pytest.raises(InputError, match="too little to learn"):
        fit_label_free(empty, "own")


def test_labelled_set__scale_is_the_quantile_of_errors_over_sigma() -> None:
    boxes = [[0, 0, 20, 20], [30, 0, 50, 20], [60, 0, 80, 20], [90, 0, 110, 20], [120, 0, 140, 20]]
    moved = [[x1 + shift, y1, x2, y2] for (x1, y1, x2, y2), shift in zip(boxes, (0, 1, 2, 3, 4), strict=True)]
    plain = found(*((0.9, 0, box) for box in moved), sigma=2.0)
    labels, ignore = np.zeros(5, np.int64), np.zeros(5, np.bool_)
    sample = Sample(Path("a"), 200, 40, np.array(boxes, np.float32), labels, ignore, 0)
    one = labelled_set("blur", [Answers(plain, plain, plain)], [sample], ("car",))
    assert (one.kind, one.found, one.ap50) == ("blur", 5, 1.0)
    assert one.scale is not None
    assert one.scale[0] == pytest.approx(np.quantile([0, 0.5, 1, 1.5, 2], 0.6826895))
    assert one.scale[1] == pytest.approx(1 / 8)  # no error at all is no scale either: held at the least
    few = labelled_set("blur", [Answers(plain, plain, plain)], [replace_boxes(sample, boxes[:4])], ("car",))
    assert (few.found, few.scale) == (4, None)


def replace_boxes(sample: Sample, boxes: list[list[float]]) -> Sample:
    count = len(boxes)
    rows = np.array(boxes, np.float32)
    return Sample(sample.path, 200, 40, rows, np.zeros(count, np.int64), np.zeros(count, np.bool_), 0)
