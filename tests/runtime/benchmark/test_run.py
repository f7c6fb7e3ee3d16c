"""The command ptedge benchmark: what it measures and how it fits the schema; TensorRT is a simulated one."""

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
from keys import key_pair
from made_report import assert_fits_schema
from tiny_model import ANSWER, HEIGHT, ROWS, WIDTH, tiny_bundle, tiny_onnx

from ptedge.artifacts.bundle import open_bundle
from ptedge.artifacts.engine_file import EngineRecord, add_record
from ptedge.backends import trt_slot
from ptedge.cli import cli
from ptedge.errors import ArtifactError, BackendError
from ptedge.runtime.benchmark.measure import STAGES
from ptedge.runtime.benchmark.report import INCLUDED

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


def test_benchmark__json_fits_its_schema(bundle: Path, tmp_path: Path) -> None:
    done = ptedge("benchmark", bundle, *QUICK, "--json", "--out", tmp_path / "report.json")
    report = json.loads(done.stdout)
    assert_fits_schema(report)
    assert json.loads((tmp_path / "report.json").read_text()) == report
    assert report["frames"] == {"source": "noise", "count": 1, "size": [720, 1280]}
    assert report["environment"]["threads"] == 1 and len(report["readings"]) == report["rounds"] + 1
    assert set(report["included"]) == set(INCLUDED) and set(report["runs"][0]["latency_ms"]) == set(STAGES)


def test_benchmark__times_of_the_device(engine: Path) -> None:
    report = json.loads(ptedge("benchmark", engine, *QUICK, "--slots", 2, "--json").stdout)
    assert_fits_schema(report)
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
    assert [entry["backend"] for entry in report["skipped"]] == ["tensorrt", "tensorrt-rtx", "cuda", "ort-tensorrt"]
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


def test_benchmark__trust(bundle: Path, tmp_path: Path) -> None:
    _, public = key_pair(tmp_path)
    refused = ptedge("benchmark", bundle, *QUICK, "--trust", public, check=False)
    assert isinstance(refused.exception, ArtifactError) and "nobody vouches" in str(refused.exception)
    assert "signature none: its hashes show that it is whole" in ptedge("benchmark", bundle, *QUICK).stderr
