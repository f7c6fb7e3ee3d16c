"""The course of tests/gpu/run.sh, on a stand-in for the Pythons of a GPU host. Nothing of CUDA is in it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from places import ROOT

from ptedge.graph_contract import output_signature

STAND_IN = """#!/usr/bin/env bash
echo "$* $LD_LIBRARY_PATH" >> "$CALLS"
case "$*" in
  report.py*) exec "$REAL" "$@" ;;
  *"ptedge build"*)
    stages="one graph"
    case "$*" in
      *--split*) stages="two stages" ;;
      *"$REFUSED "*) [ -z "$REFUSED" ] || { sleep "$HANGS"; exit 1; } ;;
    esac
    echo "    3 s  choosing kernels"
    echo "{\\"of\\": \\"$stages\\", \\"engine\\": {\\"seconds\\": 42.0}}"
    echo "engine: built" ;;
  "torch_side.py"*eager) echo '{"torch eager fp16": {"ms": 9.0}}' > "$3/torch-eager.json" ;;
  "engine_side.py answers"*) cp "$3/$5-cpu.npz" "$4/$5.npz" ;;
  "engine_side.py bench"*)
    echo '{"graph": {"infer_ms": 2.0, "overhead": 0.1}, "throughput": {"busy": 0.97}}' > "$4/$5-bench.json" ;;
esac
"""


@pytest.fixture
def prepared(tmp_path: Path) -> Path:
    """As tests/gpu/prepare.sh leaves it: ONNX Runtime's answers, one car on one image."""
    folder = tmp_path / "prepared"
    (folder / "cuda").mkdir(parents=True)
    answer = {name: np.zeros(shape, kind) for name, (shape, kind) in output_signature(1, 3).items()}
    answer["boxes"][0, 0], answer["scores"][0, 0], answer["sigma"][0, 0] = (1, 2, 30, 40), 0.9, 2.0
    answer["num_detections"][0] = answer["converged"][0] = 1
    for precision in ("fp32", "fp16", "int8"):
        np.savez(folder / f"{precision}-cpu.npz", **answer)  # type: ignore[arg-type]
    return folder


def run(prepared: Path, **settings: str) -> tuple[int, dict[str, Any], list[str]]:
    """Exit status, report and calls of one run."""
    results, calls = prepared.parent / "results", prepared.parent / "calls"
    shutil.rmtree(results, ignore_errors=True)
    calls.write_text("")
    python = prepared.parent / "python"
    python.write_text(STAND_IN)
    python.chmod(0o755)
    own = {"PYTHON": str(python), "REAL": sys.executable, "CALLS": str(calls), "REFUSED": "", "HANGS": "0"}
    command = ["bash", str(ROOT / "tests/gpu/run.sh"), str(prepared), str(results)]
    done = subprocess.run(command, env={**os.environ, **own, **settings}, capture_output=True, text=True, check=False)
    assert "Traceback" not in (results / "report.log").read_text(), done.stderr
    return done.returncode, json.loads((results / "report.json").read_text()), calls.read_text().splitlines()


def test_run__one_engine_after_the_other_and_a_report_after_each_step(prepared: Path) -> None:
    status, report, calls = run(prepared)
    assert status == 0
    assert list(report["steps"]) == [
        "machine",
        "bench-torch",
        *(f"{what}-{precision}" for precision in ("fp16", "fp32", "int8") for what in ("build", "answers", "bench")),
        "bench-onnxruntime",
        "bench-compiled",
        "soak",
    ]
    assert [line.startswith("report.py") for line in calls] == [False, True] * len(report["steps"])
    assert f" {prepared}/cuda" in calls[0]  # cuBLAS that was brought along
    found = report["fp16"]
    assert found["build"]["engine"]["seconds"] == 42.0
    assert (found["agreement"]["matched"], found["agreement"]["unmatched"]) == (1, 0)
    assert report["goals"]["faster_than_torch_eager_fp16"] == {"value": 4.5, "goal": 3.0, "met": True}
    assert report["goals"]["busy"]["met"] is True and report["goals"]["overhead"]["met"] is False
    tables = (prepared.parent / "results" / "tables.txt").read_text()
    assert "| fp16 | one graph | 42 | 1 of 1, 0 without a partner |" in tables
    assert "| torch eager fp16 | 9.000 | 4.5 |" in tables and "failed or left out: nothing" in tables


@pytest.mark.parametrize("hangs", ["0", "5"])
def test_run__two_stages_where_the_one_graph_fails_or_takes_too_long(prepared: Path, hangs: str) -> None:
    status, report, calls = run(prepared, REFUSED="fp16", HANGS=hangs, BUILD_LIMIT="1", PRECISIONS="fp16")
    assert status == 1
    ended = "1" if hangs == "0" else "124"
    assert report["steps"]["build-fp16"]["status"] == ended and report["steps"]["build-fp16-split"]["status"] == "0"
    assert report["fp16"]["build"]["of"] == "two stages" and report["fp16"]["agreement"]["matched"] == 1
    assert report["fp32"] == {"build": None, "agreement": None, "bench": None}
    builds = [line for line in calls if "ptedge build" in line]
    assert ["--split" in line for line in builds] == [False, True]
    assert all(f"--log {prepared.parent}/results/build-fp16" in line for line in builds)


def test_run__when_there_is_no_time_nothing_is_begun(prepared: Path) -> None:
    status, report, calls = run(prepared, LIMIT="0")
    assert status == 1
    assert {step["status"] for step in report["steps"].values()} == {"no time"}
    assert all(line.startswith("report.py") for line in calls)
    assert report["goals"]["busy"] == {"value": None, "goal": 0.95, "met": None}
