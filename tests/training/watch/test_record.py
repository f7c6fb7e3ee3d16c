"""What watched over a run, as the model keeps it."""

from __future__ import annotations

import pytest

from ptedge.artifacts.adaptation import AdaptationRecord
from ptedge.training.watch.record import record_of


def test_record_of__the_chosen_teacher_beside_the_start() -> None:
    supervision = {
        "start": {"step": 0, "signals": {"objects": 2.0, "consistency": 0.5}},
        "chosen": {"step": 40, "signals": {"objects": 3.0, "consistency": 0.6}},
        "guards": [{"name": "max_boxes_ratio"}, {"name": "finite"}],
        "stopped_by_guard": True,
        "steps_without_pseudo_boxes": 7,
    }
    record = record_of(supervision, 50)
    assert record == AdaptationRecord(50, 40, 1.8, 1.0, ("max_boxes_ratio", "finite"), True, 7)
    assert record.describe() == (
        "the model of step 40 of 50 finds 1.80 objects a frame again, 1.00 before the adaptation; limits crossed: "
        "max_boxes_ratio, finite; a guard ended the run; 7 steps without a pseudo box"
    )
    with pytest.raises(ValueError, match="adaptation: steps"):
        AdaptationRecord(-1, 0, 1.0, 1.0)
