"""Build one TensorRT engine in a process of its own: ``python -m ptedge.export.engine.worker JOB.json``.

A builder can be killed for memory and takes minutes; in a process of its own neither harms the command that started it.
Standard output carries one JSON object a line: ``{"step": ...}`` while it works, ``{"done": {...}}`` or
``{"error": ...}`` at the end. Precision is in the ONNX graph: TensorRT 10 and later take it as it is (strongly typed);
8.x is told by flags that float16 or int8 may be used, and is held to float32 wherever the graph says so.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from ptedge.artifacts.engine_file import PRODUCTS, RTX
from ptedge.backends.cuda import CudaDevice
from ptedge.backends.trt import MODULES, load_tensorrt, make_log, start
from ptedge.errors import ArtifactError, PtedgeError
from ptedge.files import atomic_write
from ptedge.machine.memory import peak_memory

from .options import STRONGLY_TYPED_FROM, BuildOptions, set_options, set_rtx_options
from .phases import watch_phases
from .precision import allow_precision, readable_weights
from .process import GraphRefusedError

if TYPE_CHECKING:
    import tensorrt as trt


def build(
    model: bytes,
    precision: str,
    options: BuildOptions,
    timing_cache: Path | None,
    extra_outputs: tuple[str, ...] = (),
    backend: str = "tensorrt",
    log_file: TextIO | None = None,
) -> bytes:
    """Build an engine.

    Args:
        model: serialised ONNX with fixed shapes.
        precision: of the model: ``fp32``, ``fp16`` or ``int8``.
        options: what the builder is told.
        timing_cache: file with measured kernel times, read and brought up to date; ``None`` for none. TensorRT-RTX
            measures none.
        extra_outputs: tensors to return beside the graph's outputs, for comparing layer by layer.
        backend: ``tensorrt``, or ``tensorrt-rtx``, which needs no GPU.
        log_file: takes all that TensorRT says.

    Raises:
        GraphRefusedError: TensorRT does not take the model; its own words are in the message.
        InputError: this version or device does not have an option.
        MissingExtraError: no TensorRT, no pycuda, or for fp16 and int8 on TensorRT 8 no onnx.
    """
    tensorrt = load_tensorrt(backend)
    if backend == RTX:
        return _build_rtx(tensorrt, model, options, extra_outputs, log_file)
    major = int(tensorrt.__version__.split(".")[0])
    device = CudaDevice()
    try:
        with device.active():
            log = make_log(tensorrt, file=log_file)
            builder: trt.Builder = start(tensorrt.Builder, log)
            report("reading the model")
            if precision == "int8" and major < STRONGLY_TYPED_FROM:
                model = readable_weights(model)
            network, parser = read_network(tensorrt, builder, log, model, strongly_typed=major >= STRONGLY_TYPED_FROM)
            _mark_outputs(network, extra_outputs)
            config = builder.create_builder_config()
            set_options(tensorrt, builder, config, options, precision, report)
            if major < STRONGLY_TYPED_FROM:
                allow_precision(tensorrt, network, config, model, precision)
            cache = _load_cache(config, timing_cache)
            watch_phases(tensorrt, config, report)
            report("choosing kernels")
            engine = builder.build_serialized_network(network, config)
            if engine is None:
                advice = _advice(log.text(), major, options)
                raise GraphRefusedError(
                    f"TensorRT {tensorrt.__version__} could not build the engine: {log.text()}{advice}"
                )
            if timing_cache is not None and cache is not None:
                with atomic_write(timing_cache) as file:
                    file.write(memoryview(cache.serialize()))
            content = bytes(memoryview(engine))
            del engine, cache, config, parser, network, builder  # while the context is current
            return content
    finally:
        device.close()


def _build_rtx(
    tensorrt: Any, model: bytes, options: BuildOptions, extra_outputs: tuple[str, ...], log_file: TextIO | None
) -> bytes:
    """An engine of TensorRT-RTX: layers and weights; kernels are made on the GPU that will run it."""
    log = make_log(tensorrt, file=log_file)
    builder = start(tensorrt.Builder, log)
    report("reading the model")
    network, parser = read_network(tensorrt, builder, log, model, strongly_typed=True)
    _mark_outputs(network, extra_outputs)
    config = builder.create_builder_config()
    set_rtx_options(tensorrt, config, options)
    report("compiling")  # seconds: its own phases are too short to tell
    engine = builder.build_serialized_network(network, config)
    if engine is None:
        raise GraphRefusedError(f"TensorRT-RTX {tensorrt.__version__} could not build the engine: {log.text()}")
    content = bytes(memoryview(engine))
    del parser  # it owns the network's weights
    return content


def _advice(words: str, major: int, options: BuildOptions) -> str:
    """What to try where TensorRT 8 finds no kernel: it takes exact float32 products from cuBLAS (seen with 8.5.3)."""
    if "Could not find any implementation" not in words or major >= STRONGLY_TYPED_FROM:
        return ""
    tries = ["install cuBLAS of the CUDA version that this TensorRT is for"]
    tries += [] if options.tf32 else ["allow rounded products: --tf32"]
    return f" Try this: {', or '.join(tries)}"


def read_network(tensorrt: Any, builder: Any, log: Any, model: bytes, *, strongly_typed: bool) -> tuple[Any, Any]:
    """A network from a graph.

    Args:
        tensorrt: the module.
        builder: to build it with.
        log: the builder's.
        model: serialised ONNX with fixed shapes.
        strongly_typed: take the graph's number types as they are, which TensorRT 8 cannot.

    Returns:
        The network, and the parser, which owns its weights: it has to live as long.

    Raises:
        GraphRefusedError: TensorRT cannot read the graph; its own words are in the message.
    """
    network = builder.create_network(_network_flags(tensorrt, strongly_typed))
    parser = tensorrt.OnnxParser(network, log)
    if not parser.parse(model):
        name = PRODUCTS[RTX if tensorrt.__name__ in MODULES[RTX] else "tensorrt"]
        raise GraphRefusedError(f"{name} {tensorrt.__version__} cannot read the model: {_parser_errors(parser)}")
    return network, parser


def _network_flags(tensorrt: Any, strongly_typed: bool) -> int:
    kinds = tensorrt.NetworkDefinitionCreationFlag
    if not strongly_typed:
        return 1 << int(kinds.EXPLICIT_BATCH)
    # from 11 on there may be no other way, and then no name for it
    return 1 << int(kinds.STRONGLY_TYPED) if hasattr(kinds, "STRONGLY_TYPED") else 0


def _parser_errors(parser: Any) -> str:
    found = []
    for i in range(parser.num_errors):
        error = parser.get_error(i)
        found.append(f"node {error.node()}: {str(error.desc()).strip()}")
    return "; ".join(found[:3]) or "it gave no reason"


def _mark_outputs(network: Any, names: tuple[str, ...]) -> None:
    wanted = set(names)
    for i in range(network.num_layers if wanted else 0):
        layer = network.get_layer(i)
        for j in range(layer.num_outputs):
            tensor = layer.get_output(j)
            if tensor.name in wanted and not tensor.is_network_output:
                network.mark_output(tensor)


def _load_cache(config: Any, path: Path | None) -> Any:
    if path is None:
        return None
    try:
        content = path.read_bytes()
    except OSError:
        content = b""
    cache = config.create_timing_cache(content)
    if cache is None or not config.set_timing_cache(cache, ignore_mismatch=False):
        cache = config.create_timing_cache(b"")  # of another device or version: start anew
        config.set_timing_cache(cache, ignore_mismatch=False)
    return cache


def report(step: str) -> None:
    """Tell the parent what is being done."""
    print(json.dumps({"step": step}), flush=True)


def main(job: Mapping[str, Any]) -> dict[str, Any]:
    """Do a job.

    Args:
        job: ``model``, ``model_sha256``, ``out``, ``precision``, ``timing_cache`` (path or null), ``options``,
            ``backend`` and ``log`` (path, or null for none).

    Returns:
        ``seconds`` and ``memory_mb``, the peak of this process.
    """
    started = time.perf_counter()
    cache = Path(job["timing_cache"]) if job["timing_cache"] else None
    model = Path(job["model"]).read_bytes()
    if hashlib.sha256(model).hexdigest() != job["model_sha256"]:
        raise ArtifactError(f"{job['model']} was changed while it was being opened. Build again")
    options, backend = BuildOptions(**job["options"]), job.get("backend", "tensorrt")
    with contextlib.ExitStack() as stack:
        # two stages are two jobs, and their words follow each other
        log = stack.enter_context(open(job["log"], "a", encoding="utf-8")) if job.get("log") else None
        engine = build(model, job["precision"], options, cache, backend=backend, log_file=log)
    with atomic_write(Path(job["out"])) as file:
        file.write(engine)
    return {"seconds": round(time.perf_counter() - started, 1), "memory_mb": (peak_memory() or 0) >> 20}


if __name__ == "__main__":
    try:
        print(json.dumps({"done": main(json.loads(Path(sys.argv[1]).read_text("utf-8")))}), flush=True)
    except PtedgeError as problem:
        refused = isinstance(problem, GraphRefusedError)
        print(json.dumps({"error": str(problem), "refused": refused}), flush=True)
        sys.exit(1)
