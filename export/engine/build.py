"""``ptedge build``: a TensorRT engine from a bundle, on the device that will run it, entered into the manifest."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict, replace
from datetime import datetime, timezone
from pathlib import Path

from ptedge.artifacts.bundle import MANIFEST_NAME, Bundle, open_bundle
from ptedge.artifacts.engine_file import EngineRecord, Platform, add_record, engine_name, same_build
from ptedge.artifacts.signature import SigningKey, read_signing_key
from ptedge.artifacts.trust import SUFFIX, Trust, require_engine, sign_engine
from ptedge.backends.cuda import CudaDevice
from ptedge.backends.trt import load_tensorrt
from ptedge.errors import ArtifactError, InputError
from ptedge.files import make_output_folder, sha256_file
from ptedge.machine.memory import main_memory
from ptedge.progress import in_words

from .options import BuildOptions
from .process import run_worker

Tell = Callable[[str], None]

BUILDER_MB = 2500  # host memory of the builder itself: libraries, kernels of all kinds, timing (measured, TensorRT 8.5)
MODEL_COPIES = 4  # of the weights that are held at once: file, parsed, packed, serialised


def build_engine(
    path: Path,
    options: BuildOptions,
    *,
    timing_cache: Path | None = None,
    force: bool = False,
    trust: Trust | None = None,
    sign: Path | None = None,
    tell: Tell = lambda line: None,
) -> tuple[EngineRecord, bool]:
    """Build an engine of a bundle for this device.

    Args:
        path: bundle folder.
        options: what the builder is told.
        timing_cache: file with measured kernel times; ``None`` for none.
        force: build even if nothing changed.
        trust: keys that the bundle must be signed with before its model is read; ``None`` checks hashes alone.
        sign: private key to sign the engine with. An engine that is there already is taken only if this key signed it.
        tell: takes lines of progress.

    Returns:
        The record that stands in the manifest, and whether it was built now (else it was there already).

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
    here, free_gpu = _look_around()
    record = _planned(bundle, here, options)
    for known in bundle.manifest.engines:
        engine = bundle.path / known.file
        whole = engine.is_file() and sha256_file(engine) == known.sha256
        if same_build(known, record) and not force and whole and _is_vouched(bundle, known, key):
            return known, False
    tell(f"TensorRT {here.tensorrt} on {here.gpu} (compute capability {here.compute_capability}), CUDA {here.cuda}")
    tell(memory_advice(bundle.model_path.stat().st_size, options.workspace_mb, free_gpu, main_memory().available))
    before = max((known.seconds for known in bundle.manifest.engines), default=None)
    tell("this takes minutes" if before is None else f"an engine of this bundle took {in_words(before)} before")
    record = _build_into(bundle, record, options, timing_cache, tell)
    add_record(bundle.path / MANIFEST_NAME, record)
    if key is not None:
        sign_engine(bundle.path, record, key)
    return record, True


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


def _build_into(
    bundle: Bundle, planned: EngineRecord, options: BuildOptions, timing_cache: Path | None, tell: Tell
) -> EngineRecord:
    """Build the engine and put it into the bundle's folder; the record with what is known only now."""
    make_output_folder(bundle.path)
    temporary = bundle.path / f".{planned.file}.{os.getpid()}.tmp"
    job = {
        "model": str(bundle.model_path),
        "model_sha256": bundle.model_hash,
        "out": str(temporary),
        "precision": planned.precision,
        "timing_cache": str(timing_cache) if timing_cache is not None else None,
        "options": asdict(options),
    }
    try:
        done = run_worker(job, tell)
        digest = sha256_file(temporary)
        (bundle.path / (planned.file + SUFFIX)).unlink(missing_ok=True)  # of the engine before
        os.replace(temporary, bundle.path / planned.file)
    finally:
        temporary.unlink(missing_ok=True)
    return replace(
        planned,
        sha256=digest,
        built=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        seconds=float(done["seconds"]),
        memory_mb=int(done["memory_mb"]),
    )


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


def _planned(bundle: Bundle, here: Platform, options: BuildOptions) -> EngineRecord:
    return EngineRecord(
        file=engine_name(here.gpu, here.tensorrt, bundle.manifest.precision),
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
    )


def default_timing_cache(folder: Path | None = None) -> Path:
    """Where measured kernel times are kept between builds: the user's cache folder.

    Args:
        folder: instead of ``$XDG_CACHE_HOME`` or ``~/.cache``.
    """
    base = folder or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "ptedge" / "tensorrt-timing.cache"
