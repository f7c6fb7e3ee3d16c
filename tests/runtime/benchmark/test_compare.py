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
from made_report import a_report, a_run

from ptedge.cli import cli
from ptedge.runtime.benchmark.compare import compare, verdict
from ptedge.runtime.benchmark.document import parse_report
from ptedge.runtime.benchmark.stats import Ratio
from ptedge.runtime.benchmark.table import comparison_text


def compare_documents(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    return compare(parse_report(old, "old"), parse_report(new, "new"))


def test_compare__slower_and_faster() -> None:
    old, new = a_report(a_run("cpu", [10.0] * 10)), a_report(a_run("cpu", [12.0] * 10))
    found = compare_documents(old, new)
    (pair,) = found["pairs"]
    assert (pair["old"], pair["new"], pair["per"]) == ("cpu", "cpu", "call")
    assert set(pair["values"]) == {"infer", "end_to_end", "images_per_second"}
    whole = pair["values"]["end_to_end"]
    assert (whole["old"], whole["new"], whole["ratio"], whole["verdict"]) == (10, 12, 1.2, "slower")
    assert pair["values"]["images_per_second"]["verdict"] == "slower"
    assert compare_documents(new, old)["pairs"][0]["values"]["end_to_end"]["verdict"] == "faster"
    assert (found["differs"], found["warnings"], found["only_old"], found["only_new"]) == ([], [], [], [])
    assert "1.200" in comparison_text(found) and "slower" in comparison_text(found)


def test_compare__noise_and_few_rounds() -> None:
    old = a_report(a_run("cpu", [10, 14, 9, 12, 10, 13, 9, 14, 11, 10.0]))
    new = a_report(a_run("cpu", [11, 13, 10, 12, 9, 14, 10, 13, 12, 11.0]))
    assert compare_documents(old, new)["pairs"][0]["values"]["end_to_end"]["verdict"] == "no difference beyond noise"
    few = compare_documents(a_report(a_run("cpu", [10.0] * 3)), a_report(a_run("cpu", [20.0] * 3)))
    assert few["pairs"][0]["values"]["end_to_end"]["verdict"] == "too few rounds to tell"
    assert "too few rounds" in comparison_text(few)


def test_compare__names_what_else_differs() -> None:
    old = a_report(a_run("cpu", [10.0] * 10), power_mode="15W", load=0.1, gpu=None)
    gpu = dict.fromkeys(("name", "driver", "memory_mb", "power_limit_w", "sm_mhz_max", "persistence"))
    versions = {"ptedge": "0.1.0", "onnxruntime": "1.31"}
    run = a_run("cpu", [10.0] * 10, model_hash="cd", warnings=["unstable"])
    new = a_report(run, power_mode="MAXN", load=3.0, gpu=gpu | {"name": "NVIDIA L4"}, versions=versions)
    found = compare_documents(old, new)
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
    found = compare_documents(
        a_report(a_run("cpu", ten), a_run("cuda", ten)), a_report(a_run("tensorrt", ten), a_run("cuda", ten))
    )
    assert [(p["old"], p["new"]) for p in found["pairs"]] == [("cuda", "cuda")]
    assert (found["only_old"], found["only_new"]) == (["cpu"], ["tensorrt"])
    single = compare_documents(a_report(a_run("cpu", ten)), a_report(a_run("cuda", ten, backend="cuda")))
    assert [(p["old"], p["new"]) for p in single["pairs"]] == [("cpu", "cuda")]
    assert [entry["what"] for entry in single["differs"]] == ["backend"]
    none = compare_documents(a_report(a_run("a", ten), a_run("b", ten)), a_report(a_run("c", ten)))
    assert none["pairs"] == [] and "nothing is compared" in none["warnings"][0]


def test_compare__other_batches_by_image() -> None:
    old, new = a_report(a_run("cpu", [10.0] * 10)), a_report(a_run("cpu", [40.0] * 10, batch=4))
    (pair,) = compare_documents(old, new)["pairs"]
    assert pair["per"] == "image" and pair["values"]["end_to_end"]["ratio"] == 1


@given(st.lists(st.floats(0.1, 100), min_size=1, max_size=10), st.floats(1.2, 4))
def test_compare__a_report_with_itself_and_scaled(milliseconds: list[float], factor: float) -> None:
    old = a_report(a_run("cpu", milliseconds))
    same = compare_documents(old, copy.deepcopy(old))["pairs"][0]["values"]["end_to_end"]
    assert same["ratio"] == 1 and same["verdict"] in ("no difference beyond noise", "too few rounds to tell")
    slower = compare_documents(old, a_report(a_run("cpu", [ms * factor for ms in milliseconds])))
    assert slower["pairs"][0]["values"]["end_to_end"]["ratio"] == pytest.approx(factor, rel=1e-3)
    assert slower["pairs"][0]["values"]["end_to_end"]["verdict"] != "faster"


def test_verdict__of_times_and_of_rates() -> None:
    assert verdict(Ratio(2, 1.5, 2.5)) == "slower" and verdict(Ratio(2, 1.5, 2.5), more_is_faster=True) == "faster"
    assert verdict(Ratio(0.5, 0.4, 0.6)) == "faster" and verdict(Ratio(0.5, 0.4, 0.6), more_is_faster=True) == "slower"


def test_benchmark_compare__command(tmp_path: Path) -> None:
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    old.write_text(json.dumps(a_report(a_run("cpu", [10.0] * 10))))
    new.write_text(json.dumps(a_report(a_run("cpu", [10.0] * 10))))
    done = CliRunner().invoke(cli, ["benchmark", "--compare", str(old), str(new)])
    assert done.exit_code == 0 and "no difference beyond noise" in done.stdout
    done = CliRunner().invoke(cli, ["benchmark", "--compare", str(old), str(new), "--json"])
    assert json.loads(done.stdout)["schema"] == "ptedge.benchmark.comparison/1"
