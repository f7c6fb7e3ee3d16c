"""A study of three rows and two seeds, and results as its runs would give them, for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ptedge.training.study.jobs import Job
from ptedge.training.study.load import load_study
from ptedge.training.study.plan import Row, Study, StudyData, Sweep
from ptedge.training.study.result import Result, Scores

ROWS = (
    Row("adapted", "adapt", start="source", paper=(("K2C", 60.2),)),
    Row("source", "train"),
    Row("oracle", "oracle"),
)
STUDY = Study(
    title="T", seeds=(0, 1), baseline="source", source="source", oracle="oracle", row=ROWS, data=StudyData(val="val")
)
AP50 = {"source": 0.4, "oracle": 0.9, "adapted": 0.8}


def summary_of(job: Job) -> dict[str, Any]:
    """A summary.json: AP50 rises by one point from seed to seed."""
    scores = {"AP50": AP50[job.row.name] + 0.01 * job.seed, "AP75": 0.2, "AP": 0.3}
    val = {**scores, "sigma": {"coverage_1": 0.5}}
    return {"last": {"step": 9, **scores}, "chosen": {"step": 9, **scores}, "val": val, "steps": 9, "seconds": 1.0}


def made_result(variant: str, seed: int, ap50: float, **changes: Any) -> Result:
    """A result with this AP50, in 0..1, of the last checkpoint and of model.pt."""
    scores = Scores(ap50, 0.2, 0.3)
    values: dict[str, Any] = {
        "kind": "source_free",
        "last": scores,
        "chosen": scores,
        "chosen_step": 9,
        "sigma": {"coverage_1": 0.5},
        "steps": 9,
        "seconds": 1.0,
    }
    return Result(variant, seed, **(values | changes))


def swept(axis: str, value: float) -> tuple[Sweep, ...]:
    """The place of a row in one sweep."""
    return (Sweep(axis, value),)


DATA_TOML = """
[data]
root = "."
source = "data.json"
frames = "data.json"
val = "data.json"
oracle = "data.json"
"""
ROWS_TOML = """
[[row]]
name = "PT, fast"
kind = "adapt"
config = "adapt.toml"
set = ["optim.steps=7"]
start = "source"
paper = { K2C = 60.2 }

[[row]]
name = "source"
kind = "train"

[[row]]
name = "oracle"
kind = "oracle"
"""


def load_text(tmp_path: Path, text: str, **arguments: Any) -> Study:
    """Read a study from its text; its data and one settings file are there."""
    (tmp_path / "data.json").touch()
    (tmp_path / "adapt.toml").write_text("log_every = 5\n", "utf-8")
    path = tmp_path / "study.toml"
    path.write_text(text, "utf-8")
    return load_study(path, **arguments)
