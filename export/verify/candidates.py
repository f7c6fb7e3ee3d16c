"""What can run a bundle here: ONNX Runtime on the CPU and on CUDA, and each TensorRT engine; or why not."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from ptedge.artifacts.bundle import Bundle
from ptedge.backends.choose import open_runner
from ptedge.backends.runner import Runner
from ptedge.errors import BackendError, PtedgeError

from .by_layer import Arrays, Run, run_cpu, run_onnxruntime

BACKENDS = ("cpu", "cuda", "tensorrt")


@dataclass(frozen=True)
class Candidate:
    """One way to run a bundle.

    Attributes:
        name: for the report.
        backend: ``cpu``, ``cuda`` or ``tensorrt``.
        runner: ready to run; ``None`` when it cannot.
        reason: why it cannot; empty when it can.
    """

    name: str
    backend: str
    runner: Runner | None
    reason: str = ""


def open_candidates(bundle: Bundle, wanted: Collection[str] | None) -> Iterator[Candidate]:
    """All ways to run a bundle, the CPU first; each runner is closed before the next is opened.

    Args:
        bundle: opened bundle.
        wanted: backends to open; ``None`` opens what is there.

    Raises:
        BackendError: one that is in ``wanted`` is not there; the message says why.
    """
    for backend in BACKENDS if wanted is None else [b for b in BACKENDS if b in wanted]:
        engines: list[str | None] = [None]
        if backend == "tensorrt" and bundle.manifest.engines:
            engines = [record.file for record in bundle.manifest.engines]
        for engine in engines:
            name = f"tensorrt {engine or ''}".rstrip() if backend == "tensorrt" else f"onnxruntime {backend}"
            try:
                runner = open_runner(bundle, backend, engine=engine)
            except PtedgeError as error:
                if wanted is not None:
                    raise BackendError(f"{backend} was asked for: {error}") from error
                yield Candidate(name, backend, None, str(error))
                continue
            try:
                yield Candidate(name, backend, runner)
            finally:
                runner.close()


def layer_runner(backend: str, precision: str) -> Run:
    """What runs a graph with other outputs on a backend, for comparing layer by layer.

    Args:
        backend: ``cpu``, ``cuda`` or ``tensorrt``.
        precision: of the bundle.
    """
    if backend == "cuda":
        return lambda model, feeds: run_onnxruntime(model, feeds, ["CUDAExecutionProvider", "CPUExecutionProvider"])
    if backend == "tensorrt":
        return lambda model, feeds: _run_tensorrt(model, feeds, precision)
    return run_cpu


def _run_tensorrt(model: bytes, feeds: Mapping[str, NDArray[Any]], precision: str) -> Arrays:
    """Build an engine that returns these tensors, and run it once."""
    from dataclasses import asdict

    from ptedge.backends.trt import TensorRTRunner

    from ..engine.build import run_worker
    from ..engine.worker import BuildOptions

    with tempfile.TemporaryDirectory() as folder:
        file, engine = Path(folder) / "layers.onnx", Path(folder) / "layers.engine"
        file.write_bytes(model)
        options = asdict(BuildOptions(optimization_level=None))
        job = {"model": str(file), "out": str(engine), "precision": precision, "timing_cache": None, "options": options}
        run_worker(job, lambda line: None)
        with TensorRTRunner(engine.read_bytes(), "the engine with intermediate outputs", cuda_graph=False) as runner:
            return runner.infer({name: feeds[name] for name in runner.inputs})
