from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner
from made_field import collect, policy

from ptedge.runtime.collection.summary import collection_counts, collection_lines
from ptedge.runtime.field import open_field
from ptedge.runtime.field_cli import field

RECORDS = [
    {"file": "images/1", "why": ["neighbour"], "triple": "x", "place": -1, "collected": "2026-03-01T09:59:59+00:00"},
    {"file": "images/2", "why": ["missed"], "triple": "x", "place": 0, "collected": "2026-03-01T09:59:59+00:00"},
    {"file": "images/3", "why": ["random", "missed"], "collected": "2026-03-01T10:00:00+00:00"},
    {"file": "images/4", "why": ["uncertain box"]},  # of an earlier version
]
ABOUT = {
    "counters": {"seen": 90, "kept": 3, "too soon": 7, "evicted": 2, "masked": 3},
    "strategies": {"missed": {"picked": 9, "kept": 3, "evicted": 1}, "random": {"picked": 2, "kept": 2}},
}


def test_collection_counts__by_strategy_hour_and_day() -> None:
    assert collection_counts(ABOUT, RECORDS) == {
        "strategies": {
            "random": {"picked": 2, "kept": 2, "evicted": 0, "held": 1},
            "sigma": {"picked": 0, "kept": 0, "evicted": 0, "held": 1},
            "missed": {"picked": 9, "kept": 3, "evicted": 1, "held": 2},
        },
        "hours": {"2026-03-01 09:00": 2, "2026-03-01 10:00": 1},
        "days": {"2026-03-01": 3},
        "evicted": 2,
        "masked": 3,
        "refused": {"too soon": 7},
        "triples": 1,
    }


def test_collection_lines__what_there_is() -> None:
    assert collection_lines(collection_counts(ABOUT, RECORDS))[1:] == [
        "random                 2       2        0      1",
        "sigma                  0       0        0      1",
        "missed                 9       3        1      2",
        "days       2026-03-01 3",
        "hours      2026-03-01 09:00 2, 2026-03-01 10:00 1",
        "refused    too soon 7",
        "and        evicted 2, masked 3, triples 1",
    ]
    assert collection_lines(collection_counts({}, [])) == []


def test_collection_lines__of_many_hours_the_last() -> None:
    rows = [{"file": f"images/{h}", "collected": f"2026-03-01T{h:02}:00:00+00:00"} for h in range(20)]
    hours = collection_lines(collection_counts({}, rows))[-1]
    assert hours.startswith("hours      (8 before) 2026-03-01 08:00 1, ") and hours.endswith("19:00 1")


def test_summary__tells_what_a_run_counted(tmp_path: Path) -> None:
    sink = collect(tmp_path / "f", policy({"random": 1}, quota={"images": 3}, triples=True), count=30)
    counts = collection_counts(open_field(tmp_path / "f").about, open_field(tmp_path / "f").records())
    assert counts["strategies"]["random"] == {"picked": 30, "kept": sink.kept, "evicted": sink.kept - 1, "held": 3}
    assert counts["refused"]["too soon"] > 0 and counts["triples"] == 1
    text = CliRunner().invoke(field, ["summary", str(tmp_path / "f")]).stdout
    assert f"evicted {counts['evicted']}, triples 1" in text
