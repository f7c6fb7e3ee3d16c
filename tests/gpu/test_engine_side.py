"""What is asked of an engine on a GPU, asked of a simulated one: that the questions hold together."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_tensorrt import FakeDriver, graph_tensors, install
from places import ROOT
from tiny_model import HEIGHT, ROWS, WIDTH, tiny_bundle

from ptedge.artifacts.bundle import open_bundle
from ptedge.artifacts.engine_file import EngineRecord, add_record
from ptedge.backends import trt_slot
from ptedge.errors import BackendError
from ptedge.files import sha256_file


@pytest.fixture
def side(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The script as a module, with few calls."""
    spec = importlib.util.spec_from_file_location("engine_side", ROOT / "tests/gpu/engine_side.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "engine_side", module)
    spec.loader.exec_module(module)
    for name, value in {"CALLS": 3, "ROUNDS": 2, "WARM_UP": 0.0}.items():
        monkeypatch.setattr(module, name, value)
    return module


@pytest.fixture
def prepared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A bundle ``fp16`` with an engine that answers with the first pixel as a score."""

    def work(images: Any) -> dict[str, Any]:
        scores = np.zeros((1, ROWS), np.float32)
        scores[0, 0] = images[0, 0, 0, 0] / 255
        zeros = np.zeros((1, ROWS, 4), np.float32)
        rest = {"boxes": zeros, "sigma": zeros, "labels": 0, "entropy": 0.0, "converged": 1, "num_detections": 1}
        return {"scores": scores, **rest}

    def no_graph(stream: int, work: Any) -> None:
        raise BackendError("no graph here")

    install(monkeypatch, FakeDriver(), graph_tensors(1, (HEIGHT, WIDTH), ROWS), work)
    monkeypatch.setattr(trt_slot, "CudaGraph", no_graph)
    bundle = tiny_bundle(tmp_path / "fp16")
    engine = bundle.path / "model.orin-10.3.0-fp32.engine"
    engine.write_bytes(b"engine")
    machine = ("fp32", "10.3.0", "12.6", "Orin", "8.7")
    record = EngineRecord(engine.name, sha256_file(engine), open_bundle(bundle.path).model_hash, *machine, seconds=7.0)
    add_record(bundle.path / "manifest.json", record)
    images = np.random.default_rng(0).integers(0, 256, (5, 3, HEIGHT, WIDTH), dtype=np.uint8)
    np.savez(tmp_path / "inputs.npz", images=images)
    return tmp_path


def ask(side: Any, monkeypatch: pytest.MonkeyPatch, prepared: Path, what: str) -> Path:
    results = prepared / "results"
    results.mkdir(exist_ok=True)
    monkeypatch.setattr(sys, "argv", ["engine_side.py", what, str(prepared), str(results), "fp16"])
    side.main()
    return results


def test_answers__of_every_input(side: Any, prepared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = np.load(ask(side, monkeypatch, prepared, "answers") / "fp16.npz")
    images = np.load(prepared / "inputs.npz")["images"]
    np.testing.assert_allclose(found["scores"][:, 0], images[:, 0, 0, 0] / np.float32(255), rtol=1e-6)


def test_bench__what_the_report_reads(side: Any, prepared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = json.loads((ask(side, monkeypatch, prepared, "bench") / "fp16-bench.json").read_text())
    assert report["engine"]["stages"] == ["whole"] and report["engine"]["seconds"] == 7.0
    assert report["graph"]["launched_by"] == "enqueue (no graph here)"
    assert report["enqueue"]["launched_by"] == "enqueue (switched off)"
    assert report["graph"]["infer_ms"] > 0 and report["throughput"]["busy"] > 0 and "overhead" in report["graph"]


def test_soak__memory_and_a_neighbour(side: Any, prepared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(side, "SOAK_CALLS", 20)
    report = json.loads((ask(side, monkeypatch, prepared, "soak") / "fp16-soak.json").read_text())
    assert report["calls"] == 20 and report["gpu_lost_mb"] == 0 and report["onnxruntime_unchanged_beside"] is True
