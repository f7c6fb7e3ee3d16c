"""The report of ptedge benchmark: fields, schema, warnings, and the command; TensorRT is a simulated one."""

from __future__ import annotations

import hashlib
import json
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from fake_tensorrt import FakeDriver, fake_tensorrt, graph_tensors
from tiny_model import ANSWER, HEIGHT, ROWS, WIDTH, tiny_bundle, tiny_onnx

from ptedge.artifacts.bundle import open_bundle
from ptedge.artifacts.engine_file import EngineRecord, add_record
from ptedge.backends import trt_slot
from ptedge.backends.bundle_predictor import BundlePredictor
from ptedge.cli import cli
from ptedge.errors import ArtifactError, BackendError
from ptedge.runtime.benchmark.machine import environment
from ptedge.runtime.benchmark.measure import STAGES, Round, Subject
from ptedge.runtime.benchmark.report import INCLUDED, benchmark_report, run_entry
from ptedge.runtime.benchmark.schema import problem, report_schema

QUICK = ("--seconds", 0.1, "--warm-up", 0, "--threads", 1)


def ptedge(*arguments: object, check: bool = True) -> Result:
    result = CliRunner().invoke(cli, [str(a) for a in arguments])
    if check and result.exit_code:
        raise result.exception or AssertionError(result.output)
    return result


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    return tiny_bundle(tmp_path / "bundle").path


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch, bundle: Path) -> Path:
    """The bundle with an engine for a simulated device, which takes 0.5 ms for each part of a call."""
    tensors = graph_tensors(1, (HEIGHT, WIDTH), ROWS)
    driver = FakeDriver()

    def answer(images: Any) -> dict[str, Any]:
        found = {name: np.zeros(shape) for name, (shape, _, is_input) in tensors.items() if not is_input}
        for name, rows in ANSWER.items():
            found[name][0, :2] = rows
        return found | {"num_detections": 2, "converged": 1}

    package = types.ModuleType("pycuda")
    package.driver = driver  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pycuda", package)
    monkeypatch.setitem(sys.modules, "pycuda.driver", driver)
    monkeypatch.setitem(sys.modules, "tensorrt", fake_tensorrt(driver, tensors, answer))

    def no_graph(stream: int, work: Any) -> None:
        raise BackendError("no graph here")

    monkeypatch.setattr(trt_slot, "CudaGraph", no_graph)
    digest = hashlib.sha256(b"engine").hexdigest()
    where = ("10.3.0", "12.6", "Orin", "8.7")
    record = EngineRecord("m.engine", digest, open_bundle(bundle).model_hash, "fp32", *where)
    (bundle / record.file).write_bytes(b"engine")
    add_record(bundle / "manifest.json", record)
    return bundle


def rounds(*medians: float) -> list[Round]:
    """Of 10 calls each that take so many seconds, nine tenths of it in infer."""
    found = []
    for seconds in medians:
        row = [0.0, 0.9 * seconds, *[float("nan")] * 5, 0.1 * seconds, seconds]
        found.append(Round(10 * seconds, 5 * seconds, np.array([row] * 10), 20, 10))
    return found


def measured(folder: Path, name: str, *medians: float) -> Subject:
    predictor = BundlePredictor(tiny_bundle(folder).path, "cpu", 1)
    return Subject(name, predictor, [], rounds=rounds(*medians))


def test_run_entry__by_hand(tmp_path: Path) -> None:
    first, second = measured(tmp_path / "a", "a", *[0.01] * 6), measured(tmp_path / "b", "b", *[0.02] * 6)
    run = run_entry(second, first)
    assert run["throughput"] == {"images_per_second": 50, "calls_per_second": 50, "engine_images_per_second": None}
    assert run["latency_ms"]["infer"]["median"] == 18 and run["ms_per_image"] == 20 and run["calls"] == 60
    assert run["detections_per_image"] == 2 and run["cpu_cores"] == 0.5
    assert run["per_round"][0]["median_ms"] == {"preprocess": 0, "infer": 18, "postprocess": 2, "end_to_end": 20}
    assert set(run["absent"]) == {"h2d", "compute", "d2h", "enqueue", "latency"}
    assert run["unstable"] == run["warnings"] == []
    against = run["against_first"]
    assert against["name"] == "a" and against["ms_per_image"]["ratio"] == 2
    assert against["images_per_second"] == {"ratio": 0.5, "low": 0.5, "high": 0.5, "differs": True}
    assert run_entry(first, first)["against_first"] is None


def test_run_entry__warns_of_few_calls_unsteady_ones_and_drift(tmp_path: Path) -> None:
    few = measured(tmp_path / "a", "a", 0.01)
    assert "only 10 calls" in run_entry(few, few)["warnings"][0]
    unsteady = measured(tmp_path / "b", "b", 0.01, 0.02, 0.01, 0.02, 0.01, 0.02)
    run = run_entry(unsteady, unsteady)
    # mean 15, standard deviation 5
    assert run["unstable"] == ["infer", "postprocess", "end_to_end"] and "end_to_end by 33%" in run["warnings"][0]
    warming = measured(tmp_path / "c", "c", *[0.01] * 3, *[0.0105] * 3, *[0.011] * 3)
    assert run_entry(warming, warming)["warnings"] == [
        "the last rounds are 10% slower than the first: heat, clocks or other load"
    ]


def test_run_entry__a_stage_that_hardly_counts_is_not_unstable(tmp_path: Path) -> None:
    one = measured(tmp_path / "a", "a", *[0.01] * 6)
    for r in one.rounds:
        r.times[:, 0] = [1e-6, 1e-5] * 5
    assert run_entry(one, one)["latency_ms"]["preprocess"]["cv"] > 0.1
    assert run_entry(one, one)["unstable"] == []


def test_benchmark_report__warns_of_throttling_and_load(tmp_path: Path) -> None:
    one = measured(tmp_path / "a", "a", *[0.01] * 6)
    around = environment(None) | {"load": 7.0, "cores_usable": 4}
    readings = [
        {"at": 0.0, "over_current_events": 1, "gpu_throttle": []},
        {"at": 1.0, "over_current_events": 3, "gpu_throttle": ["power cap"]},
    ]
    settings = {"seconds": 1.0, "warm_up": 0.0, "frames": {"source": "noise", "count": 1, "size": [720, 1280]}}
    report = benchmark_report([one], settings, around, readings, [])
    assert report["warnings"] == [
        "the GPU was slowed down meanwhile: power cap",
        "the board throttled 2 times for too much current",
        "load was 7.0 on 4 cores before anything was measured",
    ]
    assert problem(json.loads(json.dumps(report)), report_schema()) == ""


def test_benchmark__json_fits_its_schema(bundle: Path, tmp_path: Path) -> None:
    done = ptedge("benchmark", bundle, *QUICK, "--json", "--out", tmp_path / "report.json")
    report = json.loads(done.stdout)
    assert problem(report, report_schema()) == ""
    assert json.loads((tmp_path / "report.json").read_text()) == report
    assert report["frames"] == {"source": "noise", "count": 1, "size": [720, 1280]}
    assert report["environment"]["threads"] == 1 and len(report["readings"]) == report["rounds"] + 1
    assert set(report["included"]) == set(INCLUDED) and set(report["runs"][0]["latency_ms"]) == set(STAGES)


def test_benchmark__schema_names_every_stage() -> None:
    run = report_schema()["$defs"]["run"]["properties"]
    assert list(run["latency_ms"]["properties"]) == run["unstable"]["items"]["enum"] == list(STAGES)


def test_benchmark__times_of_the_device(engine: Path) -> None:
    report = json.loads(ptedge("benchmark", engine, *QUICK, "--slots", 2, "--json").stdout)
    assert problem(report, report_schema()) == ""
    (run,) = report["runs"]
    assert (run["backend"], run["engine"], run["memory"], run["slots"]) == ("tensorrt", "m.engine", "pinned", 2)
    assert run["reason"] == "the bundle has an engine for this machine" and run["launch"].startswith("enqueue (no gr")
    medians = {name: run["latency_ms"][name]["median"] for name in ("h2d", "compute", "d2h", "latency")}
    assert medians == {"h2d": 0.5, "compute": 0.5, "d2h": 0.5, "latency": 1.5}
    assert run["absent"] == {} and run["throughput"]["engine_images_per_second"] > 0


def test_benchmark__backends_side_by_side(engine: Path) -> None:
    done = ptedge("benchmark", engine, *QUICK, "--backend", "cpu", "--backend", "tensorrt", "--rounds", 6)
    assert "side by side, 6 rounds in turns; first is cpu" in done.stdout
    assert "h2d" in done.stdout and "engine  " in done.stdout
    assert "not known   h2d, compute, d2h, enqueue, latency: ONNX Runtime times its run as a whole" in done.stdout


def test_benchmark__all_takes_what_works_and_names_the_rest(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ptedge.backends.ort.cuda_device_count", lambda: 0)
    done = ptedge("benchmark", bundle, *QUICK, "--backend", "all", "--json")
    report = json.loads(done.stdout)
    assert [run["backend"] for run in report["runs"]] == ["cpu"]
    assert [entry["backend"] for entry in report["skipped"]] == ["tensorrt", "cuda", "ort-tensorrt"]
    assert "without cuda: cannot run on CUDA" in done.stderr


def test_benchmark__sizes_and_batches_side_by_side(tmp_path: Path) -> None:
    one = tiny_bundle(tmp_path / "one").path
    two = tiny_bundle(tmp_path / "two", tiny_onnx(batch=2), batch=2).path
    report = json.loads(ptedge("benchmark", one, two, *QUICK, "--backend", "cpu", "--json").stdout)
    assert [(run["name"], run["batch"]) for run in report["runs"]] == [("one cpu", 1), ("two cpu", 2)]
    assert [run["detections_per_image"] for run in report["runs"]] == [2, 2]


def test_benchmark__errors(bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ptedge.backends.ort.cuda_device_count", lambda: 0)
    for backend, words in (("ort-tensorrt", "TensorRT through ONNX Runtime"), ("cuda", "CUDA"), ("tensorrt", "build")):
        done = ptedge("benchmark", bundle, "--backend", backend, check=False)
        assert isinstance(done.exception, BackendError) and words in str(done.exception)
    (bundle / "model.onnx").write_bytes(b"broken")
    assert isinstance(ptedge("benchmark", bundle, "--backend", "all", check=False).exception, ArtifactError)
    assert ptedge("benchmark", check=False).exit_code == 2
    assert ptedge("benchmark", bundle, "--compare", "a", "b", check=False).exit_code == 2
