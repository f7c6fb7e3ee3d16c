"""ONNX Runtime sessions: on the CPU, on CUDA, and on TensorRT through ONNX Runtime; and why one cannot be had.

ONNX Runtime drops a provider whose libraries it cannot load and goes on with the CPU. What really runs is therefore
read from the session, and the library that is missing is looked for, so that the reason can be told.
"""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path
from typing import Any

from ptedge.errors import ArtifactError

CUDA, CPU, TENSORRT = "CUDAExecutionProvider", "CPUExecutionProvider", "TensorrtExecutionProvider"


def session_settings() -> Any:
    """How a model is run here: quiet, no spinning threads, int8 as the file says (``onnxruntime.SessionOptions``)."""
    import onnxruntime

    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 3  # errors; its warnings are about graph details nobody here can act on
    # threads that wait for work by spinning take the cores that decoding, preprocessing and sinks need
    settings.add_session_config_entry("session.intra_op.allow_spinning", "0")
    # int8 as it stands in the file and as TensorRT computes it: left to itself, ONNX Runtime rounds biases (and weights
    # that were kept) to integers as well
    settings.add_session_config_entry("session.disable_quant_qdq", "1")
    return settings


def open_session(
    model: Path,
    providers: list[str],
    threads: int | None,
    options: list[dict[str, str]] | None = None,
    *,
    content: bytes | None = None,
) -> Any:
    """Load a model with ONNX Runtime.

    Args:
        model: ONNX file.
        providers: by preference.
        threads: CPU threads; ``None`` leaves ONNX Runtime's default, one a core.
        options: of each provider.
        content: of the file, where it was read and checked already; ``model`` is then its name only.

    Raises:
        ArtifactError: ONNX Runtime does not take it.
    """
    import onnxruntime

    settings = session_settings()
    if threads is not None:
        settings.intra_op_num_threads = threads
    try:
        # its own fallback prints on stdout and changes the backend in the middle of a run
        return onnxruntime.InferenceSession(
            str(model) if content is None else content,
            settings,
            providers=providers,
            provider_options=options,
            enable_fallback=0,
        )
    except Exception as error:  # ONNX Runtime's exceptions have no common base
        raise ArtifactError(
            f"ONNX Runtime cannot load {model}: {first_line(error)}. Write it again: ptedge export"
        ) from error


def open_gpu_session(
    model: Path,
    provider: str,
    threads: int | None,
    devices: int,
    *,
    precision: str = "fp32",
    content: bytes | None = None,
) -> tuple[Any, str]:
    """Load a model on the GPU.

    Args:
        model: ONNX file.
        provider: ``CUDA`` or ``TENSORRT`` of this module.
        threads: CPU threads.
        devices: GPUs that answer.
        precision: of the model, ``fp32``, ``fp16`` or ``int8``: what TensorRT may use.
        content: as :func:`open_session`.

    Returns:
        The session, or ``None`` and why there is none, in words.
    """
    import onnxruntime

    name = "TensorRT" if provider == TENSORRT else "CUDA"
    if provider not in onnxruntime.get_available_providers():
        return None, f"this onnxruntime is built without {name}"
    if devices == 0:
        return None, "no NVIDIA GPU answers"
    if hasattr(onnxruntime, "preload_dlls"):  # finds CUDA and cuDNN that pip installed (1.21 and later)
        onnxruntime.preload_dlls(directory="")
    providers = [CUDA, CPU]
    options: list[dict[str, str]] = [{}, {}]
    if provider == TENSORRT:
        allowed = {"trt_fp16_enable": str(precision != "fp32"), "trt_int8_enable": str(precision == "int8")}
        providers, options = [TENSORRT, *providers], [allowed, *options]
        _load_tensorrt()
    try:
        session = open_session(model, providers, threads, options, content=content)
    except ArtifactError as error:  # also how a provider reports that it cannot start
        return None, first_line(error.__cause__ or error)
    if provider in session.get_providers():
        return session, ""
    library = missing_library(provider)
    return None, f"there is a GPU, but onnxruntime cannot load its {name} libraries ({library or 'of its version'})"


def missing_library(provider: str) -> str:
    """The first library that a provider needs and the system does not find; empty when none is known.

    Args:
        provider: ``CUDA`` or ``TENSORRT`` of this module.
    """
    import onnxruntime

    if not sys.platform.startswith("linux"):
        return ""
    folder = Path(onnxruntime.__file__).parent / "capi"
    part = "tensorrt" if provider == TENSORRT else "cuda"
    try:
        # the provider takes symbols from the shared part, which ONNX Runtime loads first, too
        ctypes.CDLL(str(folder / "libonnxruntime_providers_shared.so"), mode=ctypes.RTLD_GLOBAL)
        ctypes.CDLL(str(folder / f"libonnxruntime_providers_{part}.so"))
    except OSError as error:
        text = str(error)
        return f"{text.partition(':')[0]} is missing" if "cannot open shared object file" in text else ""
    return ""


def first_line(error: BaseException) -> str:
    """Of an error's text."""
    return str(error).strip().partition("\n")[0]


def _load_tensorrt() -> None:
    """Load the libraries that the package tensorrt brings, where the provider then finds them."""
    try:
        import tensorrt  # noqa: F401
    except (ImportError, OSError):
        return
