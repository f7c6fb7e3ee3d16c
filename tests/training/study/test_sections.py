"""The tables under the table of a study."""

from __future__ import annotations

from dataclasses import replace

from made_study import STUDY, made_result

from ptedge.training.study.described import Counted, Official
from ptedge.training.study.plan import Published
from ptedge.training.study.sections import by_class, data_counts, published
from ptedge.training.study.table import table


def test_by_class__medians_over_seeds_of_the_classes_that_have_boxes() -> None:
    results = [
        made_result("source", 0, 0.4, per_class={"car": 0.5, "bus": 0.3}),
        made_result("source", 1, 0.4, per_class={"car": 0.7}),
        made_result("oracle", 0, 0.4),  # of an earlier version, which did not keep them
    ]
    text = by_class(STUDY, results)
    assert "| row | car | bus |" in text and "| source | 60.0 (50.0 to 70.0) | 30.0 |" in text
    assert "oracle" not in text
    assert by_class(STUDY, [made_result("source", 0, 0.4, per_class={"car": 0.5})]) == ""


def test_data_counts__stands_out_where_data_are_not_the_benchmarks() -> None:
    assert data_counts(STUDY) == ""
    right = Counted("val", 500, {"car": 4600, "bus": 7}, Official(500, {"car": (4562, 4750)}, "them"))
    text = data_counts(replace(STUDY, counted=(right,)))
    assert "All counts are the official ones" in text
    assert "| val | images | 500 | 500 | them |" in text
    assert "| val | boxes of car | 4,600 | 4,562 to 4,750 | them |" in text
    assert "| val | boxes of bus | 7 |  | them |" in text
    text = data_counts(replace(STUDY, counted=(replace(right, images=6),)))
    assert (
        "**These are not the benchmark's data**, so no number above stands for it: val has 6 images, not 500." in text
    )


def test_published__says_that_nothing_of_it_was_measured_here() -> None:
    assert published(STUDY) == ""
    other = Published("PT", "with source", 47.1, "Faster R-CNN, VGG16", "devkit", "Chen et al.")
    text = published(replace(STUDY, published=(other,)))
    assert "Nothing in this table was measured here" in text
    assert "| PT | with source | 47.1 | Faster R-CNN, VGG16 | devkit | Chen et al. |" in text


def test_table__published_numbers_stand_apart_even_before_a_run_is_finished() -> None:
    other = Published("PT", "with source", 47.1)
    for results in ([], [made_result("source", 0, 0.4)]):
        ours, _, theirs = table(replace(STUDY, published=(other,)), results).partition("## Published by others")
        assert "47.1" not in ours and "47.1" in theirs


def test_table__names_a_convention_that_is_not_the_usual_one() -> None:
    results = [made_result("source", 0, 0.4)]
    assert "COCO 101-point" in table(replace(STUDY, convention="coco"), results)
    assert "all-point" not in table(STUDY, results)
