"""What becomes of an earlier run's results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ptedge.errors import OutputError
from ptedge.frames.source import FrameSource
from ptedge.runtime.counters import RunSource
from ptedge.runtime.options import OutputOptions
from ptedge.runtime.results import STARTS_KEPT, begin_results

SOURCES = [RunSource("yard", "yard.mp4", "video", FrameSource("yard.mp4", "video", None, 10.0))]
APPEND = OutputOptions(Path("out"), append=True)


def begin(out: Path, output: OutputOptions, *save: str) -> int:
    return begin_results(out, save or ("jsonl", "images", "coco"), SOURCES, output, {"model_hash": "m"})


def record(out: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((out / "run.json").read_text("utf-8"))
    return document


def fill(out: Path, *names: str) -> None:
    for name in names:
        (out / name).write_text(f"of {name}")


def names(out: Path) -> list[str]:
    return sorted(p.name for p in out.iterdir())


def test_begin_results__earlier_ones_step_aside_the_users_own_stay(tmp_path: Path) -> None:
    fill(tmp_path, "notes.txt", "video.mp4")  # neither is of a run
    assert begin(tmp_path, OutputOptions()) == 1
    assert record(tmp_path)["files"] == ["coco.json", "detections.jsonl", "images"]
    assert record(tmp_path)["runs"][0]["sources"] == ["yard.mp4"] and record(tmp_path)["runs"][0]["model_hash"] == "m"
    fill(tmp_path, "detections.jsonl", "detections.1.jsonl", "coco.json")
    assert begin(tmp_path, OutputOptions(), "jsonl") == 1
    assert names(tmp_path / "earlier-1") == ["coco.json", "detections.1.jsonl", "detections.jsonl", "run.json"]
    assert names(tmp_path) == ["earlier-1", "notes.txt", "run.json", "video.mp4"]


@pytest.mark.parametrize("output", [OutputOptions(), APPEND])
def test_begin_results__what_is_of_no_run_is_not_written_over(tmp_path: Path, output: OutputOptions) -> None:
    fill(tmp_path, "coco.json")
    with pytest.raises(OutputError, match=r"coco\.json is there already.*Move it away"):
        begin(tmp_path, output)
    assert names(tmp_path) == ["coco.json"]


def test_begin_results__append_goes_on_and_numbers_what_cannot(tmp_path: Path) -> None:
    assert begin(tmp_path, APPEND) == 1
    fill(tmp_path, "detections.jsonl", "detections.1.jsonl", "coco.json", "images")
    assert begin(tmp_path, APPEND) == 2
    about = record(tmp_path)
    assert about["files"] == ["coco-2.json", "coco.json", "detections.jsonl", "images", "images-2"]
    assert about["starts"] == 2
    # where the second run's lines begin: after "of detections.jsonl" and "of detections.1.jsonl"
    assert [run["after_bytes"]["detections.jsonl"] for run in about["runs"]] == [0, 19 + 21]
    assert (tmp_path / "detections.jsonl").exists()
    assert begin(tmp_path, OutputOptions()) == 1  # and without it all of that steps aside
    assert names(tmp_path) == ["earlier-1", "run.json"] and len(names(tmp_path / "earlier-1")) == 5


def test_begin_results__a_service_restarted_for_years(tmp_path: Path) -> None:
    for number in range(1, STARTS_KEPT + 4):
        assert begin(tmp_path, APPEND, "jsonl") == number
    about = record(tmp_path)
    assert (about["starts"], len(about["runs"])) == (STARTS_KEPT + 3, STARTS_KEPT)


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"command": "make", "files": [], "starts": 1, "runs": []}',
        '{"command": "ptedge run", "files": ["../x"], "starts": 1, "runs": []}',
        '{"command": "ptedge run", "files": [["x"]], "starts": 1, "runs": []}',
    ],
)
def test_begin_results__a_record_that_is_none_of_ours_moves_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "out").mkdir()
    fill(tmp_path, "x")
    (tmp_path / "out" / "run.json").write_text(text)
    with pytest.raises(OutputError, match=r"run\.json is no record of a run"):
        begin(tmp_path / "out", OutputOptions())
    assert names(tmp_path) == ["out", "x"] and names(tmp_path / "out") == ["run.json"]
