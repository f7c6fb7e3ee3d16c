"""A graph with other outputs, built and run on TensorRT."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from tiny_model import tiny_onnx

from ptedge.export.onnx_graph import graph_with_outputs
from ptedge.export.onnx_run import run_as_written
from ptedge.export.verify.layer_runner import layer_runner


def test_layer_runner__tensorrt_builds_the_graph_it_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """Builder and runner are stood in for by ONNX Runtime; what is tested is what passes between them."""
    jobs = []

    def build(job: dict[str, Any], tell: Any) -> dict[str, Any]:
        jobs.append(job)
        Path(job["out"]).write_bytes(Path(job["model"]).read_bytes())
        return {"seconds": 1.0, "memory_mb": 0}

    class Standin:
        inputs: ClassVar = {"images": ((1, 3, 64, 96), np.dtype(np.uint8))}

        def __init__(self, engine: bytes, name: str, **_: Any) -> None:
            self.engine = engine

        def __enter__(self) -> Standin:
            return self

        def __exit__(self, *_: object) -> None: ...

        def infer(self, feeds: Any) -> Any:
            return run_as_written(self.engine, feeds)

    monkeypatch.setattr("ptedge.export.verify.layer_runner.run_worker", build)
    monkeypatch.setattr("ptedge.export.verify.layer_runner.TensorRTRunner", Standin)
    images = np.full((1, 3, 64, 96), 7, np.uint8)
    run = layer_runner("tensorrt", "fp16")
    found = run(graph_with_outputs(tiny_onnx(), ["top"]), {"images": images, "not an input": images})
    assert found["top"].tolist() == 7.0
    assert [job["precision"] for job in jobs] == ["fp16"]
