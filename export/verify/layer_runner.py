"""Run a graph with other outputs on a backend, for comparing layer by layer."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from ptedge.artifacts.engine_file import PRODUCTS
from ptedge.backends.providers import CPU, CUDA
from ptedge.backends.trt import TensorRTRunner

from ..engine.options import BuildOptions
from ..engine.process import run_worker
from ..onnx_run import Arrays, run_as_written
from .by_layer import Run


def layer_runner(backend: str, precision: str) -> Run:
    """What runs a serialised graph, given its inputs and perhaps more, on a backend.

    Args:
        backend: of :mod:`ptedge.export.verify.backends`.
        precision: of the bundle.
    """
    if backend in PRODUCTS:
        return partial(_run_tensorrt, precision=precision, backend=backend)
    return partial(run_as_written, providers=[CUDA, CPU] if backend == "cuda" else [CPU])


def _run_tensorrt(model: bytes, feeds: Mapping[str, NDArray[Any]], precision: str, backend: str) -> Arrays:
    """Build an engine that returns these tensors, and run it once."""
    with tempfile.TemporaryDirectory() as folder:
        file, engine = Path(folder) / "layers.onnx", Path(folder) / "layers.engine"
        file.write_bytes(model)
        options = asdict(BuildOptions(optimization_level=None))
        job = {"model": str(file), "out": str(engine), "precision": precision, "timing_cache": None, "options": options}
        run_worker({**job, "backend": backend}, lambda line: None)
        name = "the engine with intermediate outputs"
        with TensorRTRunner(engine.read_bytes(), name, cuda_graph=False, backend=backend) as runner:
            return runner.infer({name: feeds[name] for name in runner.inputs})
