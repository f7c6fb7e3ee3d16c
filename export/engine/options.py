"""What a TensorRT builder is told, and how each version is told it."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ptedge.errors import InputError

RTX_CAPABILITIES = ("8.0", "8.6", "8.9", "12.0")  # compute capabilities that an engine of TensorRT-RTX is built for
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


def set_options(
    tensorrt: Any, builder: Any, config: Any, options: BuildOptions, precision: str, tell: Callable[[str], None]
) -> None:
    """Tell a builder's configuration what was asked for.

    Args:
        tensorrt: the module.
        builder: knows the device.
        config: of the builder; changed.
        options: what was asked for.
        precision: of the model: ``fp32``, ``fp16`` or ``int8``.
        tell: takes a line on kernels that are left out.

    Raises:
        InputError: an option that this version or device does not have.
    """
    flags, version = tensorrt.BuilderFlag, tensorrt.__version__
    if options.workspace_mb:
        config.set_memory_pool_limit(tensorrt.MemoryPoolType.WORKSPACE, options.workspace_mb << 20)
    if int(version.split(".")[0]) < STRONGLY_TYPED_FROM:
        leave_out_missing(tensorrt, config, tell)
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


def set_rtx_options(rtx: Any, rtx_config: Any, options: BuildOptions) -> None:
    """Tell TensorRT-RTX's configuration what was asked for, and the GPUs to build for, of which none need be here.

    Args:
        rtx: the module of TensorRT-RTX.
        rtx_config: of the builder; changed.
        options: what was asked for.

    Raises:
        InputError: an option that TensorRT-RTX does not have.
    """
    foreign = {
        "--optimization-level": options.optimization_level is not None,
        "--version-compatible": options.version_compatible,
        "--hardware": options.hardware != "none",
        "--dla": options.dla is not None,
    }
    for option, given in foreign.items():
        if given:
            raise InputError(f"{option} belongs to TensorRT; TensorRT-RTX does not have it. Leave the option out")
    if options.workspace_mb:
        rtx_config.set_memory_pool_limit(rtx.MemoryPoolType.WORKSPACE, options.workspace_mb << 20)
    if not options.tf32:
        rtx_config.clear_flag(rtx.BuilderFlag.TF32)
    kinds = rtx.ComputeCapability
    rtx_config.num_compute_capabilities = len(RTX_CAPABILITIES)
    for i, name in enumerate(RTX_CAPABILITIES):
        rtx_config.set_compute_capability(getattr(kinds, f"SM{name.replace('.', '')}"), i)


def leave_out_missing(tensorrt: Any, config: Any, tell: Callable[[str], None]) -> None:
    """TensorRT 8 also uses kernels of cuBLAS and cuDNN, and fails where it expects a library that is not there.

    Without cuBLAS it is not enough to leave its kernels out of the timing: the compiler of fused layers counts on it
    for products too, until 8.5's preview feature tells it to use its own, which is the default from 8.6 on.
    """
    sources, missing = config.get_tactic_sources(), set()
    for name, (libraries, symbol) in OUTSIDE_KERNELS.items():
        if hasattr(tensorrt.TacticSource, name) and not any(_has_symbol(library, symbol) for library in libraries):
            tell(f"without kernels of {libraries[0].partition('.')[0][3:]}, whose library is not here")
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
