from __future__ import annotations

import pytest
from made_findings import SCORES

from ptedge.training.report.scores import coverage_chart, score_table, side_drawing, side_table, sigma_sentence


def test_score_table__in_percent_and_a_dash_for_what_is_not_known() -> None:
    made = score_table({"source model": {**SCORES, "convention": "voc"}, "adapted model": {"AP50": None}})
    assert "in %; convention: voc</caption>" in made
    assert "<td>50.0</td><td>25.0</td><td>30.0</td><td>30</td><td>12</td>" in made
    assert "<td>-</td>" in made


def test_side_table__signed_offsets() -> None:
    made = side_table({"adapted model": SCORES})
    assert made is not None
    assert "left (x1), adapted model</th><td>+10.0</td><td>5.0</td><td>4.0</td>" in made
    assert side_table({"adapted model": {}}) is None


def test_side_drawing__sides_lie_where_the_offsets_say() -> None:
    made = side_drawing("adapted model", "after", SCORES)
    assert made is not None
    # the labelled box is 160 x 120 at (100, 45): a tenth of it right and down
    assert 'points="116.0,57.0 276.0,57.0 276.0,177.0 116.0,177.0"' in made
    assert "left +10.0 %" in made
    assert side_drawing("adapted model", "after", {"sides": {"x1": {"offset": 0.1}}}) is None


@pytest.mark.parametrize(("share", "says"), [(0.4, "too small"), (0.68, "about true"), (0.9, "too large")])
def test_sigma_sentence__judges_the_coverage(share: float, says: str) -> None:
    assert says in sigma_sentence("adapted model", {"sigma": {"coverage_68": share}})


def test_coverage_chart__needs_a_coverage() -> None:
    assert coverage_chart({"adapted model": ("after", {"sigma": {}})}) is None
    made = coverage_chart({"adapted model": ("after", SCORES)})
    assert made is not None and made.count("<circle") == 4
