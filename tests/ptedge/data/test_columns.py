"""Boxes as columns, against a loop over one box after the other."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ptedge.data.classes import ClassRules, class_table
from ptedge.data.columns import CUT, DUPLICATE, NOT_LISTED, THIN, BoxColumns, usable_boxes

NAMES = ("car", "bus", "van", "tram")
RULES = ClassRules(classes=("car", "bus"), class_map={"van": "bus"}, ignore=frozenset({"van"}))
SIZES = [(100, 80), (0, 0), (30, 30)]
PLACES = [0, 1, 2, 0]  # the fourth entry is the first image again

Row = tuple[int, int, tuple[float, float, float, float], bool]
SIDE = st.sampled_from([-2.0, -1.0, -0.5, -0.0, 0.0, 0.1, 10.0, 10.4, 29.0, 30.5, 31.5, 80.0, 101.0, 101.5])
ROWS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.tuples(SIDE, SIDE, SIDE, SIDE), st.booleans()))


def by_loop(rows: list[Row]) -> tuple[list[list[tuple[list[float], int, bool]]], Counter[str], Counter[str]]:
    """Boxes by image, what was dropped, and notes."""
    table = class_table(NAMES, RULES, "x")
    dropped: Counter[str] = Counter()
    notes: Counter[str] = Counter()
    kept: list[dict[object, tuple[list[float], int, bool]]] = [{} for _ in SIZES]
    for place, listed in enumerate(PLACES):
        for image, name, box, crowd in rows:
            if image != place:
                continue
            label = table.label(NAMES[name])
            width, height = (side or np.inf for side in SIZES[listed])
            x1, y1, x2, y2 = box
            inside = np.array([max(x1, 0), max(y1, 0), min(x2, width), min(y2, height)], np.float32).tolist()
            if label is None:
                dropped[f"{NOT_LISTED}{NAMES[name]}"] += 1
                continue
            key = (box, label[0], crowd or label[1])
            if x2 <= x1 or y2 <= y1:
                dropped["no area"] += 1
            elif inside[2] <= inside[0] or inside[3] <= inside[1]:
                dropped["outside the image"] += 1
            elif key in kept[listed]:
                dropped[DUPLICATE] += 1
            else:
                kept[listed][key] = (inside, label[0], crowd or label[1])
                if not key[2]:
                    notes[CUT] += max(abs(a - b) for a, b in zip(box, inside, strict=True)) > 1
                    notes[THIN] += min(inside[2] - inside[0], inside[3] - inside[1]) < 1
    return [list(boxes.values()) for boxes in kept], +dropped, +notes


@given(ROWS)
@settings(max_examples=200, deadline=None)
def test_usable_boxes__as_a_loop_over_the_boxes(rows: list[Row]) -> None:
    columns = BoxColumns(
        np.array([row[0] for row in rows], np.int64),
        np.array([row[1] for row in rows], np.int64),
        NAMES,
        np.array([row[2] for row in rows], np.float64).reshape(-1, 4),
        np.array([row[3] for row in rows], np.bool_),
    )
    dropped: Counter[str] = Counter()
    notes: Counter[str] = Counter()
    table = class_table(NAMES, RULES, "x")
    found = usable_boxes(columns, np.array(PLACES), np.array(SIZES), table, dropped, notes)
    kept = [
        list(zip(found.boxes[a:b].tolist(), found.labels[a:b].tolist(), found.ignore[a:b].tolist(), strict=True))
        for a, b in zip(found.ends[:-1], found.ends[1:], strict=True)
    ]
    assert (kept, +dropped, +notes) == by_loop(rows)
