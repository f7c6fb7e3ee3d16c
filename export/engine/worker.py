"""Build one TensorRT engine in a process of its own: ``python -m ptedge.export.engine.worker JOB.json``.

A builder can be killed for memory and takes minutes; in a process of its own neither harms the command that started it.
Standard output carries one JSON object a line: ``{"step": ...}`` while it works, ``{"done": {...}}`` or
``{"error": ...}`` at the end. Precision is in the ONNX graph: TensorRT 10 and later take it as it is (strongly typed);
8.x is told by flags that float16 or int8 may be used, and is held to float32 wherever the graph says so.
"""

from __future__ import annotations

import ctypes
import json
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ptedge.backends.cuda import CudaDevice
from ptedge.backends.trt import load_tensorrt, make_log, start
from ptedge.errors import BackendError, InputError, PtedgeError
from ptedge.files import atomic_write
from ptedge.machine.memory import peak_memory

from .precision import allow_precision

if TYPE_CHECKING:
    import tensorrt as trt

STRONGLY_TYPED_FROM = 10  # major version; before it, precision is given by flags
# TensorRT 8's sources of kernels outside itself: TacticSource -> libraries of CUDA 11 and 12, a function in them
OUTSIDE_KERNELS = {
    "CUBLAS": (("libcublas.so.11", "libcublas.so.12"), "cublasGetProperty"),
    "CUBLAS_LT": (("libcublasLt.so.11", "libcublasLt.so.12"), "cublasLtGetProperty"),
    "CUDNN": (("libcudnn.so.8",), "cudnnGetProperty"),
}


@dataclass(frozen=True)
class BuildOptions:
    """What the builder is told.

    Attributes:
        workspace_mb: limit of scratch memory in MiB; 0 leaves TensorRT's own, all of the device.
        optimization_level: 0 to 5, higher searches longer; ``None`` leaves the default. TensorRT 8.6 and later.
        tf32: float32 products may be rounded to 10 bits of mantissa, which is faster.
        version_compatible: the engine also runs with later minor versions. TensorRT 8.6 and later.
        hardware: ``ampere_plus`` makes an engine for all GPUs from Ampere on. TensorRT 8.6 and later.
        dla: core of the deep learning accelerator, what it cannot do runs on the GPU; ``None`` for the GPU alone.
    """

    workspace_mb: int = 4096
    optimization_level: int | None = None
    tf32: bool = False
    version_compatible: bool = False
    hardware: str = "none"
    dla: int | None = None

    def flags(self) -> tuple[str, ...]:
        """In words, as the manifest records them."""
        named = {
            "tf32": self.tf32,
            "version_compatible": self.version_compatible,
            f"hardware_{self.hardware}": self.hardware != "none",
            f"dla_{self.dla}": self.dla is not None,
        }
        return tuple(name for name, on in named.items() if on)


def build(
    model: bytes, precision: str, options: BuildOptions, timing_cache: Path | None, extra_outputs: tuple[str, ...] = ()
) -> bytes:
    """Build an engine.

    Args:
        model: serialised ONNX with fixed shapes.
        precision: of the model: ``fp32``, ``fp16`` or ``int8``.
        options: what the builder is told.
        timing_cache: file with measured kernel times, read and brought up to date; ``None`` for none.
        extra_outputs: tensors to return beside the graph's outputs, for comparing layer by layer.

    Raises:
        BackendError: TensorRT refuses the model or an option; its own words are in the message.
        MissingExtraError: no TensorRT, no pycuda, or for fp16 and int8 on TensorRT 8 no onnx.
    """
    tensorrt = load_tensorrt()
    major = int(tensorrt.__version__.split(".")[0])
    device = CudaDevice()
    try:
        with device.active():
            log = make_log(tensorrt)
            builder: trt.Builder = start(tensorrt.Builder, log)
            network = builder.create_network(_network_flags(tensorrt, major))
            parser = tensorrt.OnnxParser(network, log)
            report("reading the model")
            if not parser.parse(model):
                raise BackendError(f"TensorRT {tensorrt.__version__} cannot read the model: {_parser_errors(parser)}")
            _mark_outputs(network, extra_outputs)
            config = builder.create_builder_config()
            _set_options(tensorrt, builder, config, options, precision)
            if major < STRONGLY_TYPED_FROM:
                allow_precision(tensorrt, network, config, model, precision)
            cache = _load_cache(config, timing_cache)
            _watch(tensorrt, config)
            report("choosing kernels")
            engine = builder.build_serialized_network(network, config)
            if engine is None:
                advice = _advice(log.text(), major, options)
                raise BackendError(f"TensorRT {tensorrt.__version__} could not build the engine: {log.text()}{advice}")
            if timing_cache is not None and cache is not None:
                with atomic_write(timing_cache) as file:
                    file.write(memoryview(cache.serialize()))
            content = bytes(memoryview(engine))
            del engine, cache, config, parser, network, builder  # while the context is current
            return content
    finally:
        device.close()


def _advice(words: str, major: int, options: BuildOptions) -> str:
    """What to try where TensorRT 8 finds no kernel: it takes exact float32 products from cuBLAS (seen with 8.5.3)."""
    if "Could not find any implementation" not in words or major >= STRONGLY_TYPED_FROM:
        return ""
    tries = ["install cuBLAS of the CUDA version that this TensorRT is for"]
    tries += [] if options.tf32 else ["allow rounded products: --tf32"]
    return f" Try this: {', or '.join(tries)}"


def _network_flags(tensorrt: Any, major: int) -> int:
    kinds = tensorrt.NetworkDefinitionCreationFlag
    if major < STRONGLY_TYPED_FROM:
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


def _set_options(tensorrt: Any, builder: Any, config: Any, options: BuildOptions, precision: str) -> None:
    flags, version = tensorrt.BuilderFlag, tensorrt.__version__
    if options.workspace_mb:
        config.set_memory_pool_limit(tensorrt.MemoryPoolType.WORKSPACE, options.workspace_mb << 20)
    if int(version.split(".")[0]) < STRONGLY_TYPED_FROM:
        _leave_out_missing(tensorrt, config)
    if not options.tf32:  # it is on unless switched off
        config.clear_flag(flags.TF32)
    if options.optimization_level is not None:
        _need(hasattr(config, "builder_optimization_level"), "--optimization-level", version)
        config.builder_optimization_level = options.optimization_level
    if options.version_compatible:
        _need(hasattr(flags, "VERSION_COMPATIBLE"), "--version-compatible", version)
        config.set_flag(flags.VERSION_COMPATIBLE)
    if options.hardware != "none":
        _need(hasattr(tensorrt, "HardwareCompatibilityLevel"), "--hardware", version)
        config.hardware_compatibility_level = tensorrt.HardwareCompatibilityLevel.AMPERE_PLUS
    if options.dla is not None:
        cores = int(builder.num_DLA_cores)
        if options.dla >= cores:
            raise InputError(f"--dla {options.dla}: this device has {cores or 'no'} DLA cores. Leave the option out")
        if precision == "fp32":
            raise InputError("--dla needs half precision or int8. Export with --precision fp16 or int8")
        config.default_device_type = tensorrt.DeviceType.DLA
        config.DLA_core = options.dla
        config.set_flag(flags.GPU_FALLBACK)


def _leave_out_missing(tensorrt: Any, config: Any) -> None:
    """TensorRT 8 also uses kernels of cuBLAS and cuDNN, and fails where it expects a library that is not there.

    Without cuBLAS it is not enough to leave its kernels out of the timing: the compiler of fused layers counts on it
    for products too, until 8.5's preview feature tells it to use its own, which is the default from 8.6 on.
    """
    sources, missing = config.get_tactic_sources(), set()
    for name, (libraries, symbol) in OUTSIDE_KERNELS.items():
        if hasattr(tensorrt.TacticSource, name) and not any(_has_symbol(library, symbol) for library in libraries):
            report(f"without kernels of {libraries[0].partition('.')[0][3:]}, whose library is not here")
            sources &= ~(1 << int(getattr(tensorrt.TacticSource, name)))
            missing.add(name)
    config.set_tactic_sources(sources)
    if missing & {"CUBLAS", "CUBLAS_LT"} and hasattr(tensorrt, "PreviewFeature"):
        config.set_preview_feature(tensorrt.PreviewFeature.DISABLE_EXTERNAL_TACTIC_SOURCES_FOR_CORE_0805, True)


def _has_symbol(library: str, symbol: str) -> bool:
    try:
        return hasattr(ctypes.CDLL(library), symbol)
    except OSError:
        return False


def _need(there: bool, option: str, version: str) -> None:
    if not there:
        raise InputError(f"{option} needs TensorRT 8.6 or later; here is {version}. Leave the option out")


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


def _watch(tensorrt: Any, config: Any) -> None:
    """Report the builder's own phases, where the version tells them (8.6 and later)."""
    if not hasattr(tensorrt, "IProgressMonitor"):
        return

    class Monitor(tensorrt.IProgressMonitor):  # type: ignore[misc]
        def __init__(self) -> None:
            tensorrt.IProgressMonitor.__init__(self)
            self.phases: dict[str, int] = {}

        def phase_start(self, phase_name: str, parent_phase: str | None, num_steps: int) -> None:
            self.phases[phase_name] = num_steps
            if parent_phase is None or len(self.phases) < 3:
                report(phase_name)

        def step_complete(self, phase_name: str, step: int) -> bool:
            total = self.phases.get(phase_name, 0)
            if total >= 10 and step % max(1, total // 10) == 0:
                report(f"{phase_name}, {step} of {total}")
            return True  # go on

        def phase_finish(self, phase_name: str) -> None:
            self.phases.pop(phase_name, None)

    config.progress_monitor = Monitor()


def report(step: str) -> None:
    """Tell the parent what is being done."""
    print(json.dumps({"step": step}), flush=True)


def main(job: Mapping[str, Any]) -> dict[str, Any]:
    """Do a job.

    Args:
        job: ``model``, ``out``, ``precision``, ``timing_cache`` (path or null) and ``options``.

    Returns:
        ``seconds`` and ``memory_mb``, the peak of this process.
    """
    started = time.perf_counter()
    cache = Path(job["timing_cache"]) if job["timing_cache"] else None
    engine = build(Path(job["model"]).read_bytes(), job["precision"], BuildOptions(**job["options"]), cache)
    with atomic_write(Path(job["out"])) as file:
        file.write(engine)
    return {"seconds": round(time.perf_counter() - started, 1), "memory_mb": (peak_memory() or 0) >> 20}


if __name__ == "__main__":
    try:
        print(json.dumps({"done": main(json.loads(Path(sys.argv[1]).read_text("utf-8")))}), flush=True)
    except PtedgeError as problem:
        print(json.dumps({"error": str(problem)}), flush=True)
        sys.exit(1)
