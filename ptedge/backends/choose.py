"""Which backend runs a bundle here, and why: an engine of TensorRT or TensorRT-RTX, or ONNX Runtime on GPU or CPU."""

from __future__ import annotations

from collections.abc import Sequence

from ptedge.artifacts.bundle import Bundle
from ptedge.artifacts.engine_file import (
    PRODUCTS,
    EngineRecord,
    build_command,
    choose_engine,
    other_stage,
    read_engine,
)
from ptedge.artifacts.trust import require_engine
from ptedge.backends.cuda import CudaDevice
from ptedge.backends.ort import OrtRunner
from ptedge.backends.runner import BACKENDS, ORT_TENSORRT, Runner
from ptedge.backends.split import pair_stages
from ptedge.backends.trt import TensorRTRunner, load_tensorrt
from ptedge.errors import BackendError, PtedgeError


def open_runner(
    bundle: Bundle, backend: str = "auto", threads: int | None = None, *, engine: str | None = None, slots: int = 1
) -> Runner:
    """Load a bundle's model.

    Args:
        bundle: opened bundle.
        backend: ``tensorrt``, ``tensorrt-rtx``, ``cuda`` or ``cpu``; ``auto`` takes the first of them that works here
            and says why; ``ort-tensorrt`` is TensorRT through ONNX Runtime, to measure beside the others.
        threads: CPU threads; ``None`` leaves ONNX Runtime's default.
        engine: file name of one engine of the bundle; ``None`` takes the newest that fits.
        slots: calls that can be under way at once on TensorRT.

    Raises:
        ArtifactError: broken model or engine.
        BackendError: the backend asked for is not there; an engine does not fit this machine.
        MissingExtraError: TensorRT was asked for and is not installed.
    """
    if backend not in (*BACKENDS, ORT_TENSORRT):
        raise BackendError(f"backend is {backend!r}; it must be one of {', '.join(BACKENDS)}")
    if backend in PRODUCTS or engine is not None:
        return open_engine(bundle, engine, backend=None if backend == "auto" else backend, slots=slots)
    reasons = []
    for kind in PRODUCTS if backend == "auto" else ():
        if not any(record.backend == kind for record in bundle.manifest.engines):
            continue
        try:
            runner = open_engine(bundle, None, backend=kind, slots=slots)
        except PtedgeError as error:  # one of the other backends will do; the reason is told
            reasons.append(f"not {PRODUCTS[kind]}: {error}")
        else:
            runner.reason = "the bundle has an engine for this machine"
            return runner
    without = "; ".join(reasons)
    found = open_graphs(bundle, backend, threads)
    if backend == "auto" and found.backend == "cuda" and not bundle.manifest.engines:
        without = f"no TensorRT engine in the bundle, which one could build: ptedge build {bundle.path}"
    if without:
        found.reason = f"{found.reason}; {without}"
    return found


def open_graphs(bundle: Bundle, backend: str, threads: int | None = None) -> Runner:
    """Load a bundle's one or two graphs with ONNX Runtime.

    Args:
        bundle: opened bundle.
        backend: ``auto``, ``cuda``, ``cpu`` or ``ort-tensorrt``.
        threads: CPU threads; ``None`` leaves ONNX Runtime's default.

    Raises:
        ArtifactError: broken model.
        BackendError: the backend asked for is not there.
    """
    precision, second = bundle.manifest.precision, bundle.read_second()
    runner = OrtRunner(bundle.model_path, backend, threads, precision=precision, content=bundle.read_model())
    if second is None:
        return runner
    behind = OrtRunner(bundle.second_path, runner.backend, threads, precision=precision, content=second)
    return pair_stages(runner, behind, bundle.manifest)


def open_engine(
    bundle: Bundle, file: str | None, *, backend: str | None = None, slots: int = 1, cuda_graph: bool = True
) -> Runner:
    """Load an engine of a bundle with TensorRT, after checking that it fits this machine.

    Args:
        bundle: opened bundle.
        file: name of the engine; ``None`` takes the newest that fits.
        backend: ``tensorrt`` or ``tensorrt-rtx``; ``None`` is that of the file, or the first.
        slots: calls that can be under way at once.
        cuda_graph: launch calls as a recorded graph.

    Raises:
        BackendError: no engine, or none that fits; names what differs and the command that builds one.
        ArtifactError: the file is changed, nobody who is trusted signed it, or TensorRT does not take it.
        MissingExtraError: no TensorRT or pycuda.
    """
    folder = bundle.model_path.parent
    records = bundle.manifest.engines
    if file is not None:
        named = [record for record in records if record.file == file]
        if not named:
            raise BackendError(f"{folder / 'manifest.json'} has no record of {file}. Build it: ptedge build {folder}")
        other = other_stage(named[0], records)
        records = (*named, *([] if other is None else [other]))
        if backend not in (None, named[0].backend):
            raise BackendError(
                f"{file} is an engine of {PRODUCTS[named[0].backend]}. Give --backend {named[0].backend}"
            )
        backend = named[0].backend
    backend = "tensorrt" if backend is None else backend
    records = tuple(record for record in records if record.backend == backend)
    if not records:
        build = build_command(folder, backend)
        raise BackendError(f"{bundle.path} holds no {PRODUCTS[backend]} engine. Build one here: {build}")
    first, record = _open_fitting(bundle, records, slots, cuda_graph)
    if record.stage == "whole":
        return first
    second = other_stage(record, records)
    assert second is not None  # what fits has it
    try:
        content = _read_vouched(bundle, second)
        name = str(folder / second.file)
        behind = TensorRTRunner(content, name, slots=slots, cuda_graph=cuda_graph, backend=backend)
    except BaseException:
        first.close()
        raise
    return pair_stages(first, behind, bundle.manifest)


def _open_fitting(
    bundle: Bundle, records: Sequence[EngineRecord], slots: int, cuda_graph: bool
) -> tuple[TensorRTRunner, EngineRecord]:
    """The newest engine that fits this machine, loaded; of two stages the first's."""
    folder, backend = bundle.model_path.parent, records[0].backend
    version = str(load_tensorrt(backend).__version__)
    device = CudaDevice()
    try:
        record, problem = choose_engine(folder, records, device.platform(version), bundle.model_hash)
        if record is None:
            raise BackendError(problem)
        content = _read_vouched(bundle, record)
    except BaseException:
        device.close()
        raise
    name = str(folder / record.file)
    runner = TensorRTRunner(content, name, device=device, slots=slots, cuda_graph=cuda_graph, backend=record.backend)
    return runner, record


def _read_vouched(bundle: Bundle, record: EngineRecord) -> bytes:
    """An engine's bytes. It is a program: TensorRT gets none that nobody vouches for, where that is asked for."""
    if bundle.trust is not None:
        require_engine(bundle.model_path.parent, record, bundle.trust)
    return read_engine(bundle.model_path.parent, record)
