"""The table of what detectors cost, and the line of the best."""

from __future__ import annotations

from made_study import made_result

from ptedge.training.study.plan import Row, Study, Timing
from ptedge.training.study.timing.run import Speed
from ptedge.training.study.timing.table import speed_page, speed_rows


def timed(name: str, ms: float, kind: str = "row") -> Speed:
    return Speed(name, kind, "64x96", 20, ms, ms, 1.0, 0.5)


def test_speed_rows__the_line_of_the_best() -> None:
    rows = (
        Row("slow", "train"),
        Row("fast", "train"),
        Row("middle", "train"),
        Row("fast, adapted", "source_free", start="fast"),
    )
    study = Study(title="T", row=rows, baseline="slow", timing=Timing(rounds=3))
    speeds = [timed("slow", 40.0), timed("fast", 10.0), timed("middle", 20.0), timed("light", 5.0, "untrained")]
    ap50 = {"slow": (0.8, 0.9), "fast": (0.5, 0.5), "middle": (0.55, 0.45), "fast, adapted": (0.6, 0.7)}
    results = [made_result(name, seed, value) for name, both in ap50.items() for seed, value in enumerate(both)]
    found = speed_rows(study, results, speeds)
    # an adapted row is as fast as the one it starts from; the middle one is slower than that and no better
    assert [(row.name, row.best) for row in found] == [
        ("light", False),
        ("fast, adapted", True),
        ("fast", False),
        ("middle", False),
        ("slow", True),
    ]
    page = speed_page(study, found)
    assert (
        "| **slow** | 64x96 | 20 | 40.0 | 1.00 | 40.0 | 1.0 | 0.50 | 85.0 (80.0 to 90.0) | 20.0 (20.0 to 20.0) |"
        in page
    )
    assert "| light | 64x96 | 20 | 5.0 | 0.12 | 5.0 | 1.0 | 0.50 | not trained | - |" in page
