"""``ptedge build``: a TensorRT engine from a bundle, on the device that will run it, entered into the manifest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ptedge.artifacts.bundle import MANIFEST_NAME, Bundle, open_bundle
from ptedge.artifacts.engine_file import (
    PRODUCTS,
    RTX,
    STAGES,
    EngineRecord,
    Platform,
    add_record,
    engine_name,
    same_build,
)
from ptedge.artifacts.signature import SigningKey, read_signing_key
from ptedge.artifacts.trust import Trust, require_engine, sign_engine
from ptedge.backends.cuda import CudaDevice
from ptedge.backends.trt import load_tensorrt
from ptedge.errors import ArtifactError, InputError
from ptedge.files import atomic_write, sha256_file, user_cache
from ptedge.machine.memory import main_memory
from ptedge.progress import in_words

from .into_bundle import build_into
from .options import RTX_CAPABILITIES, BuildOptions
from .process import GraphRefusedError

Tell = Callable[[str], None]

BUILDER_MB = 2500  # host memory of the builder itself: libraries, kernels of all kinds, timing (measured, TensorRT 8.5)
MODEL_COPIES = 4  # of the weights that are held at once: file, parsed, packed, serialised


def build_engine(
    path: Path,
    options: BuildOptions,
    *,
    backend: str = "tensorrt",
    split: bool = False,
    timing_cache: Path | None = None,
    log: Path | None = None,
    force: bool = False,
    trust: Trust | None = None,
    sign: Path | None = None,
    tell: Tell = lambda line: None,
) -> tuple[EngineRecord, bool]:
    """Build an engine of a bundle for this device; two, where the model is in two stages.

    Where TensorRT does not take the one graph, its two stages are cut out of it and built.

    Args:
        path: bundle folder.
        options: what the builder is told.
        backend: ``tensorrt``, or ``tensorrt-rtx``, which builds without a GPU for all RTX cards from Ampere on.
        split: build two stages at once.
        timing_cache: file with measured kernel times; ``None`` for none.
        log: file for all that TensorRT says; what it held before goes.
        force: build even if nothing changed.
        trust: keys that the bundle must be signed with before its model is read; ``None`` checks hashes alone.
        sign: private key to sign the engine with. An engine that is there already is taken only if this key signed it.
        tell: takes lines of progress.

    Returns:
        The record that stands in the manifest, of two stages the first's, and whether it was built now (else it was
        there already).

    Raises:
        InputError: ``path`` is no bundle folder, or an option does not fit the device.
        ArtifactError: broken bundle.
        BackendError: no device, TensorRT refuses, or the builder was killed.
        MissingExtraError: no TensorRT or pycuda.
        OutputError: the engine cannot be written.
    """
    key = read_signing_key(sign) if sign is not None else None
    bundle = open_bundle(path, trust)
    if bundle.path == bundle.model_path:
        raise InputError(f"{path} is an ONNX file; an engine goes into a bundle folder. Give the folder")
    here, free_gpu = _look_around() if backend == "tensorrt" else (rtx_cards(), 0)
    whole, first, second = (_planned(bundle, here, options, backend, stage) for stage in STAGES)
    ways = [[first, second]] if split or bundle.manifest.second_stage is not None else [[whole], [first, second]]
    for way in [] if force else ways:
        if (there := _already_there(bundle, way, key)) is not None:
            return there, False
    if backend == RTX:
        tell(f"TensorRT-RTX {here.tensorrt}, for compute capability {here.compute_capability}; a GPU is not needed")
    else:
        tell(f"TensorRT {here.tensorrt} on {here.gpu} (compute capability {here.compute_capability}), CUDA {here.cuda}")
        tell(memory_advice(bundle.model_path.stat().st_size, options.workspace_mb, free_gpu, main_memory().available))
        before = max((known.seconds for known in bundle.manifest.engines), default=None)
        tell("this takes minutes" if before is None else f"an engine of this bundle took {in_words(before)} before")
    job: dict[str, Any] = {"backend": backend, "options": asdict(options), "timing_cache": None, "log": None}
    if timing_cache is not None:
        job["timing_cache"] = str(timing_cache)
    if log is not None:
        with atomic_write(log):
            pass
        job["log"] = str(log)
    try:
        records = build_into(bundle, ways[0], job, tell)
    except GraphRefusedError as refusal:
        if len(ways) == 1 or bundle.manifest.selection is None:
            raise
        tell(f"{PRODUCTS[backend]} does not take the one graph: {refusal}")
        tell("building its two stages instead; what is selected between and behind them is then computed on the CPU")
        records = build_into(bundle, ways[1], job, tell)
    for record in records:
        add_record(bundle.path / MANIFEST_NAME, record)
        if key is not None:
            sign_engine(bundle.path, record, key)
    return records[0], True


def _already_there(bundle: Bundle, planned: list[EngineRecord], key: SigningKey | None) -> EngineRecord | None:
    """The first of the engines planned, where all of them are there, whole and vouched for."""
    found = []
    for record in planned:
        for known in bundle.manifest.engines:
            engine = bundle.path / known.file
            whole = engine.is_file() and sha256_file(engine) == known.sha256
            if same_build(known, record) and whole and _is_vouched(bundle, known, key):
                found.append(known)
                break
    return found[0] if len(found) == len(planned) else None


def _is_vouched(bundle: Bundle, record: EngineRecord, key: SigningKey | None) -> bool:
    """Whether an engine that is there may stay: what another has built is not signed unseen."""
    trust = bundle.trust if key is None else Trust((key.public,))
    if trust is None:
        return True
    try:
        require_engine(bundle.path, record, trust)
    except ArtifactError:
        return False
    return True


def memory_advice(model_bytes: int, workspace_mb: int, free_gpu: int, available: int) -> str:
    """What building needs, against what is there, in a sentence.

    Args:
        model_bytes: size of the ONNX file.
        workspace_mb: limit of scratch memory in MiB, 0 for none.
        free_gpu: free device memory in bytes.
        available: free main memory in bytes.
    """
    host = BUILDER_MB + MODEL_COPIES * (model_bytes >> 20)
    text = f"building needs about {host} MB of memory"
    text += f", and up to {workspace_mb} MB of scratch memory on the GPU" if workspace_mb else ""
    text += f"; free are {available >> 20} and {free_gpu >> 20} MB"
    if available >> 20 < host or free_gpu >> 20 < workspace_mb:
        text += ". That may not be enough: close other programs, add swap, or lower --workspace"
    return text


def _look_around() -> tuple[Platform, int]:
    """This machine, and free device memory in bytes."""
    version = str(load_tensorrt().__version__)
    device = CudaDevice()
    try:
        return device.platform(version), device.free_memory()[0]
    finally:
        device.close()


def rtx_cards() -> Platform:
    """What an engine of TensorRT-RTX is bound to: the version, and kinds of GPU of which none need be here.

    Raises:
        MissingExtraError: TensorRT-RTX is not installed.
        BackendError: it cannot be loaded.
    """
    return Platform(str(load_tensorrt(RTX).__version__), "", "RTX", ", ".join(RTX_CAPABILITIES))


def _planned(bundle: Bundle, here: Platform, options: BuildOptions, backend: str, stage: str) -> EngineRecord:
    return EngineRecord(
        file=engine_name(here.gpu, here.tensorrt, bundle.manifest.precision, stage),
        sha256="",
        onnx_sha256=bundle.model_hash,
        precision=bundle.manifest.precision,
        tensorrt=here.tensorrt,
        cuda=here.cuda,
        gpu=here.gpu,
        compute_capability=here.compute_capability,
        flags=options.flags(),
        workspace_mb=options.workspace_mb,
        optimization_level=-1 if options.optimization_level is None else options.optimization_level,
        backend=backend,
        stage=stage,
    )


def default_timing_cache(folder: Path | None = None) -> Path:
    """Where measured kernel times are kept between builds.

    Args:
        folder: instead of the user's cache folder.
    """
    return user_cache(folder) / "tensorrt-timing.cache"
