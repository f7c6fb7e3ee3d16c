"""Annotations as columns: the usual ones all at once, the unusual ones one by one, with the same answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ptedge.data.build import Counts
from ptedge.data.coco_columns import annotation_columns, keep_annotation
from ptedge.errors import InputError

NAMES = {3: "car", 7: "bus"}


def entry(**changes: Any) -> dict[str, Any]:
    return {"image_id": 1, "category_id": 3, "bbox": [10, 20, 30, 40], "iscrowd": 0, **changes}


def rows(entries: list[Any], images: dict[int | str, int] | None = None) -> tuple[list[Any], dict[str, int]]:
    counts = Counts()
    kept = [keep_annotation(each) if isinstance(each, dict) else each for each in entries]
    found = annotation_columns(kept, images or {1: 0, 5: 1}, NAMES, Path("a.json"), counts)
    columns = (found.image, found.name, found.boxes, found.ignore)
    return list(zip(*(column.tolist() for column in columns), strict=True)), dict(+counts.dropped)


BOX = [10.0, 20.0, 40.0, 60.0]


def test_annotation_columns__one_unusual_value_changes_no_other_row() -> None:
    usual = [entry(), entry(image_id=5, category_id=7, bbox=[1, 2.5, 3, 4], iscrowd=1)]
    expected = [(0, 0, BOX, False), (1, 1, [1.0, 2.5, 4.0, 6.5], True)]
    assert rows(usual) == (expected, {})
    for unusual, again in (
        ({"image_id": "1"}, [(0, 0, BOX, False)]),
        ({"category_id": 3.0}, [(0, 0, BOX, False)]),
        ({"iscrowd": [0]}, [(0, 0, BOX, False)]),
        ({"bbox": ["10", 20, 30, 40]}, [(0, 0, BOX, False)]),
        ({"bbox": None, "segmentation": [[10, 20, 40, 20, 40, 60]]}, [(0, 0, BOX, False)]),
        ({"bbox": [10, 20, 30, 10**400]}, []),
        ({"bbox": [10, 20, 30, float("nan")]}, []),
        ({"bbox": [10, 20, 30, True]}, []),
        ({"bbox": [10, 20, 30]}, []),
    ):
        found, dropped = rows([*usual, entry(**unusual)])
        assert found == expected + again, unusual
        assert dropped == ({} if again else {"malformed box": 1})


def test_annotation_columns__the_first_fault_of_an_entry_counts() -> None:
    wrong = [
        entry(image_id=9, category_id=9, bbox=[]),
        entry(category_id=True, iscrowd=2),
        entry(iscrowd=2, bbox=None),
        entry(bbox=None, segmentation={"counts": "abc"}),
    ]
    reasons = ("image id not listed", "category id not listed", "iscrowd is neither 0 nor 1")
    assert rows(wrong) == ([], dict.fromkeys((*reasons, "no bbox, and a mask in RLE"), 1))


@pytest.mark.parametrize("far", [10**6, 10**15, 10**30, -(10**12)])
def test_annotation_columns__ids_with_wide_gaps(far: int) -> None:
    found, dropped = rows([entry(image_id=far), entry(), entry(image_id=far + 1)], {1: 0, far: 1})
    assert [row[0] for row in found] == [1, 0] and dropped == {"image id not listed": 1}


def test_annotation_columns__an_annotation_that_also_names_a_file() -> None:
    assert rows([entry(file_name="a.png"), entry(name="x")])[0] == [(0, 0, BOX, False)] * 2


@pytest.mark.parametrize("broken", [{"image_id": 1}, 3, [1, 2], None])
def test_annotation_columns__an_entry_that_is_none_is_named(broken: Any) -> None:
    with pytest.raises(InputError, match=r"a\.json: annotation 1 needs the keys image_id, category_id, got "):
        rows([entry(), broken])


def test_keep_annotation__lets_outlines_go_and_others_be() -> None:
    assert keep_annotation(entry(segmentation=[[1] * 400])) == (1, 3, 0, [10, 20, 30, 40])
    image = {"id": 1, "file_name": "a.png", "image_id": 1, "category_id": 2}
    assert keep_annotation(image) is image
