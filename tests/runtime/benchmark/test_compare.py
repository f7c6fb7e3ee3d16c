"""Comparison of two reports: which runs, ratios, what else changed, and files that are no reports."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from ptedge.cli import cli
from ptedge.errors import InputError
from ptedge.runtime.benchmark.compare import compare, read_report, verdict
from ptedge.runtime.benchmark.schema import problem, report_schema
from ptedge.runtime.benchmark.stats import Ratio
from ptedge.runtime.benchmark.table import comparison_text

STAGES = list(report_schema()["$defs"]["run"]["properties"]["latency_ms"]["properties"])


def a_run(name: str, milliseconds: list[float], **changes: Any) -> dict[str, Any]:
    spread = dict.fromkeys(("min", "mean", "median", "p90", "p95", "p99", "max"), 1.0) | {"cv": 0.0}
    measured = {stage: dict(spread) if stage in ("infer", "end_to_end") else None for stage in STAGES}
    each = [
        {"calls": 9, "seconds": 1.0, "images_per_second": 1000 / ms, "median_ms": {"infer": ms / 2, "end_to_end": ms}}
        for ms in milliseconds
    ]
    values: dict[str, Any] = {
        **{"name": name, "model_hash": "ab", "precision": "fp32", "input_size": [64, 96], "batch": 1},
        **{"backend": "cpu", "reason": "asked for", "engine": None, "launch": None, "memory": None, "slots": 1},
        **{"load_seconds": 0.1, "warm_up_calls": 1, "calls": 90, "seconds": 1.0},
        "throughput": {"images_per_second": 1.0, "calls_per_second": 1.0, "engine_images_per_second": None},
        **{"latency_ms": measured, "ms_per_image": 1.0, "detections_per_image": 0.0, "cpu_cores": 1.0},
        **{"per_round": each, "unstable": [], "absent": {}, "warnings": [], "against_first": None},
    }
    return values | changes


def a_report(*runs: dict[str, Any], **around: Any) -> dict[str, Any]:
    names = report_schema()["$defs"]["environment"]["properties"]
    known = {"system": "Linux", "cpu": "EPYC", "load": 0.1, "versions": {"ptedge": "0.1.0", "onnxruntime": "1.30"}}
    report = {
        **{"schema": "ptedge.benchmark/1", "created": "2026-01-01T00:00:00+00:00", "seconds": 10.0, "warm_up": 2.0},
        "frames": {"source": "noise", "count": 1, "size": [720, 1280]},
        **{"rounds": 10, "included": {}, "environment": dict.fromkeys(names) | known | around, "readings": []},
        **{"runs": list(runs), "skipped": [], "warnings": []},
    }
    assert problem(report, report_schema()) == ""
    return report


def test_compare__slower_and_faster() -> None:
    old, new = a_report(a_run("cpu", [10.0] * 10)), a_report(a_run("cpu", [12.0] * 10))
    found = compare(old, new)
    (pair,) = found["pairs"]
    assert (pair["old"], pair["new"], pair["per"]) == ("cpu", "cpu", "call")
    assert set(pair["values"]) == {"infer", "end_to_end", "images_per_second"}
    whole = pair["values"]["end_to_end"]
    assert (whole["old"], whole["new"], whole["ratio"], whole["verdict"]) == (10, 12, 1.2, "slower")
    assert pair["values"]["images_per_second"]["verdict"] == "slower"
    assert compare(new, old)["pairs"][0]["values"]["end_to_end"]["verdict"] == "faster"
    assert (found["differs"], found["warnings"], found["only_old"], found["only_new"]) == ([], [], [], [])
    assert "1.200" in comparison_text(found) and "slower" in comparison_text(found)


def test_compare__noise_and_few_rounds() -> None:
    old = a_report(a_run("cpu", [10, 14, 9, 12, 10, 13, 9, 14, 11, 10.0]))
    new = a_report(a_run("cpu", [11, 13, 10, 12, 9, 14, 10, 13, 12, 11.0]))
    assert compare(old, new)["pairs"][0]["values"]["end_to_end"]["verdict"] == "no difference beyond noise"
    few = compare(a_report(a_run("cpu", [10.0] * 3)), a_report(a_run("cpu", [20.0] * 3)))
    assert few["pairs"][0]["values"]["end_to_end"]["verdict"] == "too few rounds to tell"
    assert "too few rounds" in comparison_text(few)


def test_compare__names_what_else_differs() -> None:
    old = a_report(a_run("cpu", [10.0] * 10), power_mode="15W", load=0.1, gpu=None)
    gpu = dict.fromkeys(("name", "driver", "memory_mb", "power_limit_w", "sm_mhz_max", "persistence"))
    versions = {"ptedge": "0.1.0", "onnxruntime": "1.31"}
    run = a_run("cpu", [10.0] * 10, model_hash="cd", warnings=["unstable"])
    new = a_report(run, power_mode="MAXN", load=3.0, gpu=gpu | {"name": "NVIDIA L4"}, versions=versions)
    found = compare(old, new)
    named = {entry["what"]: (entry["old"], entry["new"]) for entry in found["differs"]}
    assert named == {
        "power_mode": ("15W", "MAXN"),
        "onnxruntime": ("1.30", "1.31"),
        "gpu name": (None, "NVIDIA L4"),
        "model_hash": ("ab", "cd"),
    }
    assert found["warnings"] == [
        "not measured alike (power_mode, onnxruntime, gpu name): the ratios are not of the model alone",
        "new: cpu: unstable",
    ]
    assert "power_mode: 15W -> MAXN" in comparison_text(found)


def test_compare__which_runs() -> None:
    ten = [10.0] * 10
    found = compare(
        a_report(a_run("cpu", ten), a_run("cuda", ten)), a_report(a_run("tensorrt", ten), a_run("cuda", ten))
    )
    assert [(p["old"], p["new"]) for p in found["pairs"]] == [("cuda", "cuda")]
    assert (found["only_old"], found["only_new"]) == (["cpu"], ["tensorrt"])
    single = compare(a_report(a_run("cpu", ten)), a_report(a_run("cuda", ten, backend="cuda")))
    assert [(p["old"], p["new"]) for p in single["pairs"]] == [("cpu", "cuda")]
    assert [entry["what"] for entry in single["differs"]] == ["backend"]
    none = compare(a_report(a_run("a", ten), a_run("b", ten)), a_report(a_run("c", ten)))
    assert none["pairs"] == [] and "nothing is compared" in none["warnings"][0]


def test_compare__other_batches_by_image() -> None:
    old, new = a_report(a_run("cpu", [10.0] * 10)), a_report(a_run("cpu", [40.0] * 10, batch=4))
    (pair,) = compare(old, new)["pairs"]
    assert pair["per"] == "image" and pair["values"]["end_to_end"]["ratio"] == 1


@given(st.lists(st.floats(0.1, 100), min_size=1, max_size=10), st.floats(1.2, 4))
def test_compare__a_report_with_itself_and_scaled(milliseconds: list[float], factor: float) -> None:
    old = a_report(a_run("cpu", milliseconds))
    same = compare(old, copy.deepcopy(old))["pairs"][0]["values"]["end_to_end"]
    assert same["ratio"] == 1 and same["verdict"] in ("no difference beyond noise", "too few rounds to tell")
    slower = compare(old, a_report(a_run("cpu", [ms * factor for ms in milliseconds])))
    assert slower["pairs"][0]["values"]["end_to_end"]["ratio"] == pytest.approx(factor, rel=1e-3)
    assert slower["pairs"][0]["values"]["end_to_end"]["verdict"] != "faster"


def test_verdict__of_times_and_of_rates() -> None:
    assert verdict(Ratio(2, 1.5, 2.5)) == "slower" and verdict(Ratio(2, 1.5, 2.5), more_is_faster=True) == "faster"
    assert verdict(Ratio(0.5, 0.4, 0.6)) == "faster" and verdict(Ratio(0.5, 0.4, 0.6), more_is_faster=True) == "slower"


def test_read_report__what_is_none(tmp_path: Path) -> None:
    good = a_report(a_run("cpu", [1.0]))
    path = tmp_path / "report.json"

    def refused(text: str) -> str:
        path.write_text(text)
        with pytest.raises(InputError) as caught:
            read_report(path)
        assert str(path) in str(caught.value)
        return str(caught.value)

    path.write_text(json.dumps(good))
    assert read_report(path) == good
    assert "no report of ptedge benchmark" in refused("[1]") and "no report" in refused('{"schema": 3}')
    assert "is not a JSON document" in refused("{") and "NaN is no number" in refused('{"a": NaN}')
    assert "of schema ptedge.benchmark/9" in refused(json.dumps(good | {"schema": "ptedge.benchmark/9"}))
    assert "runs[0].precision is missing" in refused(
        json.dumps(good | {"runs": [{k: v for k, v in good["runs"][0].items() if k != "precision"}]})
    )
    assert "without rounds" in refused(json.dumps(good | {"runs": []}))
    path.unlink()
    with pytest.raises(InputError, match=r"cannot read .*Write one: ptedge benchmark"):
        read_report(path)


def test_benchmark_compare__command(tmp_path: Path) -> None:
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    old.write_text(json.dumps(a_report(a_run("cpu", [10.0] * 10))))
    new.write_text(json.dumps(a_report(a_run("cpu", [10.0] * 10))))
    done = CliRunner().invoke(cli, ["benchmark", "--compare", str(old), str(new)])
    assert done.exit_code == 0 and "no difference beyond noise" in done.stdout
    done = CliRunner().invoke(cli, ["benchmark", "--compare", str(old), str(new), "--json"])
    assert json.loads(done.stdout)["schema"] == "ptedge.benchmark.comparison/1"


@pytest.mark.parametrize(
    ("value", "schema", "words"),
    [
        (1, {"type": "string"}, "the document must be string"),
        (True, {"type": "integer"}, "must be integer"),
        ([1, "a"], {"type": "array", "items": {"type": "integer"}}, "[1] must be integer"),
        ({"a": -1}, {"properties": {"a": {"minimum": 0}}}, "a must be at least 0"),
        ({"b": 1}, {"properties": {"a": {}}, "additionalProperties": False}, "b is not known"),
        ({}, {"required": ["a"]}, "a is missing"),
        ("x", {"enum": ["y"]}, "must be one of"),
        ("x", {"const": "y"}, "must be 'y'"),
        (None, {"type": ["number", "null"]}, ""),
    ],
)
def test_problem__words(value: Any, schema: dict[str, Any], words: str) -> None:
    found = problem(value, schema)
    assert words in found and bool(found) == bool(words)


def test_problem__refuses_schemas_it_does_not_know() -> None:
    with pytest.raises(ValueError, match="oneOf"):
        problem(1, {"oneOf": []})
