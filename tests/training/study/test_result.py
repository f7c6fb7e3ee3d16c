"""Results of runs, written and read."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from made_study import STUDY, made_result, swept

from ptedge.errors import ArtifactError
from ptedge.training.study.plan import Row
from ptedge.training.study.result import Best, Result, Scores, read_results, renewed

# a line as it was written before rows had sweeps and roles
EARLIER: dict[str, Any] = {
    "variant": "mean teacher 0.7",
    "seed": 2,
    "kind": "source_free",
    "start": "source only, strong",
    "AP50": 0.85,
    "AP75": 0.16,
    "AP": 0.31,
    "chosen": {"step": 80, "AP50": 0.84, "AP75": 0.15, "AP": 0.3},
    "sigma": {"coverage_1": 0.56},
    "steps": 100,
    "seconds": 301.5,
    "memory_mib": {"host": 1800.5, "process": 1801},
    "guard_trips": 1,
    "best": {"checkpoint": "step_000060", "AP50": 0.87, "of": 12},
}


def test_from_json__a_line_of_an_earlier_version() -> None:
    result = Result.from_json(EARLIER)
    assert result == Result(
        variant="mean teacher 0.7",
        seed=2,
        kind="source_free",
        last=Scores(0.85, 0.16, 0.31),
        chosen=Scores(0.84, 0.15, 0.3),
        chosen_step=80,
        sigma={"coverage_1": 0.56},
        steps=100,
        seconds=301.5,
        start="source only, strong",
        memory_mib={"host": 1800.5, "process": 1801},
        guard_trips=1,
        best=Best("step_000060", 0.87, 12),
    )
    assert result.to_json() == {**EARLIER, "sweep": [], "roles": []}


def test_to_json__and_back() -> None:
    full = replace(Result.from_json(EARLIER), source_val=0.9, sweep=swept("tau", 0.7), roles=("beside",))
    assert Result.from_json(json.loads(json.dumps(full.to_json()))) == full
    bare = made_result("source", 0, 0.5, kind="train")
    assert Result.from_json(bare.to_json()) == bare and not {"start", "best", "source_val"} & set(bare.to_json())


def test_renewed__sweep_and_roles_are_the_studys() -> None:
    study = replace(STUDY, row=(Row("adapted", "adapt", sweep=swept("tau", 1.0)),), oracle="adapted")
    stale = made_result("adapted", 0, 0.5, sweep=swept("tau", 0.1), roles=("source",))
    assert renewed(stale, study) == replace(stale, sweep=swept("tau", 1.0), roles=("oracle",))


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"AP50": None}, "None is no finite number"),
        ({"AP50": True}, "True is no finite number"),
        ({"AP75": float("nan")}, "nan is no finite number"),
        ({"chosen": 3}, "TypeError"),
        ({"sweep": ["tau"]}, "TypeError"),
        ({"sweep": [{"axis": "", "value": 1}]}, "axis is empty"),
    ],
)
def test_read_results__names_the_line(tmp_path: Path, change: dict[str, Any], what: str) -> None:
    path = tmp_path / "results.jsonl"
    path.write_text(f"{json.dumps(EARLIER)}\n{json.dumps({**EARLIER, **change})}\n", "utf-8")
    with pytest.raises(ArtifactError, match=f"line 2 of .*results.jsonl is no result .*{what}"):
        read_results(path)


def test_read_results__not_there_or_of_something_else(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="cannot be read"):
        read_results(tmp_path / "results.jsonl")
    for text in ("[1]\n", "{}\n", "words\n"):
        (tmp_path / "results.jsonl").write_text(text, "utf-8")
        with pytest.raises(ArtifactError, match="line 1 of"):
            read_results(tmp_path / "results.jsonl")
